"""A way to a service on which something else than its answer may come back."""

import http.client
import json
import urllib.parse

import places  # noqa: F401 (says where the next are)

from loopback import Handler, Server


class Way(Server):
    """In front of `endpoint`. What is answered says `answer`."""

    def __init__(self, endpoint):
        self.there = urllib.parse.urlsplit(endpoint)
        super().__init__(Passing)

    def answer(self, operation, body, ask):
        """Status, media type and body; `ask()` gives those of the service, which then has done it."""
        raise NotImplementedError


class Passing(Handler):
    def do_POST(self):
        body, operation = self.body(), self.headers["x-amz-target"].split(".")[1]
        status, kind, answer = self.server.answer(operation, body, lambda: self.ask(body))
        self.answer(status, answer, content_type=kind)

    def ask(self, body):
        there = self.server.there
        connection = http.client.HTTPConnection(there.hostname, there.port, timeout=30)
        try:
            connection.request("POST", self.path, body, dict(self.headers))
            response = connection.getresponse()
            return response.status, response.getheader("content-type"), response.read()
        finally:
            connection.close()


def refusal(status, kind, **more):
    """An error as DynamoDB tells it."""
    return status, "application/x-amz-json-1.0", json.dumps({"__type": kind, **more}).encode()
