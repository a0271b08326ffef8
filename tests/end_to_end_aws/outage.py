"""A way to DynamoDB that breaks: what a function asks for meanwhile is answered with an error of the service,
one in two after the store has done it, so that nobody hears of it."""

import http.client
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Outage:
    """Between one deployed function and its table, until the end of the `with`."""

    def __init__(self, stage, function):
        self.stage, self.function = stage, stage.aws.outputs["functions"][function]
        self.is_broken, self.refused = False, 0
        self.lock = threading.Lock()
        there, outage = urllib.parse.urlsplit(stage.aws.endpoint), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                refuses, does = outage.next()
                status, kind, answer = self.ask(body) if does else (500, None, b"")
                if refuses:
                    status, kind = 500, "application/x-amz-json-1.0"
                    answer = b'{"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"}'
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def ask(self, body):
                connection = http.client.HTTPConnection(there.hostname, there.port, timeout=30)
                try:
                    connection.request("POST", self.path, body, dict(self.headers))
                    response = connection.getresponse()
                    return response.status, response.getheader("content-type"), response.read()
                finally:
                    connection.close()

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # a function that gave up hangs up

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self):
        """Whether the next request is answered with an error, and whether the store does it."""
        with self.lock:
            self.refused += self.is_broken
            return self.is_broken, not self.is_broken or self.refused % 2 == 0

    def begin(self):
        self.is_broken = True

    def end(self):
        self.is_broken = False

    def __enter__(self):
        self.before = self.stage.lambdas.get_function_configuration(FunctionName=self.function)["Environment"]
        variables = {**self.before["Variables"], "AWS_ENDPOINT_URL_DYNAMODB": self.url}
        self.stage.lambdas.update_function_configuration(
            FunctionName=self.function, Environment={"Variables": variables},
        )
        return self

    def __exit__(self, *_):
        self.stage.lambdas.update_function_configuration(FunctionName=self.function, Environment=self.before)
        self.server.shutdown()
        self.server.server_close()
