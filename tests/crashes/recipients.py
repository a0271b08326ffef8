"""Independent recipients of five manners, written from the public header specification alone.

Each verifies with the public `standardwebhooks` library, and notes what arrived and when by its own
clock. All but `plain` do what an event says only the first time that they see its `idempotency-key`;
effects are counted by the event, so that one event under two keys would show. What one does with a
request is drawn from the seed, the delivery and how often it came: a run repeats its draws.
"""

import hashlib
import random
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from loopback import Handler, Server
from standardwebhooks.webhooks import Webhook

# What a request comes to: (weight, is it applied, what is answered). "hang" answers after the sender's
# patience, "reset" breaks the connection without an answer.
MANNERS = {
    "steady": [(1, True, 200)],
    "plain": [(1, True, 200)],
    "failing": [(60, True, 200), (20, False, 500), (12, False, 429), (5, True, 502), (3, False, 400)],
    "late": [(80, True, 200), (8, True, "hang"), (12, False, "hang")],
    "reset": [(70, True, 200), (15, True, "reset"), (15, False, "reset")],
}
SENDERS_PATIENCE_S = 2
# How long the others take from the effect to the answer.
WORK_S = 0.03
RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Request:
    manner: str
    event: str
    delivery: str
    key: str
    attempt: int
    digest: str
    # By the sender's clock, as it was signed; by the recipient's, when the whole request was there.
    signed_s: int
    arrived_s: float
    verified: bool


@dataclass
class Book:
    """What arrived, and what was done about it."""

    requests: list = field(default_factory=list)
    times: Counter = field(default_factory=Counter)
    seen: set = field(default_factory=set)
    effects: Counter = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, request, draw):
        """Notes the request, does what it asks for where that is drawn, and says what to answer."""
        with self.lock:
            self.requests.append(request)
            if not request.verified:
                return 401
            self.times[request.delivery] += 1
            _, applies, answer = draw(request.manner, request.delivery, self.times[request.delivery])
            if applies and (request.manner == "plain" or request.key not in self.seen):
                self.seen.add(request.key)
                self.effects[request.event] += 1
            return answer


class Recipients(Server):
    """All of them behind one port, each at a path of its manner."""

    def __init__(self, secret, seed):
        self.book = Book()
        book, verifier = self.book, Webhook(secret)

        def draw(manner, delivery, nth):
            choices = MANNERS[manner]
            return random.Random(f"{seed} {delivery} {nth}").choices(choices, [weight for weight, *_ in choices])[0]

        class Drawing(Handler):
            def do_POST(self):
                headers, body, verified = self.signed(verifier)
                arrived = time.time()
                answer = book.enter(Request(
                    self.path.removeprefix("/"), headers["waybill-event-id"], headers["webhook-id"],
                    headers["idempotency-key"], int(headers["waybill-attempt"]), hashlib.sha256(body).hexdigest(),
                    int(headers["webhook-timestamp"]), arrived, verified,
                ), draw)
                time.sleep(random.uniform(0, WORK_S))
                if answer == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    self.connection.close()
                    self.close_connection = True
                    return
                if answer == "hang":
                    time.sleep(SENDERS_PATIENCE_S + 0.5)
                    answer = 200
                self.answer(answer)

        super().__init__(Drawing)
