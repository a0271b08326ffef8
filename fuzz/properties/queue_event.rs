//! What a queue may hand to the consumer: whatever it is, only messages that came with it come again, each
//! once, and nothing is sent but what the ledger says is due. The input is an event, or, where it is no
//! JSON object, the body of a message.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use waybill_domain::address::Locality;
use waybill_domain::time::DurationMs;
use waybill_service::config::Config;
use waybill_service::config_file;
use waybill_service::event::Event;
use waybill_service::ports::Clock as _;
use waybill_service::publish::Publisher;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::FixedDice;
use waybill_testkit::memory;
use waybill_testkit::scripted::Reaction;

use crate::handler::handle;

const CONFIG: &str = r#"
[destinations.acme-accounting]
tenants = ["acme"]
url = "https://books.example.com/hooks"
secrets = ["env:S"]
"#;

static UNDER: LazyLock<Config> =
    LazyLock::new(|| config_file::parse(CONFIG, Locality::PublicOnly).expect("the configuration is good"));

/// The delivery that stands in the ledger: whd_HMC7MJWWZ5WV7Z60WTKDYCRD47, due at 2026-01-01T00:00:00Z.
const EVENT: &str = r#"{"event_id":"evt_pay_7319","tenant":"acme","type":"lease.payment_recorded",
    "destination":"acme-accounting","payload":{}}"#;

pub(crate) fn check(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(answered(data));
}

async fn answered(data: &[u8]) {
    let start = waybill_domain::time::TimeMs::from_unix_ms(1_767_225_600_000);
    let clock = VirtualClock::at(start);
    let ports = memory::worker(&clock, FixedDice::showing(0.5));
    let config: &Config = &UNDER;
    let publisher = Publisher { ledger: &ports.ledger, queue: &ports.queue, clock: &clock };
    let event = Event::parse(EVENT.as_bytes()).expect("an event");
    let published = publisher.publish(config, event).await.expect("it is published").remove(0);
    ports.recipient.react(&published.delivery_id, [Reaction::answer(503)]);

    let event = match serde_json::from_slice::<Box<RawValue>>(data) {
        Ok(event) if event.get().starts_with('{') => event,
        _ => {
            let records = json!([{ "messageId": "m1", "body": String::from_utf8_lossy(data) }]);
            serde_json::value::to_raw_value(&json!({ "Records": records })).expect("JSON")
        }
    };
    let ends_at = clock.now().plus(DurationMs::from_secs(60));
    let answer = handle(&ports, config, &event, ends_at, 10).await;
    if let Ok(answer) = answer {
        let answer = serde_json::to_value(&answer).expect("an answer is JSON");
        let failures = answer["batchItemFailures"].as_array().expect("a list").clone();
        let mut came: BTreeSet<String> = message_ids(event.get());
        for failure in failures {
            let id = failure["itemIdentifier"].as_str().expect("an ID");
            assert!(came.remove(id), "{id:?} did not come, or comes again twice");
        }
    }
    let requests = ports.recipient.requests();
    assert!(requests.len() <= 1, "sent twice at one due time");
    let record = ports.ledger.records().remove(0);
    assert_eq!(record.attempts_made as usize, requests.len(), "an attempt is what was sent");
    assert_eq!(ports.ledger.records().len(), 1, "a message makes no record");
}

fn message_ids(event: &str) -> BTreeSet<String> {
    let event: Value = serde_json::from_str(event).unwrap_or_default();
    let records = event["Records"].as_array().cloned().unwrap_or_default();
    records.iter().filter_map(|record| record["messageId"].as_str().map(str::to_owned)).collect()
}
