"""What a packaged function costs: python3 infra/local/measure.py target/package/x86_64

Runs the very `bootstrap`s of the zips (or binaries of a folder) against stubs on loopback: the
runtime API, as much of DynamoDB, S3 and SQS as the functions ask, and a recipient that takes 5 ms.
Standard library only. Prints a table: size, cold start (from exec to the first poll of the runtime
API, median of 20), CPU per record of a warm consumer in batches of ten (utime + stime of the process),
and its peak memory. There is no TLS on loopback, so handshakes are not in it.
"""

import argparse
import json
import os
import platform
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

STARTS, BATCHES, BATCH, WARM_UP = 20, 200, 10, 20
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
TICKS = os.sysconf("SC_CLK_TCK")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answer):
        self.answer = answer
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = "127.0.0.1:%d" % self.server_port
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """A function that was killed leaves its connections; what matters fails by itself."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        status, answer, headers = self.server.answer(self.command, self.path, self.headers, body)
        self.send_response_only(status)
        for name, value in {"content-length": len(answer), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do

    def log_message(self, *_):
        pass


class Runtime:
    """The runtime API of one function: hands over events one by one, and takes the answers."""

    def __init__(self):
        self.events, self.answers = queue.Queue(), queue.Queue()
        self.polled_at = None
        self.server = Server(self.answer)

    def answer(self, method, path, headers, body):
        if path.endswith("/invocation/next"):
            self.polled_at = self.polled_at or time.monotonic()
            event = json.dumps(self.events.get()).encode()
            return 200, event, {
                "Lambda-Runtime-Aws-Request-Id": "id", "Lambda-Runtime-Deadline-Ms": int(time.time() * 1000) + 60_000,
                "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:000000000000:function:f",
                "Lambda-Runtime-Trace-Id": "Root=1-0-0", "content-type": "application/json",
            }
        self.answers.put((path, json.loads(body)))
        return 202, b"{}", {}

    def invoke(self, event):
        self.events.put(event)
        path, answer = self.answers.get(timeout=60)
        assert path.endswith("/response"), (path, answer)
        return answer


class Aws:
    """As much of AWS as a delivery asks: one table, one queue, and the configuration in a bucket."""

    def __init__(self, document):
        self.document, self.sent, self.asked, self.lock = document, [], {}, threading.Lock()
        signed = {"by": "infra/local/measure.py", "at": "2026-01-01T00:00:00Z", "why": "a measurement"}
        in_force = json.dumps({"number": 1, "revision": "r1", "signed": signed})
        self.partitions = {"CONFIG": {"CURRENT": {"number": {"N": "1"}, "in_force": {"S": in_force}}}}
        self.server = Server(self.answer)

    def answer(self, method, path, headers, body):
        target = headers.get("x-amz-target")
        if target is None:
            return 200, self.document, {"content-type": "application/octet-stream"}
        with self.lock:
            operation = target.rpartition(".")[2]
            self.asked[operation] = self.asked.get(operation, 0) + 1
            status, answer = getattr(self, operation)(json.loads(body))
        return status, json.dumps(answer).encode(), {"content-type": "application/x-amz-json-1.0"}

    def partition(self, item):
        return self.partitions.setdefault(item["pk"]["S"], {})

    def failed(self, stored):
        code = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"
        return 400, {"__type": code, "message": "The conditional request failed", "Item": stored}

    def GetItem(self, asked):
        item = self.partition(asked["Key"]).get(asked["Key"]["sk"]["S"])
        return 200, {"Item": item} if item else {}

    def PutItem(self, asked):
        items, sort = self.partition(asked["Item"]), asked["Item"]["sk"]["S"]
        if "ConditionExpression" in asked and sort in items:
            return self.failed(items[sort])
        items[sort] = asked["Item"]
        return 200, {}

    def Query(self, asked):
        partition, low, high = (asked["ExpressionAttributeValues"][name]["S"] for name in (":p", ":from", ":to"))
        found = [item for sort, item in sorted(self.partitions.get(partition, {}).items()) if low <= sort <= high]
        return 200, {"Items": found, "Count": len(found)}

    def UpdateItem(self, asked):
        values, item = asked["ExpressionAttributeValues"], self.partition(asked["Key"])[asked["Key"]["sk"]["S"]]
        if (item["state"], item["revision"]) != (values[":was_state"], values[":was_revision"]):
            return self.failed(item)
        item.update({name[1:]: value for name, value in values.items() if not name.startswith(":was_")})
        for name in asked["UpdateExpression"].partition(" REMOVE ")[2].split(", "):
            item.pop(name[1:], None)
        return 200, {}

    def SendMessage(self, asked):
        self.sent.append(asked["MessageBody"])
        return 200, {"MessageId": "m%d" % len(self.sent), "MD5OfMessageBody": ""}


def recipient(method, path, headers, body):
    time.sleep(0.005)
    return 200, b"", {}


def document(address):
    return f"""
[producers.measure]
tenants = ["acme"]
tokens = ["env:TOKEN"]
[destinations.books]
tenants = ["acme"]
url = "http://{address}/hooks"
secrets = ["env:SECRET"]
timeout = "5s"
""".encode()


class Function:
    """A running function; `started` is how long it took from exec to its first poll, in ms."""

    def __init__(self, command, runtime, aws):
        command = [command] if isinstance(command, Path) else command
        environment = {
            "AWS_LAMBDA_RUNTIME_API": runtime.server.address, "AWS_LAMBDA_FUNCTION_NAME": "f",
            "AWS_LAMBDA_FUNCTION_VERSION": "1", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
            "AWS_LAMBDA_LOG_STREAM_NAME": "s", "AWS_LAMBDA_LOG_GROUP_NAME": "g",
            "AWS_ENDPOINT_URL": f"http://{aws.server.address}", "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
            "WAYBILL_ALLOW_LOCAL": "1",
            "WAYBILL_TABLE": "t", "WAYBILL_QUEUE_URL": f"http://{aws.server.address}/q", "WAYBILL_BUCKET": "b",
            "WAYBILL_DLQ_URL": f"http://{aws.server.address}/d", "TOKEN": "token", "SECRET": SECRET,
        }
        begun = time.monotonic()
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, close_fds=False,
        )
        while runtime.polled_at is None:
            assert self.process.poll() is None, f"{command[0]} ended"
            time.sleep(0.0002)
        self.started = (runtime.polled_at - begun) * 1000

    def cpu_s(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024

    def end(self):
        self.process.kill()
        self.process.wait()


def cold_ms(binary, aws, times):
    starts = []
    for _ in range(times):
        function = Function(binary, Runtime(), aws)
        starts.append(function.started)
        function.end()
    return statistics.median(starts)


def publish(binary, aws, count):
    """The wake-ups of `count` events of 2 KB, published through ingest."""
    runtime = Runtime()
    function = Function(binary, runtime, aws)
    for n in range(count):
        body = {"event_id": f"e{n}", "tenant": "acme", "type": "a.b", "destination": "books", "payload": "x" * 2000}
        answer = runtime.invoke({
            "version": "2.0", "rawPath": "/v1/events", "rawQueryString": "",
            "headers": {"content-type": "application/json", "authorization": "Bearer token"},
            "requestContext": {"http": {"method": "POST", "path": "/v1/events", "sourceIp": "192.0.2.1"}},
            "body": json.dumps(body), "isBase64Encoded": False,
        })
        assert answer["statusCode"] == 202, answer
    function.end()
    return aws.sent


@dataclass(frozen=True)
class Warm:
    """A record's share of a warm function, and its peak memory; `asked` counts AWS's operations."""
    cpu_ms: float
    wall_ms: float
    peak_mib: float
    asked: dict


def consume(command, aws, bodies, warm_up):
    """What a record costs a consumer after so many batches."""
    runtime = Runtime()
    function = Function(command, runtime, aws)

    def batch(n):
        at = range(n * BATCH, (n + 1) * BATCH)
        records = [{"messageId": f"m{i}", "receiptHandle": f"r{i}", "body": bodies[i]} for i in at]
        answer = runtime.invoke({"Records": records})
        assert answer == {"batchItemFailures": []}, answer

    end = len(bodies) // BATCH
    for n in range(warm_up):
        batch(n)
    aws.asked.clear()
    before, begun = function.cpu_s(), time.monotonic()
    for n in range(warm_up, end):
        batch(n)
    wall_ms, used_ms = (time.monotonic() - begun) * 1000, (function.cpu_s() - before) * 1000
    peak = function.peak_mib()
    function.end()
    records = (end - warm_up) * BATCH
    return Warm(used_ms / records, wall_ms / records, peak, {name: n / records for name, n in aws.asked.items()})


def unpack(folder, function, into):
    """The function's binary, the zip's size in bytes (0 where there is none), and the binary's."""
    package = folder / f"{function}.zip"
    binary = into / function if package.exists() else folder / f"waybill-{function}"
    if package.exists():
        binary.write_bytes(zipfile.ZipFile(package).read("bootstrap"))
        binary.chmod(0o755)
    return binary, package.stat().st_size if package.exists() else 0, binary.stat().st_size


def main():
    parser = argparse.ArgumentParser(description="What a packaged function costs.")
    parser.add_argument("folder", type=Path, help="zips as `make package` leaves them, or built binaries")
    parser.add_argument("--once", action="store_true", help="one start, one batch: whether it works at all")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    starts, batches, warm_up = (1, 1, 1) if arguments.once else (STARTS, BATCHES, WARM_UP)
    aws = Aws(document(Server(recipient).address))
    with tempfile.TemporaryDirectory() as unpacked:
        print("| function | zip | binary | exec to first poll |\n|---|---|---|---|")
        binaries = {}
        for name in ("ingest", "consumer", "reconciler"):
            binary, packed, size = unpack(folder, name, Path(unpacked))
            if not binary.exists():
                sys.exit(f"{folder}: there is no {name}")
            binaries[name] = binary
            zipped = f"{packed / 1e6:.2f} MB" if packed else "-"
            print(f"| {name} | {zipped} | {size / 1e6:.2f} MB | {cold_ms(binary, aws, starts):.1f} ms |")
        bodies = publish(binaries["ingest"], aws, (warm_up + batches) * BATCH)
        warm = consume(binaries["consumer"], aws, bodies, warm_up)
    each = f"{warm.cpu_ms:.2f} ms of CPU per record, peak {warm.peak_mib:.1f} MiB"
    print(f"\nconsumer, warm, {batches} batches of {BATCH}: {each}")
    print(f"on {platform.machine()}, {os.cpu_count()} cores, {platform.platform()}")


if __name__ == "__main__":
    main()
