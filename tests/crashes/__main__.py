"""Crashes `waybill serve` for real, and prints what became of it: one row for each fault, with what was seen
below it. Ends with 1 if a promise was broken, or a fault could not be tried here."""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "end_to_end"))

import disk_full  # noqa: E402
import killed  # noqa: E402
import locked  # noqa: E402

# For how long each is tried, as a share of the whole.
FAULTS = {"killed": (killed, 1.0), "disk_full": (disk_full, 0.2), "locked": (locked, 0.2)}
HEAD = ["fault", "times tried", "deliveries", "lost", "duplicate effects, deduplicating recipients",
        "duplicate requests, plain recipient", "sent after deadline: sender's clock", "recipient's clock"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=600)
    arguments.add_argument("--seed", type=int, default=int(time.time()))
    arguments.add_argument("faults", nargs="+", choices=FAULTS)
    given = arguments.parse_args()
    print(f"seed {given.seed}", flush=True)
    rows, missing = [], []
    for name in given.faults:
        module, share = FAULTS[name]
        try:
            rows.append(module.run(given.seconds * share, given.seed))
        except disk_full.Unavailable as error:
            missing.append(f"{name} was not tried: {error}")
            continue
        for note in rows[-1].notes:
            print(f"{name}: {note}", flush=True)
        for finding in rows[-1].findings[:20]:
            print(f"{name}: BROKEN: {finding}", flush=True)
    print(f"\n| {' | '.join(HEAD)} |\n|---|{'--:|' * (len(HEAD) - 1)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row.cells()))} |")
    print("\n".join(missing), file=sys.stderr)
    sys.exit(1 if missing or any(row.findings for row in rows) else 0)


if __name__ == "__main__":
    main()
