"""A suspension on the deployed functions, from the first refusal until what was held has gone."""

import json
import time
import unittest

from stage import deployed, eventually

STAGE = None

# A process without a budget to write looks at a destination's health that often.
SEEN_AFTER_S = 5
# The first probe's pause, a look of the reconciler's, and what a machine under load takes.
PROBED_WITHIN_S = 60 + 60


def setUpModule():
    global STAGE
    STAGE = deployed()


class Suspension(unittest.TestCase):
    def done(self, *arguments):
        code, facts = STAGE.facts(*arguments)
        self.assertEqual(code, 0, (arguments, facts))
        return facts

    def shown(self):
        (facts,) = self.done("destinations", "show", "suspending")
        return facts["suspension"]

    def acts(self):
        """What the audit says of the suspension: who did what."""
        entries = self.done("audit", "list", "--since", "1h")
        about = [entry for entry in entries if entry["act"] in ("suspended", "suspension_lifted")]
        return [(entry["act"], entry["who"], entry["subject"]) for entry in about]

    def alerts(self):
        """How often the reconciler wrote its alert, and what its metric adds up to."""
        group = f"/aws/lambda/{STAGE.aws.outputs['functions']['reconciler']}"
        lines, token = [], {}
        while True:
            answer = STAGE.aws.client("logs").filter_log_events(logGroupName=group, **token)
            lines += [event["message"] for event in answer["events"]]
            if not answer.get("nextToken"):
                break
            token = {"nextToken": answer["nextToken"]}
        facts = [json.loads(line) for line in lines if line.startswith("{")]
        said = sum("destination suspended" in json.dumps(fact) for fact in facts)
        return said, sum(fact.get("Suspended", 0) for fact in facts)

    def test_what_refuses_is_suspended_probed_and_let_go_and_one_person_is_told_once(self):
        recipient = STAGE.destinations["suspending"]
        refused = [STAGE.publish(f"suspending-{n}", "suspending") for n in range(3)]
        for delivery in refused:
            STAGE.reaches(delivery, "dead_lettered")
        suspension = eventually("suspended", self.shown)
        self.assertEqual((suspension["cause"], suspension["failures"]), ("refused", 3))

        time.sleep(SEEN_AFTER_S + 1)
        sent = len(recipient.requests)
        held = [STAGE.publish(f"suspending-later-{n}", "suspending") for n in range(5)]
        for delivery in held:
            eventually("held", lambda: "held_to" in STAGE.items(delivery, "RECORD")[0])
        self.assertEqual(len(recipient.requests), sent, "what is held costs no request")
        for _ in range(3):
            STAGE.invoke("reconciler", {})  # however often it is carried out
        listed = [hold for hold in self.done("hold", "list") if hold["hold"] == suspension["hold"]]
        self.assertEqual([hold["reason"] for hold in listed], ["suspended"])
        (facts,) = self.done("destinations", "show", "suspending")
        # One of the five was chosen as the first probe, and its wake-up waits for that time.
        self.assertEqual((facts["waiting"]["by_reason"], facts["suspension"]["is_probing"]), ({"suspended": 4}, True))
        self.assertEqual(self.acts(), [("suspended", "automation", suspension["hold"])])

        recipient.is_mended = True
        try:
            for delivery in held:
                eventually("gone", lambda: looked() and STAGE.state(delivery) == "succeeded", PROBED_WITHIN_S)
            eventually("lifted", lambda: looked() and self.shown() is None)
        finally:
            recipient.is_mended = False
        for delivery in held:
            of = [request.headers["waybill-attempt"] for request in recipient.requests if request.delivery == delivery]
            self.assertEqual(of, ["1"])
        self.assertEqual(set(recipient.effects), set(held))
        self.assertEqual(
            sorted(self.acts()),
            [("suspended", "automation", suspension["hold"]), ("suspension_lifted", "automation", suspension["hold"])],
        )
        self.assertEqual(eventually("told", lambda: self.alerts()[0] and self.alerts()), (1, 1), "one alert")
        self.assertNotIn(suspension["hold"], [hold["hold"] for hold in self.done("hold", "list")])


def looked():
    """A minute of the reconciler's, at once."""
    STAGE.invoke("reconciler", {})
    return True


if __name__ == "__main__":
    unittest.main()
