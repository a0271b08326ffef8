"""An HTTP server on a port of its own on this machine, as every recipient and stand-in of these tests is one.

It serves from its making on, and ends with its `with`.
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import WebhookVerificationError


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        # A sender that was killed or gave up hangs up; anything else is a fault of ours.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*_)

    def __exit__(self, *_):
        self.shutdown()
        super().__exit__()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        return self.rfile.read(int(self.headers["content-length"]))

    def signed(self, verifier):
        """The fields by their names in lower case, the body, and whether the public library verifies them."""
        fields, body = {name.lower(): value for name, value in self.headers.items()}, self.body()
        try:
            verifier.verify(body, fields, json_parse=False)
        except WebhookVerificationError:
            return fields, body, False
        return fields, body, True

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in {**fields, "content-length": len(body)}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
