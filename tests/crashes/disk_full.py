"""The disk is full: a true ENOSPC, on a small filesystem that is mounted in a namespace of its own.

Where the system gives no user namespace to whoever asks, nothing is tried and that is said.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from counting import Row
from meanwhile import Meanwhile, restart
from run import row, scene

FAULT = "the disk is full"
FULL_S, ROOM = 20, "48m"
HERE = Path(__file__).parent


class Unavailable(Exception):
    """It cannot be tried on this machine."""


def run(seconds, seed, full_s=FULL_S):
    """In a child, which alone sees the small filesystem."""
    with tempfile.TemporaryDirectory(prefix="waybill-disk-") as folder:
        mount = f'mount -t tmpfs -o size={ROOM} waybill "$1" && exec "$2" "$3" "$1" "$4" "$5" "$6"'
        try:
            done = subprocess.run(
                ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", folder,
                 sys.executable, str(HERE / "disk_full.py"), str(seconds), str(seed), str(full_s)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        except FileNotFoundError:
            raise Unavailable("there is no unshare(1) here to mount a small filesystem with") from None
        if done.returncode != 0 and "Traceback" not in done.stderr:
            raise Unavailable(f"no small filesystem can be mounted here without rights: {done.stderr.strip()}")
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return Row(**json.loads(done.stdout.splitlines()[-1]))


def inside(folder, seconds, seed, full_s):
    """Fills what `folder` is on, again and again, until the time is over."""
    one, draws = row(f"{FAULT} for {full_s:g} s"), random.Random(f"{seed} full")
    filler = folder / "filler"
    with scene(seed, data=folder / "waybill.db") as scenery:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(draws.uniform(3, 8))
            fill(filler)
            one.tried += 1
            wait_for_refusal(scenery)
            watch = Meanwhile(scenery)
            time.sleep(full_s)
            watch.end(one)
            restart(scenery.waybill, one)
            filler.unlink()
            if not scenery.waybill.is_up():
                scenery.waybill.start()
        time.sleep(5)
        return scenery.settle(one)


def fill(filler):
    """Takes all the room that is left, to the last byte."""
    with open(filler, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                pass


def wait_for_refusal(scenery):
    """What SQLite's log has room for already is still written; the last write before it grows decides."""
    since = time.time()
    while not any(at > since and status == 503 for at, status in scenery.producers.answers[-200:]):
        assert time.time() - since < 60, "the full disk is never felt"
        time.sleep(0.1)


if __name__ == "__main__":
    print(json.dumps(asdict(inside(Path(sys.argv[1]), *map(float, sys.argv[2:])))))
