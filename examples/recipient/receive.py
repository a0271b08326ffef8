"""A recipient in Python: verifies, and applies each delivery once. Standard library only."""

import base64
import hmac
import os
import sqlite3
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

# guide: from here on
SECRETS = [base64.b64decode(secret.removeprefix("whsec_")) for secret in os.environ["WEBHOOK_SECRETS"].split()]


def is_genuine(headers, body):
    delivery, sent_at = headers["webhook-id"] or "", headers["webhook-timestamp"] or ""
    if not sent_at.isdecimal() or abs(time.time() - int(sent_at)) > 300:
        return False
    signed = f"{delivery}.{sent_at}.".encode() + body
    wanted = [b"v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")) for secret in SECRETS]
    given = (headers["webhook-signature"] or "").encode().split(b" ")
    return any(hmac.compare_digest(one, other) for one in wanted for other in given)


def receive(database, headers, body):
    """The status to answer with. What it applies and that it did stand in one transaction."""
    if not is_genuine(headers, body):
        return 401
    with database:
        seen = database.execute("INSERT OR IGNORE INTO seen (delivery) VALUES (?)", [headers["webhook-id"]])
        if seen.rowcount == 1:
            database.execute("INSERT INTO effects (body) VALUES (?)", [body])  # your own effect
    return 204
# guide: up to here


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(receive(self.server.database, self.headers, body))
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.database = sqlite3.connect(sys.argv[2])
    server.database.executescript(
        "CREATE TABLE IF NOT EXISTS seen (delivery TEXT PRIMARY KEY); CREATE TABLE IF NOT EXISTS effects (body BLOB);"
    )
    server.serve_forever()
