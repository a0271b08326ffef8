"""Events that flow while something breaks, and what became of them: the ledger and the recipients, counted."""

import json
import random
import threading
import time
from collections import Counter
from datetime import datetime, timezone

from stage import eventually

ENDED = {"succeeded", "dead_lettered", "expired"}


def rfc3339(at):
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Flow:
    """Publishes until it is stopped, or so many; as a producer does, again until it is told 202."""

    def __init__(self, stage, name, destinations, pause_s=0.02, most=None, deadlines=None):
        self.stage, self.name, self.destinations, self.pause_s = stage, name, destinations, pause_s
        self.most, self.deadlines = most, deadlines or {}
        # What was accepted: the delivery, its event and its deadline.
        self.accepted, self.repeated, self.failed = {}, 0, None
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        n = 0
        while not self.ends.is_set() and (self.most is None or n < self.most):
            try:
                self.publish(n)
            except Exception as error:  # told in the test's thread
                self.failed = error
                return
            n += 1
            self.ends.wait(self.pause_s)

    def event(self, n):
        """One more event, and its deadline."""
        destination = self.destinations[n % len(self.destinations)]
        event = {
            "event_id": f"{self.name}-{n}", "tenant": "acme", "type": "lease.payment_recorded",
            "destination": destination, "payload": {"n": n},
        }
        window_s = self.deadlines.get(destination)
        deadline = time.time() + window_s if window_s else None
        if deadline:
            event["deadline"] = rfc3339(deadline)
        return event, deadline

    def backlog(self, many):
        """So many at once, by the command line: what waits in the queue makes full batches."""
        events = [self.event(-n) for n in range(1, many + 1)]
        code, answers = self.stage.facts("publish", stdin="\n".join(json.dumps(event) for event, _ in events))
        assert code == 0, answers
        for answer in answers:
            event, deadline = events[answer["line"] - 1]
            self.accepted[answer["deliveries"][0]["delivery_id"]] = (event["event_id"], deadline)

    def publish(self, n):
        event, deadline = self.event(n)
        end = time.monotonic() + 90
        while True:
            try:
                status, answer = self.stage.post(event)
            except OSError as error:  # nobody there to answer
                status, answer = 0, error
            if status == 202:
                break
            assert status in (0, 500, 502, 503, 504) and time.monotonic() < end, (status, answer)
            self.repeated += 1
            time.sleep(0.2)
        self.accepted[answer["deliveries"][0]["delivery_id"]] = (event["event_id"], deadline)

    def __enter__(self):
        self.thread.start()
        return self

    def stop(self):
        self.ends.set()
        self.join()

    def join(self):
        self.thread.join()
        if self.failed:
            raise self.failed

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()

    # --- what became of them ------------------------------------------------------------------

    def all_end(self, within_s):
        """Waits until everything that was accepted has ended; the reconciler looks every few seconds."""
        states, looked = {}, time.monotonic()

        def ended():
            nonlocal looked
            for delivery in list(self.accepted.keys() - states.keys()):
                state = self.stage.state(delivery)
                if state in ENDED:
                    states[delivery] = state
            if len(states) == len(self.accepted):
                return True
            if time.monotonic() > looked + 3:
                self.stage.invoke("reconciler", {})
                looked = time.monotonic()
            return False

        try:
            eventually("all ended", ended, within_s)
        except AssertionError:
            pass  # counted as lost
        return states

    def tally(self, states):
        """Ledger and recipients side by side."""
        requests, effects = [], []
        for name in self.destinations:
            destination = self.stage.destinations[name]
            requests += [request for request in destination.requests if request.delivery in self.accepted]
            effects += [delivery for delivery in destination.effects if delivery in self.accepted]
        applied = Counter(request.delivery for request in requests if request.status == 200)
        late = [
            request for request in requests
            if (self.accepted[request.delivery][1] or float("inf")) <= request.at
        ]
        events = Counter(self.accepted[delivery][0] for delivery in effects)
        succeeded = {delivery for delivery, state in states.items() if state == "succeeded"}
        return {
            "accepted": len(self.accepted), "ended": len(states), **Counter(states.values()),
            "lost": len(self.accepted) - len(states),
            "succeeded without an effect": len(succeeded - set(effects)),
            "requests": len(requests), "unverified": sum(not request.verified for request in requests),
            "duplicate effects": sum(times - 1 for times in events.values()),
            "duplicate requests": sum(times - 1 for times in applied.values()),
            "after the deadline": len(late), "published again": self.repeated,
        }


class Killer:
    """Kills a function's processes at random moments, from a seed."""

    def __init__(self, stage, functions, seed, between_s):
        self.stage, self.functions, self.between_s = stage, functions, between_s
        self.lots, self.killed = random.Random(seed), Counter()
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.ends.wait(self.lots.uniform(*self.between_s)):
            function = self.lots.choice(self.functions)
            self.killed[function] += self.stage.kill(function)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()
