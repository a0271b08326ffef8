"""The ledger out of reach: another process holds the file's lock, so that nothing can be written."""

import sqlite3
import time

from meanwhile import Meanwhile, restart
from run import row, scene

FAULT = "the ledger is locked by another process"
LOCKED_S = 60


def run(seconds, seed, locked_s=LOCKED_S):
    one = row(f"{FAULT} for {locked_s} s")
    with scene(seed) as scenery:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(5)
            file = sqlite3.connect(scenery.waybill.data, isolation_level=None, timeout=30)
            file.execute("BEGIN EXCLUSIVE")
            one.tried += 1
            watch = Meanwhile(scenery)
            time.sleep(locked_s)
            watch.end(one)
            restart(scenery.waybill, one)
            file.execute("ROLLBACK")
            file.close()
            if not scenery.waybill.is_up():
                scenery.waybill.start()
        time.sleep(5)
        return scenery.settle(one)
