"""`waybill serve`, seen from outside by an independent recipient."""

import signal
import time
import unittest

from waybill import SECRET, Installation, event, eventually
from witness import Witness

CHANGING = {"webhook-timestamp", "webhook-signature", "waybill-attempt"}


class Serve(unittest.TestCase):
    def test_500_500_200_is_three_requests_of_one_delivery(self):
        body = b'{"n":12345678901234567890123,"x":1.0,"\\u00e9":"\xc3\xa9"}'
        written = (
            b'{"event_id":"evt_pay_7319","tenant":"acme","type":"lease.payment_recorded",'
            b'"destination":"acme-accounting","payload":' + body + b"}"
        )
        with Witness(SECRET, lambda n: 500 if n < 3 else 200) as witness, Installation(witness.url) as waybill:
            waybill.start()
            status, answer = waybill.post(written)
            self.assertEqual(status, 202, answer)
            delivery = answer["deliveries"][0]["delivery_id"]
            self.assertEqual(delivery, "whd_HMC7MJWWZ5WV7Z60WTKDYCRD47")

            requests = witness.ledger.requests
            eventually("the third request", lambda: len(requests) == 3, 30)
            eventually("success", lambda: waybill.deliveries()[0]["state"] == "succeeded")
            for request in requests:
                self.assertTrue(request.verified, "the public library verifies the signature")
                self.assertEqual(request.body, body, "the very bytes")
                self.assertEqual(request.headers["webhook-id"], delivery)
                self.assertEqual(request.headers["idempotency-key"], delivery)
            first, second, third = ({k: v for k, v in r.headers.items() if k not in CHANGING} for r in requests)
            self.assertEqual(first, second)
            self.assertEqual(first, third)
            self.assertEqual([r.headers["waybill-attempt"] for r in requests], ["1", "2", "3"])

            shown = waybill.run("deliveries", "show", delivery)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            for part in ["attempt 1", "attempt 2", "attempt 3", "jitter drew", "500", "succeeded"]:
                self.assertIn(part, shown.stdout.lower())

    def test_a_terminated_serve_finishes_what_it_began_and_exits_0(self):
        def slow(_n):
            time.sleep(0.5)
            return 200

        with Witness(SECRET, slow) as witness, Installation(witness.url) as waybill:
            waybill.start()
            self.assertEqual(waybill.post(event("evt_slow"))[0], 202)
            eventually("the request arrives", lambda: witness.ledger.requests)
            self.assertEqual(waybill.kill(signal.SIGTERM), 0, waybill.log())
            self.assertEqual(waybill.deliveries()[0]["state"], "succeeded")
            self.assertEqual(len(witness.ledger.requests), 1)

    def test_nothing_of_a_payload_or_a_secret_is_logged(self):
        with Witness(SECRET, lambda n: 500 if n < 2 else 200) as witness, Installation(witness.url) as waybill:
            waybill.start()
            waybill.post(event("evt_canary", payload={"canary": "SENTINEL-7f3a"}))
            eventually("success", lambda: [d for d in waybill.deliveries() if d["state"] == "succeeded"])
            log = waybill.log()
            self.assertIn("attempted", log)
            for secret in ["SENTINEL-7f3a", SECRET, SECRET.removeprefix("whsec_"), "v1,"]:
                self.assertNotIn(secret, log)


if __name__ == "__main__":
    unittest.main()
