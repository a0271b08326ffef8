"""A rollback on deployed functions: two versions of the consumer over one queue and one ledger, and the page
"Rolling back" of the runbook, as it is printed.

The newer one is the consumer of a version that is not there yet (tests/aws/next_consumer): it writes envelopes of
the next version, and the deployed one, which must leave those, is what would be rolled back to.
"""

import json
import tempfile
import time
import unittest
from pathlib import Path

from counting import Flow
from runbook import page
from stage import VISIBILITY_S, deployed, eventually, feed
from versions import next_version

STAGE = None
HOLD_S = 10
NEXT = "waybill-local-events-consumer-next"


def setUpModule():
    global STAGE
    STAGE = deployed()


class Rollback(unittest.TestCase):
    def done(self, *arguments):
        code, facts = STAGE.facts(*arguments)
        self.assertEqual(code, 0, (arguments, facts))
        return facts

    def kept(self, flow, within_s=2 * VISIBILITY_S + 60):
        states = flow.all_end(within_s)
        tally = flow.tally(states)
        print(f"\n  {tally}", flush=True)
        self.assertEqual(tally["succeeded"], tally["accepted"])
        self.assertEqual((tally["duplicate effects"], tally["duplicate requests"], tally["unverified"]), (0, 0, 0))

    def test_two_versions_over_one_queue_and_one_ledger_lose_nothing_when_the_newer_one_goes(self):
        with next_version(STAGE) as newer:
            # Alone at first, so that it has worked for certain; then both.
            STAGE.consuming(False)
            newer.feeding(True)
            first = STAGE.publish("two-versions-first", "two-versions")
            STAGE.reaches(first, "succeeded", 2 * VISIBILITY_S + 60)
            STAGE.consuming(True)
            with Flow(STAGE, "two-versions", ["two-versions"], most=120) as flow:
                flow.join()
                added = self.adds_what_only_it_knows(list(flow.accepted)[-20:])
                newer.feeding(False)
            self.kept(flow)
        self.assertEqual(self.who_sent([first, *flow.accepted]), {"this", "next"}, "both have worked")
        for delivery in added:
            text = STAGE.items(delivery, "RECORD")[0]["record"]["S"]
            self.assertIn('"added_by_next":{"kept":true}', text, "what the newer one keeps is there after the older")

    def adds_what_only_it_knows(self, deliveries):
        """What a newer version keeps in a record; of those that nobody has written since. The IDs."""
        added = []
        for delivery in deliveries:
            (item,) = STAGE.items(delivery, "RECORD")
            if item["state"]["S"] not in ("pending", "retryable"):
                continue
            record = {**json.loads(item["record"]["S"]), "added_by_next": {"kept": True}}
            try:
                STAGE.dynamo.update_item(
                    TableName=STAGE.aws.outputs["table"], Key={"pk": item["pk"], "sk": item["sk"]},
                    # A write as any other: whoever has read the record before it loses theirs.
                    UpdateExpression="SET #text = :new, revision = revision + :one",
                    ConditionExpression="#text = :old AND revision = :read",
                    ExpressionAttributeNames={"#text": "record"},
                    ExpressionAttributeValues={
                        ":new": {"S": json.dumps(record, separators=(",", ":"))}, ":old": item["record"],
                        ":one": {"N": "1"}, ":read": item["revision"],
                    },
                )
                added.append(delivery)
            except STAGE.dynamo.exceptions.ConditionalCheckFailedException:
                pass
        self.assertGreater(len(added), 0, "something was under way")
        return added

    def who_sent(self, deliveries):
        """Which versions sent: their functions' logs say."""
        logs, found = STAGE.aws.client("logs"), set()
        for version, function in (("this", STAGE.aws.outputs["functions"]["consumer"]), ("next", NEXT)):
            for event in logs.filter_log_events(logGroupName=f"/aws/lambda/{function}")["events"]:
                if '"attempt"' in event["message"] and any(d in event["message"] for d in deliveries):
                    found.add(version)
        return found

    def test_the_page_of_the_runbook(self):
        """Gate, keep what is queued and dead-lettered, deploy the older, resume with low concurrency."""
        going, refusing = STAGE.destinations["rolled-back"], STAGE.destinations["rolled-back-refusing"]
        mapping = STAGE.aws.outputs["event_source_mapping"]
        STAGE.apply("to be rolled back", "came with the newer version")
        with next_version(STAGE) as newer:
            STAGE.consuming(False)
            newer.feeding(True)
            first = [STAGE.publish(f"rolled-back-{n}", "rolled-back") for n in range(10)]
            dead = [STAGE.publish(f"rolled-back-refused-{n}", "rolled-back-refusing") for n in range(3)]
            for delivery in dead:
                STAGE.reaches(delivery, "dead_lettered")
            for delivery in first:
                eventually("tried", lambda: any(r.delivery == delivery for r in going.requests))

            code, facts = self.run_page("hold", "add")
            self.assertEqual(code, 0)
            time.sleep(HOLD_S + 1)
            sent = len(going.requests)
            queued = [STAGE.publish(f"rolled-back-later-{n}", "rolled-back") for n in range(20)]
            time.sleep(2)

            newer.feeding(False)
            feed(STAGE.lambdas, mapping, True, ScalingConfig={"MaximumConcurrency": 2})
            STAGE.invoke("reconciler", {})
            time.sleep(2)
            self.assertEqual(len(going.requests), sent, "nothing goes behind the gate")
            bodies = [body for body, _ in STAGE.dead_letters() if any(d in body for d in dead)]
            self.assertEqual(len(bodies), 3, "dead letters stay")
            self.assertTrue(all(json.loads(body)["waybill"] == 2 for body in bodies), "as the newer one wrote them")

            for command in (("config", "history"), ("config", "rollback"), ("hold", "list"), ("hold", "lift")):
                self.assertEqual(self.run_page(*command)[0], 0, command)
            opened = time.monotonic()

            def all_through():
                if time.monotonic() > opened + 2:
                    STAGE.invoke("reconciler", {})
                return all(STAGE.state(delivery) == "succeeded" for delivery in first + queued)

            eventually("all go", all_through, 2 * VISIBILITY_S + 60)
            feed(STAGE.lambdas, mapping, True, ScalingConfig={"MaximumConcurrency": 4})
            self.assertEqual(len(going.effects), 30)
            applied = [request.delivery for request in going.requests if request.status == 200]
            self.assertEqual(len(applied), 30, "each is applied once")

            # What is a dead letter in the ledger goes by the older version, too.
            refusing.is_mended = True
            try:
                self.redrive("rolled-back-refusing")
                for delivery in dead:
                    eventually("redriven", lambda: STAGE.invoke("reconciler", {}) and STAGE.state(delivery) == "succeeded", 60)
            finally:
                refusing.is_mended = False
            self.assertEqual(len(refusing.effects), 3)
        STAGE.changes.discard("to be rolled back")

    def run_page(self, *wanted):
        """Runs the commands of the page that begin so: the last exit code and facts, with what stands for
        capitals and numbers looked up, as an operator would."""
        ran = [(words, code) for words, code in page("Rolling back") if tuple(words[: len(wanted)]) == wanted]
        self.assertTrue(ran, f"the page has no {wanted}")
        for words, code in ran:
            words = [self.meant(words, n) for n in range(len(words))]
            got, facts = STAGE.facts(*words)
            self.assertEqual(got, code, (words, facts))
        return got, facts

    def meant(self, words, n):
        if words[n] == "HOLD":
            return self.done("hold", "list")[0]["hold"]
        if words[:2] == ["config", "rollback"] and n == 2:
            return str(self.done("config", "history")[1]["number"])
        return words[n]

    def redrive(self, destination):
        with tempfile.TemporaryDirectory() as folder:
            plan = str(Path(folder) / "plan.json")
            self.done(
                "redrive", "plan", "--tenant", "acme", "--destination", destination,
                "--permanent-reviewed", "they take it now", "--save", plan,
            )
            self.done("redrive", "start", plan, "--rate", "10/s", "--why", "they take it now")


if __name__ == "__main__":
    unittest.main()
