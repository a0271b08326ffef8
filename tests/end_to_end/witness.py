"""An independent recipient, written from the public header specification alone.

It verifies every request with the public `standardwebhooks` library, answers what its script
says, keeps what it received, and counts an effect only the first time that it sees an
`idempotency-key`. Nothing here knows anything of Waybill's code.
"""

import hashlib
import threading
import time
from dataclasses import dataclass, field

from loopback import Handler, Server
from standardwebhooks.webhooks import Webhook


@dataclass
class Request:
    headers: dict
    body: bytes
    verified: bool
    at: float = 0.0  # when it was there, in seconds since 1970
    status: int = 0  # what it was answered

    @property
    def delivery(self):
        return self.headers["webhook-id"]


@dataclass
class Ledger:
    """What arrived, and what was done about it."""

    requests: list = field(default_factory=list)
    effects: dict = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, delivery):
        return [request for request in self.requests if request.delivery == delivery]


class Witness(Server):
    """`script(n)` gives the status for the n-th request (from 1) of one delivery. It answers
    `answers_after_s` after it did what the request asks for."""

    def __init__(self, secret, script=lambda n: 200, answers_after_s=0.0):
        self.ledger = Ledger()
        ledger, verifier = self.ledger, Webhook(secret)

        class Noting(Handler):
            def do_POST(self):
                at = time.time()
                request = Request(*self.signed(verifier), at)
                with ledger.lock:
                    ledger.requests.append(request)
                    status = script(len(ledger.of(request.delivery))) if request.verified else 401
                    request.status = status
                    if status < 300:
                        key = request.headers["idempotency-key"]
                        ledger.effects.setdefault(key, hashlib.sha256(request.body).hexdigest())
                time.sleep(answers_after_s)
                self.answer(status, b"noted\n")

        super().__init__(Noting)
        self.url += "/hooks"
