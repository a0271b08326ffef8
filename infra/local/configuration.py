"""Puts a configuration in force on AWS: the document in S3, the pointer to it in the ledger.

    python infra/local/configuration.py waybill.toml

For local trials: unchecked, and without an entry in the audit, as nobody's act; `waybill config apply
--backend aws` does it properly. Functions refuse a faulty one and stay with what they have. Region and credentials are taken as by every AWS
tool, the names from WAYBILL_TABLE and WAYBILL_BUCKET.
"""

import hashlib
import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path

import boto3


def put(s3, dynamodb, table, bucket, document):
    """The revision that is in force from now on; functions take it up within ten seconds."""
    revision = "file-" + hashlib.sha256(document.encode()).hexdigest()[:12]
    name = f"config/{revision}.toml"
    s3.put_object(Bucket=bucket, Key=name, Body=document.encode())
    now = datetime.now(timezone.utc)
    before = dynamodb.get_item(
        TableName=table, Key={"pk": {"S": "CONFIG"}, "sk": {"S": "CURRENT"}}, ConsistentRead=True,
    ).get("Item")
    number = int(before["number"]["N"]) + 1 if before else 1
    at = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    in_force = json.dumps({
        "number": number, "revision": revision,
        "signed": {"by": "infra/local/configuration.py", "at": at, "why": "a local trial"},
    })
    # The history first: what was in force can always be told.
    for sort in (f"REVISION#{number:020}", "CURRENT"):
        dynamodb.put_item(TableName=table, Item={
            "pk": {"S": "CONFIG"}, "sk": {"S": sort}, "number": {"N": str(number)}, "in_force": {"S": in_force},
        })
    return revision


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(put(
        boto3.client("s3"), boto3.client("dynamodb"),
        os.environ["WAYBILL_TABLE"], os.environ["WAYBILL_BUCKET"], Path(sys.argv[1]).read_text(),
    ))
