"""The peer on Lambda: Powertools' batch processor, and idempotency by record, around one signed POST.

Used as its documentation shows it. It does less than the consumer: no ledger of attempts, no deadline, no
policy of retries (a refused record comes again with the queue's visibility timeout), no evidence, no budget
of the destination; records of a batch go one after the other; the payload travels in the message.
"""

import base64
import hashlib
import hmac
import os
import time

import urllib3
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

URL, SECRET = os.environ["URL"], base64.b64decode(os.environ["SECRET"].removeprefix("whsec_"))
http = urllib3.PoolManager(timeout=5.0, retries=False)
processor = BatchProcessor(event_type=EventType.SQS)
store = DynamoDBPersistenceLayer(table_name=os.environ["TABLE"])
config = IdempotencyConfig(event_key_jmespath="id")


@idempotent_function(data_keyword_argument="delivery", config=config, persistence_store=store)
def deliver(delivery: dict):
    body, sent_at = delivery["payload"].encode(), str(int(time.time()))
    signed = f"{delivery['id']}.{sent_at}.".encode() + body
    signature = base64.b64encode(hmac.digest(SECRET, signed, hashlib.sha256)).decode()
    answer = http.request("POST", URL, body=body, redirect=False, headers={
        "content-type": "application/json", "webhook-id": delivery["id"], "idempotency-key": delivery["id"],
        "webhook-timestamp": sent_at, "webhook-signature": f"v1,{signature}",
    })
    if not 200 <= answer.status < 300:
        raise RuntimeError(f"the recipient answered {answer.status}")
    return {"status": answer.status}


def record_handler(record: SQSRecord):
    return deliver(delivery=record.json_body)


def lambda_handler(event, context):
    config.register_lambda_context(context)
    return process_partial_response(
        event=event, record_handler=record_handler, processor=processor, context=context
    )
