"""The interface as it describes itself: the examples of the description run, and the running service
does what the description says and nothing else (checked by Schemathesis, within bounds)."""

import http.client
import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import signing
from waybill import ROOT, SECRET, Installation

TOKEN = "a-token-that-nobody-guesses"
SCHEMATHESIS = Path(sys.executable).parent / "st"


class Described(unittest.TestCase):
    def setUp(self):
        self.waybill = Installation("https://nobody.example.com/")
        self.addCleanup(self.waybill.__exit__)
        shutil.copy(ROOT / "waybill.example.toml", self.waybill.config)
        self.waybill.secrets = {"BILLING_TOKEN": TOKEN, "GAME_BILLING_SECRET": SECRET}
        # As outside: with --allow-local no token would be needed.
        self.waybill.start("--concurrency", "1")

    def get(self, path):
        connection = http.client.HTTPConnection(*self.waybill.address, timeout=10)
        connection.request("GET", path)
        response = connection.getresponse()
        self.addCleanup(connection.close)
        return response.status, response.read()

    def test_the_document_is_that_of_the_repository(self):
        self.assertEqual(self.get("/v1/openapi.json"), (200, (ROOT / "docs" / "openapi.json").read_bytes()))

    def test_every_example_runs_and_is_answered_as_it_is_written(self):
        from jsonschema_rs import Draft202012Validator

        document = json.loads((ROOT / "docs" / "openapi.json").read_text())
        accepted = {"$ref": "#/components/schemas/Accepted", "components": document["components"]}
        validator = Draft202012Validator(accepted)
        ran = 0
        for path, operations in document["paths"].items():
            content = operations.get("post", {}).get("requestBody", {}).get("content", {})
            for name, example in content.get("application/json", {}).get("examples", {}).items():
                with self.subTest(name):
                    body = json.dumps(example["value"]).encode()
                    if "{source}" in path:
                        headers = signing.standard_webhooks(SECRET, body, name)
                    else:
                        headers = {"authorization": f"Bearer {TOKEN}"}
                    status, answer = self.waybill.post(body, path.replace("{source}", "game-billing"), headers)
                    self.assertEqual(status, 202, answer)
                    validator.validate(answer)
                    ran += 1
        self.assertGreaterEqual(ran, 6)

    @unittest.skipUnless(SCHEMATHESIS.exists(), "Schemathesis needs Python 3.11")
    def test_the_service_does_what_it_says(self):
        self.schemathesis("-H", f"Authorization: Bearer {TOKEN}")

    @unittest.skipUnless(SCHEMATHESIS.exists(), "Schemathesis needs Python 3.11")
    def test_the_service_does_what_it_says_of_signed_webhooks(self):
        # The hooks sign whatever is sent and name a source that there is: nothing is unsigned or unknown.
        self.schemathesis("--include-path", "/v1/sources/{source}", "--mode", "positive", hooks="schemathesis_hooks")
        types = {delivery["type"] for delivery in self.waybill.deliveries()}
        self.assertIn("renewal.reminder", types, "the example came through")

    def schemathesis(self, *options, hooks=None):
        host, port = self.waybill.address
        environment = {**self.waybill.environment(), "SIGNING_SECRET": SECRET}
        if hooks:
            environment |= {"SCHEMATHESIS_HOOKS": hooks, "PYTHONPATH": str(ROOT / "tests" / "end_to_end")}
        done = subprocess.run(
            [SCHEMATHESIS, "run", f"http://{host}:{port}/v1/openapi.json", "--no-color", "--seed", "1",
             "--max-failures", "5", "--max-examples", "100", "--request-timeout", "10", "--generation-database", "none",
             # A past deadline, or more than 256 bytes in 256 characters, is well-formed and refused.
             "--exclude-checks", "positive_data_acceptance" + (",ignored_auth" if hooks else ""), *options],
            cwd=self.waybill.path, capture_output=True, text=True, timeout=60, env=environment,
        )
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-2000:] + self.waybill.log()[-1000:])
