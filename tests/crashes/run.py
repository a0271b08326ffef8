"""One fault, tried for a while under load, and then the count."""

import signal
import time
from contextlib import contextmanager

from counting import Ledger, Row, count, still_open
from producers import Producers
from recipients import MANNERS, SENDERS_PATIENCE_S, Recipients
from waybill import SECRET, Installation

# A budget that is full at times: what waits for it must survive, too.
BUDGETS = {"steady": "concurrency = 4"}
RATE = 50
# From here on nobody disturbs; what was in hand at the last kill comes back after less than half a minute.
ENDS_WITHIN_S = 300


def configuration(url):
    destinations = "".join(f"""
[destinations.{manner}]
tenants = ["acme"]
url = "{url}/{manner}"
secrets = ["env:WITNESS_SECRET"]
event_types = ["lease.*"]
timeout = "{SENDERS_PATIENCE_S}s"
{BUDGETS.get(manner, "")}
""" for manner in MANNERS)
    return f"""
[policies.default]
max_attempts = 12
base_delay = "200ms"
max_delay = "5s"

[system]
stale_after = "20s"
{destinations}"""


class Scene:
    """Producers, `waybill serve` and recipients, for one fault."""

    def __init__(self, seed, rate, data=None):
        self.recipients = Recipients(SECRET, seed)
        self.waybill = Installation(self.recipients.url)
        self.waybill.config.write_text(configuration(self.recipients.url))
        self.waybill.data = data or self.waybill.data
        self.producers = Producers(self.waybill, rate, seed)

    def close(self):
        self.producers.stop()
        self.waybill.__exit__()
        self.recipients.__exit__()

    def settle(self, row):
        """Lets everything end, and counts."""
        self.producers.stop()
        begun = time.monotonic()
        while any(left := still_open(self.waybill.data)):
            if time.monotonic() - begun > ENDS_WITHIN_S:
                row.findings.append(f"{ENDS_WITHIN_S} s later {left[0]} deliveries are open, {left[1]} messages left")
                break
            time.sleep(0.5)
        row.notes.append(f"everything had ended {time.monotonic() - begun:.0f} s after the last event")
        code = self.waybill.kill(signal.SIGTERM)
        if code != 0:
            row.findings.append(f"serve ended with {code} when told to stop")
        verified = self.waybill.run("audit", "verify")
        if verified.returncode != 0:
            row.findings.append(f"audit verify: {verified.stdout}{verified.stderr}")
        count(row, self.producers.published, Ledger.read(self.waybill.data), self.recipients.book)
        panics = self.waybill.log().count("panicked")
        row.findings += [f"{panics} panics in the log"] if panics else []
        return row


@contextmanager
def scene(seed, rate=RATE, data=None):
    one = Scene(seed, rate, data)
    try:
        one.waybill.start()
        one.producers.start()
        yield one
    finally:
        # Also where something failed: producers stop when they are answered, so somebody answers them.
        if not one.producers.is_over.is_set() and not one.waybill.is_up():
            one.waybill.start()
        one.close()


def row(fault):
    return Row(fault, 0)
