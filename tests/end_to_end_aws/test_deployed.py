"""The deployed functions, seen from outside: events go in over HTTP, the queue and the schedule do
the rest, and independent recipients say what arrived.

Tests name their events after themselves, and each has a destination to itself.
"""

import json
import threading
import time
import unittest

from stage import RECEIVES, VISIBILITY_S, deployed, eventually


STAGE = None


def setUpModule():
    global STAGE
    STAGE = deployed()


class Deployed(unittest.TestCase):
    def destination(self, name):
        return STAGE.destinations[name]

    def test_an_event_is_delivered_once(self):
        delivery = STAGE.publish("steady-1", "steady")
        STAGE.reaches(delivery, "succeeded")
        (request,) = self.destination("steady").requests
        self.assertTrue(request.verified, "the public library verifies the signature")
        self.assertEqual(request.body, b'{"leaseId": "lease_881", "amountCents": 125000}', "the very bytes")
        self.assertEqual(request.headers["webhook-id"], delivery)
        self.assertEqual(request.headers["idempotency-key"], delivery)
        self.assertEqual(STAGE.publish("steady-1", "steady"), delivery, "published again: the same delivery")
        time.sleep(1)
        self.assertEqual(len(self.destination("steady").requests), 1)

    def test_who_may_not_publish_is_told_so(self):
        event = {"event_id": "x", "tenant": "acme", "type": "a.b", "destination": "steady", "payload": 1}
        self.assertEqual(STAGE.post(event, token=None)[0], 401)
        self.assertEqual(STAGE.post(event, token="another")[0], 401)
        self.assertEqual(STAGE.post({**event, "tenant": "northwind"})[0], 403)
        self.assertEqual(STAGE.post(b"not json")[0], 400)

    def test_a_producer_that_was_told_503_publishes_again(self):
        """Roles are enforced here. Without the grant to send, the record stands and no wake-up does."""
        with STAGE.without("ingest", "SendWakeUps"):
            event = {"event_id": "again-1", "tenant": "acme", "type": "a.b", "destination": "again", "payload": 1}
            status, answer = STAGE.post(event)
            self.assertEqual(status, 503, answer)
        status, answer = STAGE.post(event)
        self.assertEqual((status, answer["deliveries"][0]["repeated"]), (202, True))
        STAGE.reaches(answer["deliveries"][0]["delivery_id"], "succeeded")
        self.assertEqual(len(self.destination("again").requests), 1)

    def test_a_payload_too_large_for_the_table_goes_through_the_bucket(self):
        payload = "x" * 100_000
        delivery = STAGE.publish("steady-large", "bulk", payload=payload)
        STAGE.reaches(delivery, "succeeded")
        (request,) = [r for r in self.destination("bulk").requests if r.delivery == delivery]
        self.assertEqual(request.body, json.dumps(payload).encode())
        listed = STAGE.aws.client("s3").list_objects_v2(Bucket=STAGE.aws.outputs["bucket"], Prefix="payloads/")
        self.assertEqual(listed["KeyCount"], 1)

    def test_500_500_200_is_three_requests_of_one_delivery(self):
        delivery = STAGE.publish("flaky-1", "flaky")
        STAGE.reaches(delivery, "succeeded")
        requests = self.destination("flaky").requests
        self.assertEqual([r.headers["waybill-attempt"] for r in requests], ["1", "2", "3"])
        self.assertEqual({r.headers["webhook-id"] for r in requests}, {delivery})
        self.assertEqual({r.body for r in requests}, {requests[0].body})
        self.assertEqual([e["number"] for e in STAGE.evidence(delivery)], [1, 2], "what failed left evidence")

    def test_a_retry_is_a_delayed_message_and_never_early(self):
        delivery = STAGE.publish("patient-1", "patient")
        (first,) = eventually("evidence", lambda: STAGE.evidence(delivery))
        STAGE.reaches(delivery, "succeeded", 40)
        due_at = first["next"]["retry"]["due_at"]
        self.assertGreaterEqual(self.destination("patient").times[1], due_at / 1000)
        self.assertLess(self.destination("patient").times[1], due_at / 1000 + 4, "and not much later")

    def test_a_refusal_is_buried_with_its_reason(self):
        delivery = STAGE.publish("refused-1", "refusing")
        STAGE.reaches(delivery, "dead_lettered")
        self.assertEqual(len(self.destination("refusing").requests), 1, "nobody asks twice")

        def letters():
            return [(b, a) for b, a in STAGE.dead_letters() if delivery in b]

        ((body, attributes),) = eventually("a dead letter", letters)
        letter = json.loads(body)
        self.assertEqual(letter["kind"], "dead_letter")
        self.assertEqual(letter["attempts_made"], 1)
        self.assertIn(letter["reason"], attributes.values())

    def test_c31_c35_one_bad_record_fails_alone(self):
        """Over the queue: junk is buried as it is; a newer version is left, received again, and ends
        in the dead-letter queue by the queue's own policy; the good ones beside them go through."""
        newer = '{"waybill": 4711, "kind": "wake_up"}'
        junk = "not json: 7f3a"
        STAGE.consuming(False)
        try:
            deliveries = [STAGE.publish(f"batch-{n}", "batch") for n in range(4)]
            STAGE.send(junk, newer)
        finally:
            STAGE.consuming(True)
        for delivery in deliveries:
            STAGE.reaches(delivery, "succeeded", 20)
        bodies = eventually("the junk", lambda: [m for m in STAGE.dead_letters() if m[0] == junk])
        self.assertEqual(len(bodies), 1)
        self.assertIn("undecodable", bodies[0][1].values())
        # Hidden for the visibility timeout after each receive but the last.
        within_s = VISIBILITY_S * (RECEIVES + 1) + 15
        eventually("the newer", lambda: [m for m in STAGE.dead_letters() if m[0] == newer], within_s)
        self.assertEqual(len(self.destination("batch").requests), 4, "nothing was sent twice because of it")

    def test_c33_the_answer_names_the_failed_record_and_no_other(self):
        newer = '{"waybill": 4711, "kind": "wake_up"}'
        junk = "not json: c33"
        error, answer = STAGE.invoke("consumer", STAGE.batch(junk, newer))
        self.assertIsNone(error, answer)
        self.assertEqual(answer, {"batchItemFailures": [{"itemIdentifier": "m1"}]})
        # SQS takes no empty body, so what came with one cannot be buried: it is left to the queue.
        self.assertEqual(
            STAGE.invoke("consumer", STAGE.batch(junk, "")), (None, {"batchItemFailures": [{"itemIdentifier": "m1"}]}),
        )
        self.assertEqual(STAGE.invoke("consumer", STAGE.batch()), (None, {"batchItemFailures": []}))

    def test_a_function_killed_in_the_middle_of_an_attempt_loses_nothing(self):
        delivery = STAGE.publish("killed-1", "killed")
        requests = self.destination("killed").requests
        eventually("the first request", lambda: requests)
        self.assertGreaterEqual(STAGE.kill("consumer"), 1)
        STAGE.reaches(delivery, "succeeded", VISIBILITY_S * 2 + 20)
        self.assertEqual([r.headers["waybill-attempt"] for r in requests], ["1", "2"])
        self.assertEqual({r.headers["webhook-id"] for r in requests}, {delivery})
        (first,) = STAGE.evidence(delivery)
        self.assertEqual(first["failure"]["class"], "interrupted")
        self.assertEqual(first["failure"]["applied"], "unknown")
        self.assertEqual(len(self.destination("killed").effects), 1)

    def test_consumers_that_fight_for_one_delivery_send_once(self):
        STAGE.consuming(False)
        try:
            delivery = STAGE.publish("contested-1", "contested")
            body = STAGE.take()
            answers, start = [], threading.Barrier(4)

            def consume(n):
                start.wait()
                answers.append(STAGE.invoke("consumer", {"Records": [STAGE.record(f"copy-{n}", body)]}))

            consumers = [threading.Thread(target=consume, args=(n,)) for n in range(4)]
            for consumer in consumers:
                consumer.start()
            for consumer in consumers:
                consumer.join()
        finally:
            STAGE.consuming(True)
        STAGE.reaches(delivery, "succeeded")
        self.assertEqual(answers, [(None, {"batchItemFailures": []})] * 4)
        self.assertEqual(len(self.destination("contested").requests), 1)
        self.assertEqual(STAGE.evidence(delivery), [], "the losers made no attempt")

    def test_the_reconciler_finds_what_has_no_message(self):
        STAGE.consuming(False)
        try:
            delivery = STAGE.publish("forgotten-1", "forgotten")
            self.assertIn(delivery, STAGE.take())
        finally:
            STAGE.consuming(True)
        # Stale after 5 s, and a look every minute.
        STAGE.reaches(delivery, "succeeded", 150)
        self.assertEqual(len(self.destination("forgotten").requests), 1)

    def test_a_hundred_events_are_a_hundred_effects(self):
        deliveries = {STAGE.publish(f"bulk-{n}", "bulk") for n in range(100)}
        self.assertEqual(len(deliveries), 100)
        effects = self.destination("bulk").effects
        eventually("every effect", lambda: deliveries <= effects.keys())
        for delivery in deliveries:
            STAGE.reaches(delivery, "succeeded")


if __name__ == "__main__":
    unittest.main()
