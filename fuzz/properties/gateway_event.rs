//! What a gateway may hand to the ingest function: whatever it is, the answer is one of ours, and what is
//! accepted stands in the ledger. The input is an event, or, where it is no JSON object, a request's body.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use waybill_domain::address::Locality;
use waybill_domain::destination::SecretRef;
use waybill_domain::identity::{DeliveryId, DeliveryKey, TenantId};
use waybill_http::{SecretError, Secrets};
use waybill_service::config::Config;
use waybill_service::config_file;
use waybill_service::publish::Publisher;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::memory::{MemoryLedger, MemoryQueue, QueueRules};

use crate::handler::handle;

const CONFIG: &str = r#"
[producers.billing]
tenants = ["acme"]
tokens = ["env:TOKEN"]
[destinations.books]
tenants = ["acme", "other"]
url = "https://books.example.com/hooks"
secrets = ["env:S"]
event_types = ["*"]
[sources.game]
tenant = "acme"
scheme = "standard-webhooks"
secrets = ["env:GAME"]
event_id = "header:webhook-id"
event_type = "note.taken"
[sources.code]
tenant = "acme"
scheme = "github"
secrets = ["env:CODE"]
event_id = "/id"
event_type = "header:x-github-event"
deadline = "/until"
"#;

static UNDER: LazyLock<Arc<Config>> = LazyLock::new(|| {
    Arc::new(config_file::parse(CONFIG, Locality::PublicOnly).expect("the configuration is good"))
});

const STATUSES: [i64; 12] = [200, 202, 400, 401, 403, 404, 405, 409, 413, 415, 422, 503];

struct Known;

impl Secrets for Known {
    async fn resolve(&self, reference: &SecretRef) -> Result<String, SecretError> {
        match reference.to_string().as_str() {
            "env:TOKEN" => Ok("right".to_owned()),
            "env:GAME" => Ok("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=".to_owned()),
            "env:CODE" => Ok("It's a Secret to Everybody".to_owned()),
            _ => Err(SecretError::Missing),
        }
    }
}

pub(crate) fn check(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(answered(data));
}

async fn answered(data: &[u8]) {
    let clock = VirtualClock::default();
    let ledger = MemoryLedger::default();
    let queue = MemoryQueue::new(&clock, QueueRules::default());
    let publisher = Publisher { ledger: &ledger, queue: &queue, clock: &clock };
    let event = match serde_json::from_slice::<Box<RawValue>>(data) {
        Ok(event) if event.get().starts_with('{') => event,
        _ => serde_json::value::to_raw_value(&request(data)).expect("JSON"),
    };
    let mut answers = Vec::new();
    for _ in 0..2 {
        // What is no gateway's event is nothing to be answered.
        let Ok(response) = handle(&publisher, Ok(UNDER.clone()), &Known, &event).await else { return };
        answers.push(serde_json::to_value(&response).expect("a response is JSON"));
    }
    let status = |answer: &Value| answer["statusCode"].as_i64().expect("a status");
    let body = |answer: &Value| -> Value {
        serde_json::from_str(answer["body"].as_str().expect("a text")).expect("the body is JSON")
    };
    let (first, second) = (&answers[0], &answers[1]);
    assert!(STATUSES.contains(&status(first)), "{first}");
    assert_eq!(status(first), status(second), "the same event again");
    if status(first) != 202 {
        assert!(ledger.records().is_empty(), "something is recorded, and the answer is {first}");
        return;
    }
    let ids = |answer: &Value| -> Vec<DeliveryId> {
        let deliveries = body(answer)["deliveries"].as_array().expect("deliveries").clone();
        deliveries
            .iter()
            .map(|d| DeliveryId::parse(d["delivery_id"].as_str().expect("an ID")).expect("ours"))
            .collect()
    };
    let acme = TenantId::parse("acme").expect("a tenant");
    assert_eq!(ids(first), ids(second), "the same event again");
    assert_eq!(ledger.records().len(), ids(first).len());
    for delivery_id in ids(first) {
        let key = DeliveryKey { tenant: acme.clone(), delivery_id };
        assert!(ledger.peek(&key).is_some(), "accepted, and not recorded for the producer's tenant");
    }
}

/// A producer's request with this body.
fn request(body: &[u8]) -> Value {
    json!({
        "version": "2.0", "rawPath": "/v1/events",
        "headers": {"content-type": "application/json", "authorization": "Bearer right"},
        "requestContext": {"http": {"method": "POST"}},
        "body": STANDARD.encode(body), "isBase64Encoded": true,
    })
}
