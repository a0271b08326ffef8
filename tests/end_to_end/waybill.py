"""Runs the built `waybill` as a person would, from outside."""

import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("WAYBILL_BIN", str(ROOT / "target" / "debug" / "waybill"))
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def eventually(what, condition, within_s=60):
    """Waits for a condition that other processes bring about; says what it waited for."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {within_s} s")


class Installation:
    """A folder with a configuration and a data file, and at most one `serve` on it."""

    def __init__(self, url, timeout="2s", policy="", more=""):
        self.folder = tempfile.TemporaryDirectory(prefix="waybill-")
        self.path = Path(self.folder.name)
        self.data = self.path / "waybill.db"
        self.config = self.path / "waybill.toml"
        self.config.write_text(
            f"""
[policies.default]
{policy or 'max_attempts = 7'}

[destinations.acme-accounting]
tenants = ["acme"]
url = "{url}"
secrets = ["env:WITNESS_SECRET"]
event_types = ["lease.*"]
timeout = "{timeout}"
{more}
"""
        )
        self.secrets = {}
        self.process = None
        self.address = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.kill()
        self.folder.cleanup()

    def environment(self):
        return {**os.environ, "WITNESS_SECRET": SECRET, **self.secrets}

    def spawn(self, *switches):
        """One more process that tries to serve the file."""
        with open(self.path / "serve.log", "a") as log:
            return subprocess.Popen(
                [BINARY, "serve", "--config", self.config, "--data", self.data,
                 "--listen", "127.0.0.1:0", *(switches or ["--allow-local"])],
                stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment(),
            )

    def start(self, *switches):
        process = self.spawn(*switches)
        assert self.adopt(process), f"no address: {self.log()[-2000:]}"

    def adopt(self, process):
        """Whether the process came up; it is the one that serves then."""
        # The first line tells where it listens.
        found = re.search(r"http://([0-9.]+):(\d+)", process.stdout.readline())
        if found:
            self.process, self.address = process, (found[1], int(found[2]))
        return bool(found)

    def is_up(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        return (self.path / "serve.log").read_text()

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        self.process = None
        return code

    def post(self, event, path="/v1/events", headers=None):
        """The status and the answer, or None where the connection failed."""
        connection = http.client.HTTPConnection(*self.address, timeout=10)
        try:
            body = event if isinstance(event, bytes) else json.dumps(event).encode()
            connection.request("POST", path, body, {"content-type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def run(self, *arguments):
        command = [BINARY, "--backend", f"embedded:{self.data}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment())

    def deliveries(self):
        done = self.run("--output", "json", "deliveries", "list")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def event(event_id, **more):
    return {
        "event_id": event_id, "tenant": "acme", "type": "lease.payment_recorded",
        "destination": "acme-accounting", "payload": {"leaseId": "lease_881", "amountCents": 125000},
        **more,
    }
