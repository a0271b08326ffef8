"""Waybill on a local AWS: `local_aws.py up | down`. Called by `make aws-local` and `make aws-local-down`.

`up` starts MiniStack (an emulator of AWS that runs functions without Docker) on 127.0.0.1, unless
AWS_ENDPOINT_URL names another endpoint; zips the functions that were built for this machine,
applies the Terraform, puts a configuration in force, and writes what a shell needs to talk to it.
Everything that it leaves behind lies in one folder of .cache, and `down` removes it.
"""

import argparse
import base64
import http.client
import json
import os
import platform
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

import boto3

import configuration

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = ("ingest", "consumer", "reconciler")
TERRAFORM = [ROOT / "infra" / "local" / "terraform.sh", ROOT / "infra" / "environments" / "local"]
# What every emulator takes; no secret.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
}


class LocalAws:
    """One emulator with one Waybill on it. `port` is where MiniStack listens."""

    def __init__(self, port=4566, endpoint=None, binaries=None, folder=None):
        self.own = endpoint is None
        self.endpoint = endpoint or f"http://127.0.0.1:{port}"
        self.port = port
        self.binaries = Path(binaries or ROOT / "target" / "debug")
        self.folder = Path(folder or ROOT / ".cache" / "aws-local")
        self.outputs = None

    # --- the emulator -------------------------------------------------------------------------

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.own:
            return
        if self.pid():
            raise SystemExit(f"it runs already, as process {self.pid()}: `make aws-local-down` ends it")
        environment = {
            **os.environ, **CREDENTIALS,
            "BIND_HOST": "127.0.0.1",  # it would listen on every address
            "GATEWAY_PORT": str(self.port),
            "LAMBDA_EXECUTOR": "local",
            "PERSIST_STATE": "0",
            "AUTH": "true",  # the functions have what their roles grant, and nothing else
            "AWS_ENDPOINT_URL": self.endpoint,
        }
        with open(self.folder / "emulator.log", "w") as log:
            # In a session of its own, so that the functions that it starts can be ended with it.
            process = subprocess.Popen(
                [Path(sys.executable).parent / "ministack"], env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )
        (self.folder / "emulator.pid").write_text(str(process.pid))
        for _ in range(150):
            if process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"{self.endpoint}/_ministack/health", timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f"the emulator does not answer: {self.folder / 'emulator.log'}")

    def pid(self):
        """The emulator's process, if it is still the one that was started here."""
        try:
            pid = int((self.folder / "emulator.pid").read_text())
            return pid if b"ministack" in Path(f"/proc/{pid}/cmdline").read_bytes() else None
        except (OSError, ValueError):
            return None

    def stop(self):
        pid = self.pid()
        if pid:
            os.killpg(pid, signal.SIGTERM)
            for _ in range(50):
                if not self.pid():
                    break
                time.sleep(0.1)
            else:
                os.killpg(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def processes(self, function):
        """The processes that run a function right now."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    variables = (entry / "environ").read_bytes().split(b"\0")
                    line = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                name = f"AWS_LAMBDA_FUNCTION_NAME={self.outputs['functions'][function]}".encode()
                if name in variables and b"bootstrap" in line:
                    found.append(int(entry.name))
        return found

    # --- Waybill on it ------------------------------------------------------------------------

    def package(self):
        """Zips the built functions as Lambda takes them: `bootstrap`, executable."""
        folder = self.folder / "package"
        folder.mkdir(parents=True, exist_ok=True)
        for function in FUNCTIONS:
            binary = self.binaries / f"waybill-{function}"
            entry = zipfile.ZipInfo("bootstrap", (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100755 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            with zipfile.ZipFile(folder / f"{function}.zip", "w") as package:
                package.writestr(entry, binary.read_bytes(), compresslevel=1)
        return folder

    def terraform(self, *arguments, **more):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        command = [*TERRAFORM, *arguments]
        done = subprocess.run(command, env=environment, text=True, capture_output=True, **more)
        (self.folder / f"terraform-{arguments[0]}.log").write_text(done.stdout + done.stderr)
        if done.returncode != 0:
            raise SystemExit(f"terraform {arguments[0]} failed:\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}")
        return done.stdout

    def apply(self, function_environment=None, **settings):
        """Applies infra/environments/local; `settings` are its variables."""
        variables = {
            "endpoint_url": self.endpoint,
            "packages": str(self.package()),
            "architecture": "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64",
            "function_environment": function_environment or {},
            "functions_in_containers": not self.own,
            **settings,
        }
        file = self.folder / "settings.tfvars.json"
        file.write_text(json.dumps(variables))
        self.terraform("init", "-input=false")
        state = f"-state={self.folder / 'terraform.tfstate'}"
        self.terraform("apply", "-auto-approve", "-input=false", "-no-color", state, f"-var-file={file}")
        self.outputs = json.loads(self.terraform("output", "-json", state))["waybill"]["value"]

    def destroy(self):
        """Takes Waybill off an endpoint that is not ours to end."""
        file, state = self.folder / "settings.tfvars.json", self.folder / "terraform.tfstate"
        if file.exists() and state.exists():
            self.terraform("destroy", "-auto-approve", "-input=false", "-no-color", f"-state={state}", f"-var-file={file}")

    def client(self, service):
        return boto3.client(
            service, endpoint_url=self.endpoint, region_name=CREDENTIALS["AWS_REGION"],
            aws_access_key_id="test", aws_secret_access_key="test",
        )

    def configure(self, document):
        """Puts a configuration in force."""
        return configuration.put(
            self.client("s3"), self.client("dynamodb"), self.outputs["table"], self.outputs["bucket"], document,
        )

    def environment(self):
        """What `waybill --backend aws` and every AWS tool read."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            **CREDENTIALS,
            "WAYBILL_TABLE": self.outputs["table"],
            "WAYBILL_QUEUE_URL": self.outputs["queue_url"],
            "WAYBILL_DLQ_URL": self.outputs["dlq_url"],
            "WAYBILL_BUCKET": self.outputs["bucket"],
            "WAYBILL_CONSUMER_TIMEOUT_S": str(self.outputs["consumer_timeout_s"]),
        }

    def ingest_url(self):
        """Where ingest answers here. The name that AWS would give it does not resolve."""
        id, kind = urllib.parse.urlsplit(self.outputs["ingest_url"]).hostname.split(".")[:2]
        stage = "/$default" if kind == "execute-api" else ""
        return f"{self.endpoint}/_aws/{kind}/{id}{stage}"

    def post(self, path, body, headers=None, timeout_s=30):
        """A request to ingest through its front door: the status, and what was answered."""
        url = urllib.parse.urlsplit(self.ingest_url())
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=timeout_s)
        try:
            connection.request("POST", url.path + path, body, {"content-type": "application/json", **(headers or {})})
            response = connection.getresponse()
            text = response.read()
            try:
                return response.status, json.loads(text)
            except ValueError:
                return response.status, text.decode(errors="replace")
        finally:
            connection.close()


def secret_of(name):
    """A secret for a trial configuration: the caller's own, or one drawn now."""
    drawn = base64.b64encode(secrets.token_bytes(32)).decode()
    return os.environ.get(name) or (f"whsec_{drawn}" if "SECRET" in name else drawn)


def up(local, config):
    document = config.read_text()
    wanted = sorted(set(re.findall(r'"env:([A-Za-z_][A-Za-z0-9_]*)"', document)))
    trial = {name: secret_of(name) for name in wanted}
    local.start()
    try:
        begun = time.monotonic()
        local.apply(function_environment=trial)
        print(f"applied in {time.monotonic() - begun:.0f} s")
    except BaseException:
        if local.own:
            log = (local.folder / "emulator.log").read_text().splitlines(keepends=True)
            sys.stderr.write("the emulator's last words:\n" + "".join(log[-20:]))
            local.stop()
        raise
    revision = local.configure(document)
    lines = {**local.environment(), **trial, "WAYBILL_INGEST_URL": local.ingest_url()}
    file = local.folder / "env"
    file.touch(mode=0o600)
    file.write_text("".join(f"export {name}='{value}'\n" for name, value in lines.items()))
    print(f"Waybill runs on {local.endpoint}, with {config.name} in force as {revision}.")
    print(f"  . {os.path.relpath(file)}             for waybill --backend aws and every AWS tool")
    print("  curl $WAYBILL_INGEST_URL/v1/events …  publishes")
    print("  make aws-local-down                   ends it")


def bare(port, command):
    """Runs a command beside an emulator of its own, and answers how the command ended."""
    local = LocalAws(port, folder=ROOT / ".cache" / "aws-bare")
    local.start()
    try:
        variables = {**os.environ, **CREDENTIALS, "AWS_ENDPOINT_URL": local.endpoint}
        return subprocess.run(command, env=variables).returncode
    finally:
        local.stop()


def main():
    parser = argparse.ArgumentParser(description="Waybill on a local AWS.")
    parser.add_argument("what", choices=["up", "down", "bare"])
    parser.add_argument("--port", type=int, default=4566)
    parser.add_argument("--binaries", type=Path, help="the folder with the built functions")
    parser.add_argument("--config", type=Path, default=ROOT / "waybill.example.toml")
    # `bare -- COMMAND…`: argparse would take the command's own options for ours.
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:at])
    if options.what == "bare":
        sys.exit(bare(options.port, sys.argv[at + 1 :]))
    local = LocalAws(options.port, os.environ.get("AWS_ENDPOINT_URL") or None, options.binaries)
    if options.what == "up":
        up(local, options.config)
    else:
        if not local.own:
            local.destroy()
        local.stop()


if __name__ == "__main__":
    main()
