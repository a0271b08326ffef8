//! Orders, audit and configurations in DynamoDB and S3 sit the exam.

use waybill_aws::AwsOffice;
use waybill_testkit::office_exam;

use waybill_tests_aws::place::{bucket, clients, table};

office_exam!(crate::office::office);

async fn office() -> (AwsOffice, ()) {
    let clients = clients().await;
    let (table, bucket) = (table(&clients).await, bucket(&clients).await);
    (AwsOffice::new(clients, table, bucket), ())
}
