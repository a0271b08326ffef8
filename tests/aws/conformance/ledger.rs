//! The DynamoDB ledger sits the exam.

use waybill_aws::{DynamoLedger, S3Payloads};
use waybill_testkit::ledger_exam;

use waybill_tests_aws::place::{bucket, clients, table};

ledger_exam!(crate::ledger::ledger);

async fn ledger() -> (DynamoLedger, ()) {
    let clients = clients().await;
    let (table, bucket) = (table(&clients).await, bucket(&clients).await);
    (DynamoLedger::new(clients.dynamo, table, S3Payloads::new(clients.s3, bucket)), ())
}

/// The consumer's ledger reads payloads ahead, and is the same to whoever asks.
mod reading_ahead {
    use super::*;

    ledger_exam!(crate::ledger::reading_ahead::ledger);

    async fn ledger() -> (DynamoLedger, ()) {
        (super::ledger().await.0.reading_ahead(), ())
    }
}
