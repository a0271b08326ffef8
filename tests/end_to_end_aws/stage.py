"""One deployed Waybill on a local AWS for all tests, with a recipient of its own per destination.

It is one for all, since most of the time goes into deploying it.
"""

import atexit
import json
import os
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager

from destinations import SCRIPTS, Destination, document
from places import BINARIES, ROOT

from local_aws import LocalAws
from waybill import SECRET, eventually

TOKEN = "a-token-of-the-tests"
PORT = int(os.environ.get("WAYBILL_TEST_AWS_PORT", "4576"))

# The shortest that leaves room for an attempt. The visibility timeout is 6 times it, and how long a
# message is hidden is what most of these tests wait for.
CONSUMER_TIMEOUT_S = 5
VISIBILITY_S = 6 * CONSUMER_TIMEOUT_S
RECEIVES = 3

STAGE = None


def deployed():
    """The one for all tests: deployed for the first that asks, and ended with the process."""
    global STAGE
    if STAGE is None:
        stage = Stage()
        atexit.register(stage.down)
        stage.up()
        STAGE = stage
    return STAGE


def feed(lambdas, mapping, enabled, **more):
    """Stops or starts a mapping that feeds a function."""
    lambdas.update_event_source_mapping(UUID=mapping, Enabled=enabled, **more)
    wanted = "Enabled" if enabled else "Disabled"
    eventually(wanted, lambda: lambdas.get_event_source_mapping(UUID=mapping)["State"] == wanted)
    if not enabled:
        time.sleep(1.5)  # a poll that is under way


class Stage:
    def __init__(self):
        self.destinations = {name: Destination(name) for name in SCRIPTS}
        self.aws = LocalAws(PORT, binaries=BINARIES, folder=ROOT / ".cache" / "aws-test")
        # What was changed of the configuration since.
        self.changes = set()

    def up(self):
        self.aws.stop()  # what an interrupted run left
        self.aws.start()
        parameter = {"Name": "/waybill/witness", "Value": SECRET, "Type": "SecureString"}
        self.aws.client("ssm").put_parameter(**parameter)
        token = self.aws.client("secretsmanager").create_secret(Name="waybill/token", SecretString=TOKEN)
        self.aws.apply(
            function_environment={"WITNESS_SECRET": SECRET},
            producer_secrets=[token["ARN"]],
            recipient_secrets=["arn:aws:ssm:us-east-1:000000000000:parameter/waybill/witness"],
            consumer_timeout_s=CONSUMER_TIMEOUT_S,
            max_receive_count=RECEIVES,
            operator_tenants=["acme"],
        )
        clients = (self.aws.client(service) for service in ("sqs", "dynamodb", "lambda", "iam"))
        self.sqs, self.dynamo, self.lambdas, self.iam = clients
        self.queue, self.dlq = self.aws.outputs["queue_url"], self.aws.outputs["dlq_url"]
        self.apply(None, "the tests begin")

    def down(self):
        self.aws.stop()
        for destination in self.destinations.values():
            destination.witness.__exit__()

    # --- what a producer does -----------------------------------------------------------------

    def post(self, event, token=TOKEN):
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return self.aws.post("/v1/events", body, headers)

    def publish(self, event_id, destination, **more):
        """The delivery's ID."""
        status, answer = self.post({
            "event_id": event_id, "tenant": "acme", "type": "lease.payment_recorded",
            "destination": destination, "payload": {"leaseId": "lease_881", "amountCents": 125000}, **more,
        })
        assert status == 202, (status, answer)
        return answer["deliveries"][0]["delivery_id"]

    # --- what a person does -------------------------------------------------------------------

    def command(self, *arguments, backend="aws", stdin=None, environment=None):
        """`waybill --backend aws …`: its exit code, and what it wrote."""
        line = [BINARIES / "waybill", *(["--backend", backend] if backend else []), *arguments]
        environment = {
            **os.environ, **self.aws.environment(), "WAYBILL_ALLOW_LOCAL": "1", **(environment or {}),
        }
        done = subprocess.run(line, input=stdin, env=environment, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def facts(self, *arguments, **more):
        """The same for programs: the exit code, and the JSON lines."""
        code, out, _ = self.command("--output", "json", *arguments, **more)
        return code, [json.loads(line) for line in out.splitlines()]

    def apply(self, change, why):
        """Puts the configuration in force, with one more change; its revision."""
        self.changes |= {change} - {None}
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(document(self.destinations, self.changes))
            file.flush()
            code, facts = self.facts("config", "apply", "--allow-local", file.name, "--why", why)
        assert code == 0, facts
        return facts[0]["config_revision"]

    def policy(self, name):
        """A policy for operators, as it was deployed."""
        arn = self.aws.outputs["operator_policies"][name]
        version = self.iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        document = self.iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
        return json.loads(document) if isinstance(document, str) else document

    @contextmanager
    def user(self, name, policy):
        """Somebody whom this policy alone allows something: the credentials."""
        self.iam.create_user(UserName=name)
        if policy:
            self.iam.put_user_policy(UserName=name, PolicyName="own", PolicyDocument=json.dumps(policy))
        key = self.iam.create_access_key(UserName=name)["AccessKey"]
        try:
            yield {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
        finally:
            self.iam.delete_access_key(UserName=name, AccessKeyId=key["AccessKeyId"])
            if policy:
                self.iam.delete_user_policy(UserName=name, PolicyName="own")
            self.iam.delete_user(UserName=name)

    # --- what the ledger says -----------------------------------------------------------------

    def items(self, delivery, sort):
        answer = self.dynamo.query(
            TableName=self.aws.outputs["table"], ConsistentRead=True,
            KeyConditionExpression="pk = :pk AND begins_with(sk, :sk)",
            ExpressionAttributeValues={":pk": {"S": f"T#acme#D#{delivery}"}, ":sk": {"S": sort}},
        )
        return answer["Items"]

    def state(self, delivery):
        return self.items(delivery, "RECORD")[0]["state"]["S"]

    def evidence(self, delivery):
        return [json.loads(item["attempt"]["S"]) for item in self.items(delivery, "ATTEMPT#")]

    def reaches(self, delivery, state, within_s=60):
        eventually(f"{delivery} {state}", lambda: self.state(delivery) == state, within_s)

    # --- the queues ---------------------------------------------------------------------------

    def consuming(self, enabled):
        """Stops or starts what feeds the consumer."""
        feed(self.lambdas, self.aws.outputs["event_source_mapping"], enabled)

    def send(self, *bodies):
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.queue, MessageBody=body)

    def take(self):
        """Takes one wake-up off the queue, as nobody but a test does."""
        def received():
            return self.sqs.receive_message(QueueUrl=self.queue, WaitTimeSeconds=1).get("Messages")

        message = eventually("a message", received)[0]
        self.sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])
        return message["Body"]

    def dead_letters(self):
        """Bodies and attributes of everything in the dead-letter queue; they stay there."""
        found, end = {}, time.monotonic() + 10
        while time.monotonic() < end:
            answer = self.sqs.receive_message(
                QueueUrl=self.dlq, MaxNumberOfMessages=10, VisibilityTimeout=1, MessageAttributeNames=["All"],
            ).get("Messages", [])
            fresh = [message for message in answer if message["MessageId"] not in found]
            found.update((message["MessageId"], message) for message in fresh)
            if not fresh:
                break
        return [
            (message["Body"], {n: a["StringValue"] for n, a in message.get("MessageAttributes", {}).items()})
            for message in found.values()
        ]

    # --- the functions ------------------------------------------------------------------------

    def invoke(self, function, event):
        answer = self.lambdas.invoke(
            FunctionName=self.aws.outputs["functions"][function], Payload=json.dumps(event).encode(),
        )
        return answer.get("FunctionError"), json.loads(answer["Payload"].read() or b"null")

    def batch(self, *bodies):
        """An event as the mapping hands it over: one record per body, `m0`, `m1`, …"""
        return {"Records": [self.record(f"m{n}", body) for n, body in enumerate(bodies)]}

    @staticmethod
    def record(message_id, body):
        now = str(int(time.time() * 1000))
        return {
            "messageId": message_id, "receiptHandle": f"receipt-of-{message_id}", "body": body,
            "attributes": {
                "ApproximateReceiveCount": "1", "SentTimestamp": now,
                "SenderId": "000000000000", "ApproximateFirstReceiveTimestamp": now,
            },
            "messageAttributes": {}, "eventSource": "aws:sqs", "awsRegion": "us-east-1",
            "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:waybill-local-events",
        }

    @contextmanager
    def without(self, function, grant):
        """Takes one statement out of a function's role for a while."""
        name = {"RoleName": self.aws.outputs["functions"][function], "PolicyName": function}
        policy = self.iam.get_role_policy(**name)["PolicyDocument"]
        rest = [statement for statement in policy["Statement"] if statement["Sid"] != grant]
        assert len(rest) == len(policy["Statement"]) - 1, f"{function} has no {grant}"
        self.iam.put_role_policy(**name, PolicyDocument=json.dumps({**policy, "Statement": rest}))
        try:
            yield
        finally:
            self.iam.put_role_policy(**name, PolicyDocument=json.dumps(policy))

    def kill(self, function):
        """SIGKILL to every process that runs the function; how many there were."""
        processes = self.aws.processes(function)
        for process in processes:
            os.kill(process, signal.SIGKILL)
        return len(processes)
