"""What IAM does with `dynamodb:LeadingKeys`, and the emulator does not: a way to DynamoDB that compares
the partition key of whatever is asked for with the patterns of a policy, and refuses as AWS would.

Everything else of a policy the emulator enforces itself.
"""

import http.client
import json
import threading
import urllib.parse
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def asked(operation, request):
    """The actions and partition keys that a request asks for, as IAM counts them."""
    if operation == "TransactWriteItems":
        return [("PutItem", item["Put"]["Item"]["pk"]["S"]) for item in request["TransactItems"]]
    if operation == "PutItem":
        return [(operation, request["Item"]["pk"]["S"])]
    if operation == "GetItem":
        return [(operation, request["Key"]["pk"]["S"])]
    if operation == "BatchGetItem":
        tables = request["RequestItems"].values()
        return [(operation, key["pk"]["S"]) for table in tables for key in table["Keys"]]
    if operation == "Query":
        return [(operation, request["ExpressionAttributeValues"][":p"]["S"])]
    return [(operation, None)]


class LeadingKeys:
    """In front of `endpoint`, with the statements of one policy."""

    def __init__(self, endpoint, statements):
        self.denied = []
        there = urllib.parse.urlsplit(endpoint)
        allowed = []
        for statement in statements:
            condition = statement.get("Condition", {}).get("ForAllValues:StringLike", {})
            keys = condition.get("dynamodb:LeadingKeys")
            if statement["Effect"] == "Allow" and keys:
                keys = [keys] if isinstance(keys, str) else keys
                allowed += [(action.removeprefix("dynamodb:"), key) for action in statement["Action"] for key in keys]
        denied = self.denied

        def is_allowed(action, key):
            return key is not None and any(a == action and fnmatchcase(key, pattern) for a, pattern in allowed)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                operation = self.headers["x-amz-target"].split(".")[1]
                beyond = [ask for ask in asked(operation, json.loads(body)) if not is_allowed(*ask)]
                if beyond:
                    denied.extend(beyond)
                    said = f"User: arn:aws:iam::000000000000:user/x is not authorized to perform: dynamodb:{beyond[0][0]}"
                    error = {"__type": "com.amazon.coral.service#AccessDeniedException", "Message": said}
                    return self.answer(400, "application/x-amz-json-1.0", json.dumps(error).encode())
                connection = http.client.HTTPConnection(there.hostname, there.port, timeout=30)
                try:
                    connection.request("POST", self.path, body, dict(self.headers))
                    response = connection.getresponse()
                    self.answer(response.status, response.getheader("content-type"), response.read())
                finally:
                    connection.close()

            def answer(self, status, kind, body):
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
