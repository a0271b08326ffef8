"""Webhooks of other people's services: signed by their own packages, verified by `waybill serve`."""

import json
import time
import unittest

import signing
from waybill import SECRET, Installation, eventually
from witness import Witness

OTHER = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
STRIPE = "whsec_0123456789abcdef0123456789abcdef"
TEXT = "It's a Secret to Everybody"

SOURCES = """
[sources.standard]
tenant = "acme"
scheme = "standard-webhooks"
secrets = ["env:NEW", "env:OLD"]
event_id = "header:webhook-id"
event_type = "/type"

[sources.stripe]
tenant = "acme"
scheme = "stripe"
secrets = ["env:STRIPE"]
event_id = "/id"
event_type = "/type"

[sources.github]
tenant = "acme"
scheme = "github"
secrets = ["env:TEXT"]
event_id = "header:x-github-delivery"
event_type = "lease.imported"

[sources.slack]
tenant = "acme"
scheme = "hmac"
signature = { header = "x-slack-signature", encoding = "hex", prefix = "v0=", \
input = "v0:{timestamp}:{body}", timestamp = "x-slack-request-timestamp" }
secrets = ["env:TEXT"]
event_id = "/event_id"
event_type = "lease.noted"

[producers.signing]
tenants = ["acme"]
secrets = ["env:OLD"]
"""

BODY = '{ "type":"lease.signed", "id":"evt_9", "event_id":"Ev9", "note":"✨🎉", "x":"\\u001B", "n":1.0 }\n'.encode()


class Sources(unittest.TestCase):
    def setUp(self):
        self.witness = Witness(SECRET)
        self.addCleanup(self.witness.__exit__)
        self.waybill = Installation(self.witness.url, more=SOURCES)
        self.addCleanup(self.waybill.__exit__)
        self.waybill.secrets = {"NEW": SECRET, "OLD": OTHER, "STRIPE": STRIPE, "TEXT": TEXT}
        self.waybill.start()

    def post(self, source, headers, body=BODY):
        status, answer = self.waybill.post(body, f"/v1/sources/{source}", headers)
        return status, answer.get("error", {}).get("code", "")

    def test_what_their_packages_sign_is_verified_and_forwarded_byte_for_byte(self):
        signed = {
            "standard": signing.standard_webhooks(SECRET, BODY),
            "stripe": signing.of_stripe(STRIPE, BODY),
            "github": signing.of_github(TEXT, BODY),
            "slack": signing.of_slack(TEXT, BODY),
        }
        for source, headers in signed.items():
            with self.subTest(source):
                self.assertEqual(self.post(source, headers), (202, ""))
                self.assertEqual(self.post(source, headers, BODY + b" "), (401, "invalid_signature"))
                self.assertEqual(self.post(source, {}), (401, "invalid_signature"))
        requests = self.witness.ledger.requests
        eventually("four deliveries", lambda: len(requests) == 4)
        for request in requests:
            self.assertTrue(request.verified)
            self.assertEqual(request.body, BODY)
        ids = {request.headers["waybill-event-id"] for request in requests}
        self.assertEqual(ids, {"msg_1", "evt_9", "d-1", "Ev9"})

    def test_while_a_secret_is_rotated_either_one_signs(self):
        self.assertEqual(self.post("standard", signing.standard_webhooks(SECRET, BODY, "new")), (202, ""))
        self.assertEqual(self.post("standard", signing.standard_webhooks(OTHER, BODY, "old")), (202, ""))
        both = signing.standard_webhooks(SECRET, BODY, "both")
        at = int(both["webhook-timestamp"])
        unknown = signing.standard_webhooks("whsec_" + "a" * 44, BODY, "both", at)["webhook-signature"]
        both["webhook-signature"] = f"{unknown} {both['webhook-signature']}"
        self.assertEqual(self.post("standard", both), (202, ""))
        both["webhook-signature"] = unknown
        self.assertEqual(self.post("standard", both), (401, "invalid_signature"))

    def test_what_was_signed_too_long_ago_or_ahead_is_refused(self):
        now = int(time.time())
        for at in [now - 330, now + 330]:
            self.assertEqual(self.post("standard", signing.standard_webhooks(SECRET, BODY, at=at)), (401, "stale_signature"))
            self.assertEqual(self.post("stripe", signing.of_stripe(STRIPE, BODY, at)), (401, "stale_signature"))
            self.assertEqual(self.post("slack", signing.of_slack(TEXT, BODY, at)), (401, "stale_signature"))
        self.assertEqual(self.waybill.deliveries(), [])

    def test_a_producer_signs_its_events_with_the_public_package(self):
        event = {"event_id": "e1", "tenant": "acme", "type": "lease.signed", "payload": {}}
        body = json.dumps(event).encode()
        status, answer = self.waybill.post(body, headers=signing.standard_webhooks(OTHER, body))
        self.assertEqual(status, 202, answer)
        status, answer = self.waybill.post(body, headers=signing.standard_webhooks(SECRET, body))
        self.assertEqual((status, answer["error"]["code"]), (401, "invalid_signature"))
