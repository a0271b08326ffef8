"""The operator on AWS: what is ordered at the command line, the deployed functions carry out.

Who acts is whoever the credentials belong to, and the policies of infra/operators.tf bound them: the
emulator enforces all of these but the leading keys, for which `leading_keys` stands in.
"""

import tempfile
import time
import unittest
from contextlib import contextmanager
from pathlib import Path

from leading_keys import LeadingKeys
from stage import deployed, eventually

STAGE = None

# A configuration and the holds are read again after ten seconds.
HOLD_S = 10


def setUpModule():
    global STAGE
    STAGE = deployed()


def event(event_id, destination):
    return {
        "event_id": event_id, "tenant": "acme", "type": "lease.payment_recorded",
        "destination": destination, "payload": 1,
    }


def look():
    """A minute of the reconciler's, at once."""
    error, answer = STAGE.invoke("reconciler", {})
    assert error is None, answer


class Operator(unittest.TestCase):
    def done(self, *arguments, **more):
        code, facts = STAGE.facts(*arguments, **more)
        self.assertEqual(code, 0, (arguments, facts))
        return facts

    def test_a_configuration_is_seen_within_ten_seconds(self):
        self.assertEqual(STAGE.post(event("late-0", "late"))[0], 422, "there is no such destination yet")
        revision = STAGE.apply("late", "a new recipient")
        begun = time.monotonic()
        answer = eventually("accepted", lambda: accepted(event("late-1", "late")), HOLD_S + 5)
        self.assertLessEqual(time.monotonic() - begun, HOLD_S + 1.5)
        STAGE.reaches(answer["deliveries"][0]["delivery_id"], "succeeded", HOLD_S + 20)
        (newest, *_) = self.done("config", "history")
        self.assertEqual(newest["config_revision"], revision)
        (shown,) = self.done("config", "show")
        self.assertIn("[destinations.late]", shown["document"])

    def test_a_hold_stops_sending_and_lifting_it_releases(self):
        (hold,) = self.done("hold", "add", "--destination", "paused", "--why", "they asked us to wait")
        time.sleep(HOLD_S + 1)
        delivery = STAGE.publish("paused-1", "paused")
        eventually("held", lambda: "held_to" in STAGE.items(delivery, "RECORD")[0])
        time.sleep(3)
        self.assertEqual(STAGE.destinations["paused"].requests, [])
        self.assertIn(hold["hold"], [facts["hold"] for facts in self.done("hold", "list")])

        self.done("hold", "lift", hold["hold"], "--why", "they are back")
        eventually("released", lambda: look() or "held_to" not in STAGE.items(delivery, "RECORD")[0], HOLD_S + 20)
        # A consumer that has not heard of the lift yet holds it once more; the next look lets it go.
        eventually("sent", lambda: look() or STAGE.state(delivery) == "succeeded", HOLD_S + 20)
        self.assertEqual(len(STAGE.destinations["paused"].requests), 1)
        self.assertNotIn(hold["hold"], [facts["hold"] for facts in self.done("hold", "list")])

    def test_dead_letters_are_redriven_once_what_failed_was_corrected(self):
        deliveries = [STAGE.publish(f"locked-{n}", "locked") for n in range(3)]
        for delivery in deliveries:
            STAGE.reaches(delivery, "dead_lettered")
        selection = ("--tenant", "acme", "--destination", "locked")
        with tempfile.TemporaryDirectory() as folder:
            plan = str(Path(folder) / "plan.json")
            (planned,) = self.done("redrive", "plan", *selection)
            self.assertEqual((planned["selected"], planned["to_release"], planned["blocked"]), (3, 0, 3), planned)

            STAGE.destinations["locked"].is_mended = True
            STAGE.apply("unlocked", "they gave us another secret")
            eventually("corrected", lambda: self.done("redrive", "plan", *selection)[0]["to_release"] == 3)
            (planned,) = self.done("redrive", "plan", *selection, "--save", plan)
            self.assertEqual((planned["selected"], planned["to_release"]), (3, 3), planned)
            self.assertEqual(len(STAGE.destinations["locked"].requests), 3, "a plan sends nothing")

            time.sleep(HOLD_S)  # or the consumer would send by the old configuration
            start = ("redrive", "start", plan, "--rate", "10/s", "--sample", "1", "--why", "the secret is right now")
            (run,) = self.done(*start)
            (again,) = self.done(*start)
            self.assertEqual((again["run"], again["already"]), (run["run"], True))
        run = run["run"]
        self.reaches_standing(run, "sampled")
        effects = STAGE.destinations["locked"].effects
        eventually("the sample", lambda: len(effects) == 1)
        self.done("redrive", "resume", run, "--why", "the sample arrived")
        self.reaches_standing(run, "finished")
        for delivery in deliveries:
            STAGE.reaches(delivery, "succeeded")
        requests = STAGE.destinations["locked"].requests
        for delivery in deliveries:
            of = [request.headers["waybill-attempt"] for request in requests if request.delivery == delivery]
            self.assertEqual(of, ["1", "2"], "one refused, one applied")
        self.assertEqual(set(effects), set(deliveries))
        (shown,) = self.done("deliveries", "show", deliveries[0])
        self.assertIn(run, [act["subject"] for act in shown["acts"]])
        self.intact()

    def reaches_standing(self, run, standing):
        def stands():
            look()
            (facts,) = self.done("redrive", "status", run)
            return facts["standing"] == standing

        eventually(f"{run} {standing}", stands, 90)

    def test_a_dead_letter_is_closed_by_the_reconciler(self):
        delivery = STAGE.publish("closing-1", "closing")
        STAGE.reaches(delivery, "dead_lettered")
        (ordered,) = self.done("dead-letters", "close", delivery, "--why", "the lease has ended")

        def closed():
            look()
            return not self.done("dead-letters", "list", "--tenant", "acme", "--destination", "closing")

        eventually("closed", closed)
        (again,) = self.done("dead-letters", "close", delivery, "--why", "the lease has ended")
        self.assertTrue(again["already"], again)
        entries = [e for e in self.done("audit", "list", "--tenant", "acme") if e["subject"] == delivery]
        self.assertEqual([(e["act"], e["who"]) for e in entries], [("closed", "arn:aws:iam::000000000000:root")])
        self.intact()

    def intact(self):
        self.assertTrue(all(book["broken"] == [] for book in self.done("audit", "verify")))

    # --- who may what -------------------------------------------------------------------------

    def test_the_caller_says_who_acts_and_the_line_does_not(self):
        code, _, said = STAGE.command("--operator", "maria", "hold", "list")
        self.assertEqual(code, 2, said)
        self.assertIn("credentials", said)

    def test_whom_no_policy_allows_it_is_refused(self):
        with STAGE.user("nobody", None) as credentials:
            code, _, said = STAGE.command("audit", "list", "--tenant", "acme", environment=credentials)
        self.assertEqual(code, 3, said)
        self.assertIn("not authorized to perform", said)
        self.assertEqual(len(said.strip().splitlines()), 1, said)

    def test_an_operator_of_one_tenant_needs_that_tenants_keys_alone(self):
        delivery = STAGE.publish("minding-1", "minding")
        STAGE.reaches(delivery, "dead_lettered")
        with self.maria() as (mine, keys):
            for line in [
                ("deliveries", "list", "--destination", "minding"), ("deliveries", "show", delivery),
                ("dead-letters", "summary"), ("dead-letters", "list"), ("destinations", "list"),
                ("redrive", "plan"), ("redrive", "status"), ("hold", "list"), ("hold", "list", "--all"),
                ("dead-letters", "close", delivery, "--why", "seen"), ("audit", "list"), ("audit", "verify"),
            ]:
                self.assertEqual((mine(*line)[0], keys.denied), (0, []), line)
            held = ("hold", "add", "--type", "nothing.of.this", "--tenant", "acme", "--why", "trying")
            code, (hold,) = mine(*held)
            self.assertEqual((code, mine("hold", "lift", hold["hold"], "--why", "tried")[0], keys.denied), (0, 0, []))
        entries = self.done("audit", "list", "--tenant", "acme")
        (closed,) = [entry for entry in entries if entry["subject"] == delivery]
        self.assertEqual((closed["act"], closed["who"]), ("closed", "arn:aws:iam::000000000000:user/maria"))

    def test_what_is_beyond_one_tenant_is_refused_and_audited(self):
        with self.maria() as (mine, keys):
            for line in [
                ("deliveries", "list", "--tenant", "northwind"), ("audit", "list", "--tenant", "northwind"),
                ("redrive", "plan", "--tenant", "northwind"), ("config", "history"),
                ("hold", "add", "--all", "--why", "trying"),
            ]:
                self.assertEqual((mine(*line)[0], keys.denied), (3, []), line)
            # An ID of nobody's is answered as one of another tenant's is.
            self.assertEqual((mine("deliveries", "show", "whd_" + "0" * 26)[0], keys.denied), (1, []))
        entries = self.done("audit", "list", "--tenant", "acme")
        refused = {e["subject"] for e in entries if e["act"] == "refused" and e["who"].endswith("user/maria")}
        self.assertLessEqual({"deliveries list", "audit list", "redrive plan", "config history", "hold add"}, refused)

    def test_whoever_is_across_by_the_configuration_alone_gets_no_further_than_the_keys(self):
        with LeadingKeys(STAGE.aws.endpoint, STAGE.policy("operator-acme")["Statement"]) as keys:
            environment = {"AWS_ENDPOINT_URL_DYNAMODB": keys.url}
            code, _, said = STAGE.command("audit", "verify", environment=environment)
        self.assertEqual((code, keys.denied), (3, [("Query", "BOOKS")]), said)

    @contextmanager
    def maria(self):
        """Runs commands as an operator of acme's, under the policy that infra/operators.tf makes."""
        policy = STAGE.policy("operator-acme")
        with STAGE.user("maria", policy) as credentials:
            with LeadingKeys(STAGE.aws.endpoint, policy["Statement"]) as keys:
                environment = {**credentials, "AWS_ENDPOINT_URL_DYNAMODB": keys.url}
                yield (lambda *line: STAGE.facts(*line, environment=environment)), keys


def accepted(event):
    status, answer = STAGE.post(event)
    return answer if status == 202 else None


if __name__ == "__main__":
    unittest.main()
