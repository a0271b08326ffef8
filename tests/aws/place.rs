//! A table, a bucket and queues of one's own, made for one test.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_sdk_s3::types::CreateBucketConfiguration;
use waybill_aws::Clients;
use waybill_aws::clients::Limits;
use waybill_aws::trial::make_table;

/// Clients of the local AWS. Tests never speak to a real one.
pub async fn clients() -> Clients {
    let endpoint = std::env::var("AWS_ENDPOINT_URL").unwrap_or_default();
    let is_local =
        ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|at| endpoint.starts_with(at));
    assert!(is_local, "AWS_ENDPOINT_URL is {endpoint:?}: `make test-aws` starts a local AWS and names it");
    Clients::load(Limits { attempts: 5, ..Limits::default() }).await
}

/// A name that nobody else has.
pub fn name(of: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    format!("{of}-{}-{now}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A table with the keys and indexes of the ledger.
pub async fn table(clients: &Clients) -> String {
    let name = name("ledger");
    make_table(clients, &name).await.unwrap();
    name
}

/// A bucket.
pub async fn bucket(clients: &Clients) -> String {
    let name = name("payloads");
    let region = clients.s3.config().region().map(ToString::to_string);
    // The one region that is not named when a bucket is made in it.
    let elsewhere = region.filter(|region| region != "us-east-1").map(|region| {
        CreateBucketConfiguration::builder().location_constraint(region.as_str().into()).build()
    });
    let making = clients.s3.create_bucket().bucket(&name).set_create_bucket_configuration(elsewhere);
    making.send().await.unwrap();
    name
}
