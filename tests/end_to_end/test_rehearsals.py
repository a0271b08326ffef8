"""The rehearsals' requests, verified by the public library instead of our own code."""

import base64
import json
import subprocess
import tempfile
import unittest
from datetime import datetime, timezone
from pathlib import Path

from standardwebhooks.webhooks import Webhook

from waybill import BINARY


def rehearse(example):
    with tempfile.TemporaryDirectory() as folder:
        requests = Path(folder) / "requests.jsonl"
        done = subprocess.run(
            [BINARY, "rehearse", example, "--requests", requests], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, [json.loads(line) for line in requests.read_text().splitlines()]


class Rehearsals(unittest.TestCase):
    def check(self, example):
        timeline, requests = rehearse(example)
        self.assertTrue(requests, timeline)
        by_delivery = {}
        for request in requests:
            headers, body = request["headers"], base64.b64decode(request["body_base64"])
            at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), tz=timezone.utc)
            signature = Webhook(request["secret"]).sign(headers["webhook-id"], at, body.decode())
            self.assertIn(signature, headers["webhook-signature"].split(" "))
            self.assertEqual(headers["webhook-id"], headers["idempotency-key"])
            by_delivery.setdefault(headers["webhook-id"], []).append((int(headers["waybill-attempt"]), body))
        for delivery, attempts in by_delivery.items():
            self.assertEqual([n for n, _ in attempts], list(range(1, len(attempts) + 1)), delivery)
            self.assertEqual(len({body for _, body in attempts}), 1, delivery)

    def test_lease_payment(self):
        self.check("lease-payment")

    def test_nightly_reconciliation(self):
        self.check("nightly-reconciliation")

    def test_renewal_reminder(self):
        self.check("renewal-reminder")


if __name__ == "__main__":
    unittest.main()
