"""Puts a configuration in force on AWS: the document in S3, the pointer to it in the ledger.

    python infra/local/configuration.py waybill.toml

As `ConfigStore::apply` in shared/aws does it, but unchecked: run `waybill config check` first. Functions
refuse a faulty one and stay with what they have. One that names files (`schema`) is bundled first:
`waybill config bundle waybill.toml > bundled.toml` prints the one text that is stored. Region and credentials are taken as by every AWS
tool, the names from WAYBILL_TABLE and WAYBILL_BUCKET.
"""

import hashlib
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
    # The history first: what was in force can always be told.
    for sort in (f"REVISION#{int(now.timestamp() * 1000):015}#{revision}", "CURRENT"):
        item = {
            "pk": "CONFIG", "sk": sort, "revision": revision, "document": name,
            "applied_at": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        dynamodb.put_item(TableName=table, Item={key: {"S": value} for key, value in item.items()})
    return revision


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(put(
        boto3.client("s3"), boto3.client("dynamodb"),
        os.environ["WAYBILL_TABLE"], os.environ["WAYBILL_BUCKET"], Path(sys.argv[1]).read_text(),
    ))
