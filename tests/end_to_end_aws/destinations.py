"""To whom the tests send: a recipient of its own for each destination, and the configuration that names them."""

import time

import places  # noqa: F401 (says where the next are)

from waybill import SECRET
from witness import Witness


def slow_once(seconds):
    def script(n):
        if n == 1:
            time.sleep(seconds)
        return 200

    return script


def slow(seconds):
    def script(_n):
        time.sleep(seconds)
        return 200

    return script


# How each answers the n-th request of a delivery.
SCRIPTS = {
    "steady": lambda n: 200,
    "again": lambda n: 200,
    "bulk": lambda n: 200,
    "batch": lambda n: 200,
    "forgotten": lambda n: 200,
    "typed": lambda n: 200,
    "lines": lambda n: 200,
    "typo": lambda n: 422,
    "flaky": lambda n: 500 if n < 3 else 200,
    "patient": lambda n: 503 if n < 2 else 200,
    "refusing": lambda n: 422,
    "killed": slow_once(1.5),
    "contested": slow(1.0),
    "late": lambda n: 200,
    "paused": lambda n: 200,
    "locked": lambda n: 200,
    "closing": lambda n: 422,
    "minding": lambda n: 422,
    "killed-deduplicating": lambda n: 200,
    "killed-plain": lambda n: 503 if n == 1 else 200,
    "killed-hurried": lambda n: 503,
    "hung": slow_once(1.5),
    "cut-off": lambda n: 200,
    "two-versions": lambda n: 503 if n == 1 else 200,
    "rolled-back": lambda n: 503 if n == 1 else 200,
    "rolled-back-refusing": lambda n: 200,
    "suspending": lambda n: 200,
}

# What these answer instead until they are mended.
REFUSALS = {"locked": 401, "rolled-back-refusing": 422, "suspending": 401}

# Those that take a moment, after they did what was asked: a sender that dies then never hears of it.
ANSWERS_AFTER_S = {"killed-deduplicating": 0.1, "killed-plain": 0.1, "cut-off": 0.05}

# What else a destination is configured with.
MORE = {"suspending": "suspend_after = 3"}


class Destination:
    def __init__(self, name):
        self.times, self.is_mended = [], name not in REFUSALS

        def script(n):
            self.times.append(time.time())
            return SCRIPTS[name](n) if self.is_mended else REFUSALS[name]

        self.witness = Witness(SECRET, script, ANSWERS_AFTER_S.get(name, 0.0))

    @property
    def requests(self):
        return self.witness.ledger.requests

    @property
    def effects(self):
        return self.witness.ledger.effects


def document(destinations, changes):
    """The configuration, with what was changed since the tests began."""
    document = """
[policies.default]
base_delay = "1s"

[policies.patient]
base_delay = "20s"

[producers.tests]
tenants = ["acme"]
tokens = ["secretsmanager:waybill/token"]

[operators.root]
tenants = ["*"]

[operators.maria]
tenants = ["acme"]

[system]
stale_after = "5s"
"""
    for name, destination in destinations.items():
        if name == "late" and "late" not in changes:
            continue
        policy = "patient" if name == "patient" else "default"
        is_there = name == "steady" or (name == "locked" and "unlocked" in changes)
        secret = "ssm:/waybill/witness" if is_there else "env:WITNESS_SECRET"
        document += f"""
[destinations.{name}]
tenants = ["acme"]
url = "{destination.witness.url}"
secrets = ["{secret}"]
timeout = "2s"
policy = "{policy}"
{MORE.get(name, "")}
"""
    if "to be rolled back" in changes:
        document += "# a revision that will be taken back\n"
    return document
