"""Producers: publish over HTTP, and publish the same event again until it is answered."""

import hashlib
import json
import random
import threading
import time
from dataclasses import dataclass

from recipients import MANNERS

PRODUCERS = 8
WITH_DEADLINE = 0.2
# No answer at all, or one that asks to come again.
AGAIN = (None, 503)
PAUSE_S = 0.1


@dataclass
class Published:
    manner: str
    digest: str
    # A whole second, so that a signature's time, which is one, tells on which side of it a request was sent.
    deadline_s: int | None
    # The last answer: 202 accepts it; 400 refuses it, which is right where its deadline came first.
    status: int | None = None
    answered_s: float = 0


class Producers:
    """Eight threads; together about `rate` events a second."""

    def __init__(self, waybill, rate, seed):
        self.waybill, self.pause_s, self.seed = waybill, PRODUCERS / rate, seed
        self.published, self.lock, self.is_over = {}, threading.Lock(), threading.Event()
        # What was answered, and when, for faults that ask what was said meanwhile.
        self.answers = []
        self.threads = [threading.Thread(target=self.produce, args=(n,)) for n in range(PRODUCERS)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        """No new event; each producer is answered for its last one."""
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def produce(self, producer):
        draws, nth = random.Random(f"{self.seed} producer {producer}"), 0
        while not self.is_over.is_set():
            nth += 1
            begun = time.monotonic()
            self.publish(f"evt-{producer}-{nth}", draws)
            time.sleep(max(0, draws.uniform(0, 2) * self.pause_s - (time.monotonic() - begun)))

    def publish(self, event_id, draws):
        manner = draws.choice(list(MANNERS))
        payload = json.dumps({"event": event_id, "filler": "x" * draws.randrange(0, 3000)}).encode()
        deadline_s = int(time.time()) + draws.randrange(4, 25) if draws.random() < WITH_DEADLINE else None
        event = {"event_id": event_id, "tenant": "acme", "type": "lease.signed", "destination": manner}
        if deadline_s:
            event["deadline"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(deadline_s))
        body = json.dumps(event).encode()[:-1] + b',"payload":' + payload + b"}"
        one = Published(manner, hashlib.sha256(payload).hexdigest(), deadline_s)
        with self.lock:
            self.published[event_id] = one
        while True:
            answer = self.waybill.post(body)
            status = answer[0] if answer else None
            self.answers.append((time.time(), status))
            if status not in AGAIN:
                one.status, one.answered_s = status, time.time()
                return
            time.sleep(PAUSE_S)
