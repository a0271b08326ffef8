//! The DynamoDB ledger sits the exam.

use waybill_aws::{DynamoLedger, S3Payloads};
use waybill_testkit::ledger_exam;

use crate::place::{bucket, clients, table};

ledger_exam!(crate::ledger::ledger);

async fn ledger() -> (DynamoLedger, ()) {
    let clients = clients().await;
    let (table, bucket) = (table(&clients).await, bucket(&clients).await);
    (DynamoLedger::new(clients.dynamo, table, S3Payloads::new(clients.s3, bucket)), ())
}
