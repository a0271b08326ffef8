"""The section "On Lambda" of docs/BENCHMARKS.md: python3 bench/on_lambda.py RELEASE_FOLDER [PEER_PYTHON]

Runs the consumer, and a Powertools handler beside it where that is installed, against the stubs of
infra/local/measure.py, and prints their tables. `waybill-bench lambda` puts them into the file.
"""

import json
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "infra" / "local"))
import measure  # noqa: E402

PEER = Path(__file__).resolve().parent / "powertools"
# A handler in Python starts in hundreds of ms, and works on its records one by one.
PEER_STARTS, PEER_BATCHES = 10, 60


class IdempotencyTable(measure.Aws):
    """The table of Powertools' persistence layer: items by `id`."""

    def __init__(self):
        super().__init__(b"")
        self.items = {}

    def PutItem(self, asked):
        key = asked["Item"]["id"]["S"]
        if key in self.items:
            return self.failed(self.items[key])
        self.items[key] = asked["Item"]
        return 200, {}

    def UpdateItem(self, asked):
        names, values = asked["ExpressionAttributeNames"], asked["ExpressionAttributeValues"]
        item = self.items[asked["Key"]["id"]["S"]]
        item.update({name: values[":" + alias[1:]] for alias, name in names.items()})
        return 200, {}


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def dynamodb(asked):
    """Requests to DynamoDB in one record's share of `asked`."""
    return sum(asked.get(operation, 0) for operation in ("GetItem", "PutItem", "UpdateItem", "Query", "DeleteItem"))


def figures(cold_ms, warm):
    return [cold_ms, warm.cpu_ms, warm.wall_ms, warm.peak_mib, dynamodb(warm.asked)]


def row(name, figures):
    cold, cpu, wall, peak, requests = figures
    return [name, f"{cold:.1f} ms", f"{cpu:.2f} ms", f"{wall:.2f} ms", f"{peak:.1f} MiB", f"{requests:.1f}"]


def ratios(ours, theirs):
    """Ours by theirs, figure by figure; `-` where theirs is nothing."""
    return [f"{mine / other:.2f}" if other else "-" for mine, other in zip(ours, theirs)]


def consumer(folder):
    aws = measure.Aws(measure.document(measure.Server(measure.recipient).address))
    binary = folder / "waybill-consumer"
    cold = measure.cold_ms(binary, aws, measure.STARTS)
    bodies = measure.publish(folder / "waybill-ingest", aws, (measure.WARM_UP + measure.BATCHES) * measure.BATCH)
    return figures(cold, measure.consume(binary, aws, bodies, measure.WARM_UP))


def powertools(python):
    url = f"http://{measure.Server(measure.recipient).address}/hooks"
    # `env` hands the handler what only it needs, and is replaced by Python: one process.
    command = ["/usr/bin/env", f"URL={url}", "TABLE=t", f"PYTHONPATH={PEER}", "PYTHONDONTWRITEBYTECODE=1",
               str(python), "-m", "awslambdaric", "handler.lambda_handler"]
    aws = IdempotencyTable()
    cold = measure.cold_ms(command, aws, PEER_STARTS)
    count = (measure.WARM_UP + PEER_BATCHES) * measure.BATCH
    bodies = [json.dumps({"id": f"d{n}", "payload": json.dumps("x" * 2000)}) for n in range(count)]
    return figures(cold, measure.consume(command, aws, bodies, measure.WARM_UP))


def main():
    folder = Path(sys.argv[1]).resolve()
    python = Path(sys.argv[2]).absolute() if len(sys.argv) > 2 else None
    ours = consumer(folder)
    binary = (folder / "waybill-consumer").read_bytes()
    rows = [row("consumer", ours)]
    if python and python.exists():
        theirs = powertools(python)
        rows += [row("Powertools handler", theirs), ["consumer by it", *ratios(ours, theirs)]]
    print(table(["", "exec to first poll", "CPU per record", "wall per record", "peak memory",
                 "DynamoDB requests per record"], rows))
    packed = len(zlib.compress(binary, 9))
    print(f"\nThe consumer's binary: {len(binary) / 1e6:.2f} MB, {packed / 1e6:.2f} MB deflated.")
    if len(rows) == 1:
        print("\nPowertools is not installed on this machine: the peer is left out.")


if __name__ == "__main__":
    main()
