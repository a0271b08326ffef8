"""`waybill --backend aws` beside the deployed functions, and the rehearsals on ledger and queue of AWS."""

import json
import re
import tempfile
import unittest

import destinations
from stage import deployed

STAGE = None


def setUpModule():
    global STAGE
    STAGE = deployed()


def event(event_id, destination, payload=1):
    facts = {"event_id": event_id, "tenant": "acme", "type": "lease.signed", "destination": destination}
    return json.dumps({**facts, "payload": payload})


class CommandLine(unittest.TestCase):
    def test_what_is_published_by_hand_is_delivered_and_can_be_looked_at(self):
        code, answers = STAGE.facts("publish", stdin=event("typed-1", "typed"))
        self.assertEqual(code, 0, answers)
        delivery = answers[0]["deliveries"][0]["delivery_id"]
        STAGE.reaches(delivery, "succeeded")

        code, (shown,) = STAGE.facts("deliveries", "show", delivery)
        self.assertEqual((code, shown["state"], shown["attempts_made"]), (0, "succeeded", 1))
        code, listed = STAGE.facts("deliveries", "list", "--tenant", "acme", "--destination", "typed")
        self.assertEqual((code, [facts["delivery_id"] for facts in listed]), (0, [delivery]))
        code, listed = STAGE.facts("deliveries", "list", "--destination", "typed", "--state", "pending")
        self.assertEqual((code, listed), (0, []))
        code, text, _ = STAGE.command("deliveries", "show", delivery)
        self.assertIn("the recipient acknowledged attempt 1", text)

    def test_a_bad_line_is_told_and_the_others_go_through(self):
        lines = [event("lines-1", "lines"), "not json", event("lines-1", "lines", payload=2), event("lines-2", "lines")]
        code, answers = STAGE.facts("publish", stdin="\n".join(lines))
        self.assertEqual(code, 2, answers)
        accepted = [answer for answer in answers if "deliveries" in answer]
        self.assertEqual(len(accepted), 2, answers)
        for answer in accepted:
            STAGE.reaches(answer["deliveries"][0]["delivery_id"], "succeeded")
        code, _, said = STAGE.command("publish", stdin=event("lines-1", "lines", payload=2))
        self.assertEqual(code, 3, said)

    def test_dead_letters_are_counted_and_listed_with_their_reason(self):
        deliveries = {STAGE.publish(f"typo-{n}", "typo") for n in range(2)}
        for delivery in deliveries:
            STAGE.reaches(delivery, "dead_lettered")
        code, groups = STAGE.facts("dead-letters", "summary", "--tenant", "acme")
        (group,) = [group for group in groups if group["destination"] == "typo"]
        self.assertEqual((code, group["count"]), (0, 2))
        reason = group["reason"]
        code, listed = STAGE.facts("dead-letters", "list", "--destination", "typo", "--reason", reason)
        self.assertEqual((code, {facts["delivery_id"] for facts in listed}), (0, deliveries))
        code, listed = STAGE.facts("dead-letters", "list", "--destination", "steady")
        self.assertEqual((code, listed), (0, []))

    def test_a_timeout_that_the_consumer_has_no_time_for_is_refused(self):
        """The consumer of these tests runs for 5 s, and keeps 3 of them."""
        good = destinations.document(STAGE.destinations, STAGE.changes)
        for document, expected in [(good, 0), (good.replace('timeout = "2s"', 'timeout = "3s"', 1), 2)]:
            with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
                file.write(document)
                file.flush()
                code, faults = STAGE.facts("config", "check", "--allow-local", file.name)
            self.assertEqual(code, expected, faults)
        (fault,) = faults
        line = next(n for n, text in enumerate(document.splitlines(), 1) if text == 'timeout = "3s"')
        self.assertEqual(fault["line"], line)
        self.assertTrue(fault["key"].endswith(".timeout"), fault)
        self.assertIn("at most 2s", fault["rule"])

    def test_the_doctor_looks_at_everything_that_was_deployed(self):
        _, found = STAGE.facts("doctor", "--allow-local")
        verdicts = {facts["what"]: facts["verdict"] for facts in found}
        looked_at = ("caller", "table", "clock", "time to live", "queue", "bucket", "configuration in force")
        self.assertEqual({what: verdicts.get(what) for what in looked_at}, {what: "fine" for what in looked_at}, found)
        # A queue that hides a message for less than six times as long as the consumer runs.
        code, found = STAGE.facts("doctor", "--allow-local", environment={"WAYBILL_CONSUMER_TIMEOUT_S": "900"})
        queue = next(facts for facts in found if facts["what"] == "queue")
        self.assertEqual((code, queue["verdict"]), (1, "mend"), found)
        self.assertIn("visibility timeout", queue["says"])

    def test_what_is_not_there_is_said(self):
        unknown = "whd_" + "0" * 26
        code, _, said = STAGE.command("deliveries", "show", unknown)
        self.assertEqual(code, 1)
        self.assertIn(unknown, said)


class Rehearsals(unittest.TestCase):
    """Each works on a table and queues of its own, and takes them away."""

    def test_they_tell_the_same_as_on_the_embedded_backend(self):
        tables = set(STAGE.dynamo.list_tables()["TableNames"])
        code, on_aws, said = STAGE.command("rehearse", "all")
        self.assertEqual(code, 0, on_aws + said)
        code, embedded, said = STAGE.command("rehearse", "all", backend=None)
        self.assertEqual(code, 0, embedded + said)
        self.assertEqual(told(on_aws), told(embedded))
        self.assertIn("in all:", on_aws)
        self.assertEqual(set(STAGE.dynamo.list_tables()["TableNames"]), tables)
        self.assertEqual(STAGE.sqs.list_queues(QueueNamePrefix="waybill-rehearsal").get("QueueUrls", []), [])


def told(story):
    """A story without its times, and without what chance decided."""
    return [normal(line) for line in story.splitlines() if not is_chance(line)]


def is_chance(line):
    """Which of two workers at once meets the other's claim, and which one its settle."""
    return "the duplicate of the wake-up" in line


def normal(line):
    line = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z|\d\d:\d\d:\d\d\.\d{3}", "TIME", line)
    line = re.sub(r"\b(in|took|drew) +[\dhms.]+", r"\1 SPAN", line)
    line = re.sub(r"[\dhms.]+ after it was claimed|[\dhms.]+(?= from trigger to result)", "SPAN", line)
    # The name of a run begins with the time of its plan.
    line = re.sub(r"\brdr_[0-9A-Z]{26}\b", "RUN", line)
    return re.sub(r"the wake-up \S+ is lost", "the wake-up is lost", line)


if __name__ == "__main__":
    unittest.main()
