"""An independent recipient, written from the public header specification alone.

It verifies every request with the public `standardwebhooks` library, answers what its script
says, keeps what it received, and counts an effect only the first time that it sees an
`idempotency-key`. Nothing here knows anything of Waybill's code.
"""

import hashlib
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


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


class Witness:
    """`script(n)` gives the status for the n-th request (from 1) of one delivery. It answers
    `answers_after_s` after it did what the request asks for."""

    def __init__(self, secret, script=lambda n: 200, answers_after_s=0.0):
        self.ledger = Ledger()
        ledger, verifier = self.ledger, Webhook(secret)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                at = time.time()
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                try:
                    verifier.verify(body, headers, json_parse=False)
                    verified = True
                except WebhookVerificationError:
                    verified = False
                request = Request(headers, body, verified, at)
                with ledger.lock:
                    ledger.requests.append(request)
                    status = script(len(ledger.of(request.delivery))) if verified else 401
                    request.status = status
                    if status < 300:
                        key = headers["idempotency-key"]
                        ledger.effects.setdefault(key, hashlib.sha256(body).hexdigest())
                time.sleep(answers_after_s)
                answer = b"noted\n"
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 512

            def handle_error(self, *_):
                # A sender that was killed hangs up; anything else is a fault of this witness.
                if not isinstance(sys.exc_info()[1], ConnectionError):
                    super().handle_error(*_)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
