"""The deployed consumer dies, hangs and loses its ledger while events flow; afterwards everything is counted.

`make test-aws` runs half a minute of it; `make crashes-aws CRASH_S=300` goes on for longer, and prints the figures
that stand in docs/RELIABILITY.md.
"""

import os
import signal
import time
import unittest

from counting import Flow, Killer
from outage import Outage
from stage import CONSUMER_TIMEOUT_S, VISIBILITY_S, deployed, eventually

STAGE = None

# For how long events flow and functions die, and for how long the ledger cannot be reached.
CRASH_S = float(os.environ.get("WAYBILL_CRASH_S", "10"))
OUTAGE_S = float(os.environ.get("WAYBILL_OUTAGE_S", "8"))
BACKLOG = 200
SEED = int(os.environ.get("WAYBILL_CRASH_SEED", "7319"))

# Of a delivery without a deadline: two hidings of a copy that comes again, and the attempts after it.
ENDS_WITHIN_S = 2 * VISIBILITY_S + 60


def setUpModule():
    global STAGE
    STAGE = deployed()


class Crashes(unittest.TestCase):
    def kept(self, flow, within_s=ENDS_WITHIN_S):
        """Every promise, counted."""
        states = flow.all_end(within_s)
        tally = flow.tally(states)
        print(f"\n  {tally}", flush=True)
        self.assertEqual(tally["ended"], tally["accepted"], "lost")
        broken = ("succeeded without an effect", "unverified", "duplicate effects", "after the deadline")
        self.assertEqual({what: tally[what] for what in broken}, dict.fromkeys(broken, 0))
        return tally

    def test_killed_at_random_moments_while_events_flow_loses_nothing(self):
        destinations = ["killed-deduplicating", "killed-plain", "killed-hurried"]
        # In a short run the consumer alone: on a machine that cold starts all of them little else would happen.
        functions = ["consumer"] if CRASH_S < 60 else ["consumer", "consumer", "consumer", "reconciler", "ingest"]
        deadlines = {"killed-hurried": 12.0}
        flow = Flow(STAGE, "killed-at-random", destinations, deadlines=deadlines)
        STAGE.consuming(False)
        try:
            flow.backlog(BACKLOG)
        finally:
            STAGE.consuming(True)
        with flow, Killer(STAGE, functions, SEED, (0.2, 1.2)) as killer:
            time.sleep(CRASH_S)
            flow.stop()
        print(f"\n  seed {SEED}, killed: {dict(killer.killed)}", end="")
        tally = self.kept(flow)
        self.assertGreaterEqual(killer.killed["consumer"], 3)
        interrupted = [
            delivery for delivery in flow.accepted
            if any(e["failure"]["class"] == "interrupted" for e in STAGE.evidence(delivery))
        ]
        print(f"  interrupted attempts in {len(interrupted)} deliveries", flush=True)
        self.assertGreaterEqual(len(interrupted), 1, "somebody died in the middle of an attempt")
        self.assertGreater(tally["requests"], tally["accepted"] / 2)

    def test_a_function_that_hangs_is_ended_by_its_timeout_and_loses_nothing(self):
        """It stands still in the middle of an attempt until Lambda ends it."""
        delivery = STAGE.publish("hung-1", "hung")
        requests = STAGE.destinations["hung"].requests
        eventually("the first request", lambda: requests)
        hung = STAGE.aws.processes("consumer")
        for process in hung:
            os.kill(process, signal.SIGSTOP)
        try:
            eventually("one ended by the timeout", lambda: any(map(is_ended, hung)), CONSUMER_TIMEOUT_S + 15)
        finally:
            for process in (process for process in hung if not is_ended(process)):
                os.kill(process, signal.SIGCONT)  # it had no batch in hand
        STAGE.reaches(delivery, "succeeded", VISIBILITY_S * 2 + 20)
        (first,) = STAGE.evidence(delivery)
        self.assertEqual((first["failure"]["class"], first["failure"]["applied"]), ("interrupted", "unknown"))
        self.assertEqual([r.headers["waybill-attempt"] for r in requests], ["1", "2"])
        self.assertEqual(len(STAGE.destinations["hung"].effects), 1)

    def test_a_function_whose_time_is_too_short_for_an_attempt_begins_none(self):
        """Its timeout was shortened behind the configuration's back: nothing is sent that could be cut off, and
        once it is mended everything goes."""
        name = STAGE.aws.outputs["functions"]["consumer"]
        STAGE.lambdas.update_function_configuration(FunctionName=name, Timeout=2)
        try:
            with Flow(STAGE, "cut-off", ["cut-off"], pause_s=0.0, most=20) as flow:
                flow.join()
            time.sleep(3)
            self.assertEqual(STAGE.destinations["cut-off"].requests, [])
        finally:
            STAGE.lambdas.update_function_configuration(FunctionName=name, Timeout=CONSUMER_TIMEOUT_S)
        tally = self.kept(flow)
        self.assertEqual((tally["succeeded"], tally["requests"]), (20, 20))

    def test_the_ledger_out_of_reach_of_the_consumer_loses_nothing(self):
        destinations = ["killed-deduplicating", "killed-plain"]
        with Outage(STAGE, "consumer") as outage:
            with Flow(STAGE, "unreachable", destinations, pause_s=0.05) as flow:
                time.sleep(2)
                outage.begin()
                time.sleep(OUTAGE_S)
                ended = {delivery for delivery in list(flow.accepted) if STAGE.state(delivery) == "succeeded"}
                outage.end()
                flow.stop()
            self.assertGreater(outage.refused, 0, "the consumer asked meanwhile")
            print(f"\n  {outage.refused} requests refused in {OUTAGE_S} s", end="")
            self.assertLess(len(ended), len(flow.accepted), "nothing was settled meanwhile")
            self.kept(flow)


def is_ended(process):
    """Whether it runs no more; one that nobody has waited for yet is ended, too."""
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


if __name__ == "__main__":
    unittest.main()
