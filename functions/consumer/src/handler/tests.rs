//! The handler on the memory backend: what is reported, and to the byte.

use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};
use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::attempt::{SendWindow, Sending};
use waybill_domain::delivery::State;
use waybill_domain::look_up::Finding;
use waybill_domain::time::DurationMs;
use waybill_service::desk::Desk;
use waybill_service::event::Event;
use waybill_service::ports::Request;
use waybill_service::publish::Publisher;
use waybill_service::{config_file, ports::Recipient};
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::FixedDice;
use waybill_testkit::memory::{MemoryLedger, MemoryQueue, QueueRules};
use waybill_testkit::scripted::{Reaction, ScriptedRecipient};

use super::*;

mod seeds;

const CONFIG: &str = "
[destinations.books]
tenants = [\"acme\"]
url = \"https://books.example.com/hooks\"
secrets = [\"env:S\"]
timeout = \"10s\"
";

type World<R> = Ports<MemoryLedger, MemoryQueue, R, VirtualClock, FixedDice>;

fn world() -> (World<ScriptedRecipient<VirtualClock>>, Config) {
    let clock = VirtualClock::default();
    let recipient = ScriptedRecipient::new(&clock);
    (around(clock, recipient), config_file::parse(CONFIG, Locality::PublicOnly).unwrap())
}

fn around<R: Recipient>(clock: VirtualClock, recipient: R) -> World<R> {
    Ports {
        ledger: MemoryLedger::default(),
        queue: MemoryQueue::new(&clock, QueueRules::default()),
        recipient,
        clock,
        dice: FixedDice::showing(0.5),
        desk: Desk::default(),
    }
}

/// Publishes so many events and answers the body of each one's wake-up.
async fn published<R: Recipient>(world: &World<R>, config: &Config, events: usize) -> Vec<String> {
    let publisher = Publisher { ledger: &world.ledger, queue: &world.queue, clock: &world.clock };
    for n in 1..=events {
        let event = json!({
            "event_id": format!("evt-{n}"), "tenant": "acme", "type": "lease.signed",
            "destination": "books", "payload": {"n": n},
        });
        let event = Event::parse(event.to_string().as_bytes()).unwrap();
        publisher.publish(config, event).await.unwrap();
    }
    let messages = world.queue.messages();
    assert_eq!(messages.len(), events);
    messages.into_iter().map(|(_, body, _)| body).collect()
}

fn record(id: &str, body: &str) -> Value {
    json!({
        "messageId": id, "receiptHandle": format!("handle-{id}"), "body": body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1767225600000"},
        "messageAttributes": {}, "md5OfBody": "x", "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:work", "awsRegion": "eu-central-1",
    })
}

fn records(bodies: &[String]) -> Vec<Value> {
    bodies.iter().enumerate().map(|(n, body)| record(&format!("m{}", n + 1), body)).collect()
}

async fn answer<R: Recipient>(
    world: &World<R>,
    config: &Config,
    records: &[Value],
    time_left: DurationMs,
) -> Result<String, Unanswerable> {
    let event = RawValue::from_string(json!({ "Records": records }).to_string()).unwrap();
    let ends_at = world.clock.now().plus(time_left);
    let answer = handle(world, config, &event, ends_at).await?;
    Ok(serde_json::to_string(&answer).unwrap())
}

const MINUTE: DurationMs = DurationMs::from_secs(60);
const NOTHING_FAILED: &str = r#"{"batchItemFailures":[]}"#;

#[tokio::test]
async fn c33_the_answer_is_exact_to_the_byte() {
    let (world, config) = world();
    let bodies = published(&world, &config, 3).await;
    assert_eq!(answer(&world, &config, &records(&bodies), MINUTE).await.unwrap(), NOTHING_FAILED);
    assert_eq!(world.recipient.requests().len(), 3);

    let mut batch = records(&bodies);
    batch[1]["body"] = r#"{"waybill":2}"#.into();
    let answered = answer(&world, &config, &batch, MINUTE).await.unwrap();
    assert_eq!(answered, r#"{"batchItemFailures":[{"itemIdentifier":"m2"}]}"#);
    assert_eq!(answer(&world, &config, &[], MINUTE).await.unwrap(), NOTHING_FAILED);
}

#[tokio::test]
async fn c31_a_failure_at_the_recipient_is_no_failure_of_the_message() {
    let (world, config) = world();
    let bodies = published(&world, &config, 3).await;
    let failing = world.ledger.records()[1].delivery.id.clone();
    world.recipient.react(&failing, [Reaction::answer(503)]);
    assert_eq!(answer(&world, &config, &records(&bodies), MINUTE).await.unwrap(), NOTHING_FAILED);
    let states: Vec<State> = world.ledger.records().iter().map(|record| record.state).collect();
    assert_eq!(states.iter().filter(|state| **state == State::Succeeded).count(), 2);
    assert_eq!(states.iter().filter(|state| **state == State::Retryable).count(), 1);
    assert_eq!(world.queue.messages().len(), 4, "a fresh delayed wake-up follows");
}

#[tokio::test]
async fn c35_what_is_odd_about_one_record_is_that_records_matter() {
    let (world, config) = world();
    let bodies = published(&world, &config, 10).await;
    let mut batch = records(&bodies);
    batch[4]["body"] = "not json".into();
    batch[6]["messageAttributes"] = json!({"a": {"stringValue": "x", "dataType": "String"}});
    batch[6]["attributes"] = Value::Null;
    batch[7]["messageAttributes"] = json!({"a": {"binaryValue": null, "stringListValues": null}});
    batch[7].as_object_mut().unwrap().remove("receiptHandle");
    batch[8]["body"] = Value::Null;
    batch[9]["body"] = json!({"an": "object"});
    let answered = answer(&world, &config, &batch, MINUTE).await.unwrap();
    assert_eq!(answered, r#"{"batchItemFailures":[{"itemIdentifier":"m9"},{"itemIdentifier":"m10"}]}"#);
    assert_eq!(world.recipient.requests().len(), 7);
    // What is no envelope lies in the DLQ with its raw body, and does not come again.
    let buried: Vec<String> = world.queue.dead_letters().into_iter().map(|dead| dead.body).collect();
    assert_eq!(buried, ["not json"]);
}

#[tokio::test]
async fn c27_a_message_that_comes_twice_in_a_batch_is_worked_on_and_reported_once() {
    let (world, config) = world();
    let bodies = published(&world, &config, 1).await;
    let mut again = record("m1", &bodies[0]);
    again["receiptHandle"] = "another".into();
    let batch = [record("m1", &bodies[0]), again];
    assert_eq!(answer(&world, &config, &batch, MINUTE).await.unwrap(), NOTHING_FAILED);
    assert_eq!(world.recipient.requests().len(), 1);

    let newer = record("m2", r#"{"waybill":9}"#);
    let answered = answer(&world, &config, &[newer.clone(), newer], MINUTE).await.unwrap();
    assert_eq!(answered, r#"{"batchItemFailures":[{"itemIdentifier":"m2"}]}"#);
}

#[tokio::test]
async fn c29_what_cannot_be_ended_in_time_is_not_begun() {
    let (world, config) = world();
    let bodies = published(&world, &config, 3).await;
    // The attempt takes 10 s at most, and its lease's margin: 9 s are not enough, whoever asks.
    let answered = answer(&world, &config, &records(&bodies), DurationMs::from_secs(9)).await.unwrap();
    let all = json!({"batchItemFailures": [
        {"itemIdentifier": "m1"}, {"itemIdentifier": "m2"}, {"itemIdentifier": "m3"},
    ]});
    assert_eq!(answered, all.to_string());
    assert_eq!(world.recipient.requests().len(), 0);
    assert!(world.ledger.records().iter().all(|record| record.attempts_made == 0 && record.claim.is_none()));

    assert_eq!(answer(&world, &config, &records(&bodies), MINUTE).await.unwrap(), NOTHING_FAILED);
    assert_eq!(world.recipient.requests().len(), 3);
}

/// Panics at the second request that it gets.
#[derive(Default)]
struct Panicking(AtomicU32);

impl Recipient for Panicking {
    async fn look_up(&self, _: Request, _: RecipientUrl, _: SendWindow) -> Finding {
        Finding::NotApplied
    }

    async fn send(&self, request: Request, _: SendWindow) -> Sending {
        assert_ne!(self.0.fetch_add(1, Ordering::SeqCst), 1, "the second request panics");
        assert_ne!(request.body, Bytes::new());
        Sending::NotSent(waybill_domain::attempt::NotSent::LeaseTooShort)
    }
}

#[tokio::test]
async fn a_panic_fails_its_record_alone() {
    let world = around(VirtualClock::default(), Panicking::default());
    let config = config_file::parse(CONFIG, Locality::PublicOnly).unwrap();
    let bodies = published(&world, &config, 3).await;
    let answered = answer(&world, &config, &records(&bodies), MINUTE).await.unwrap();
    assert_eq!(answered, r#"{"batchItemFailures":[{"itemIdentifier":"m2"}]}"#);
}

#[tokio::test]
async fn a_record_without_an_id_is_worked_on_and_fails_the_batch_only_if_it_must_come_again() {
    let (world, config) = world();
    let bodies = published(&world, &config, 2).await;
    let nameless = |body: &str| json!({ "body": body });
    let batch = [nameless(&bodies[0]), record("m2", &bodies[1])];
    assert_eq!(answer(&world, &config, &batch, MINUTE).await.unwrap(), NOTHING_FAILED);
    assert_eq!(world.recipient.requests().len(), 2);

    let batch = [nameless(r#"{"waybill":2}"#), record("m2", &bodies[1])];
    let refused = answer(&world, &config, &batch, MINUTE).await;
    assert!(matches!(refused, Err(Unanswerable::Nameless(1))), "{refused:?}");
}

#[tokio::test]
async fn an_event_that_is_no_batch_is_an_error_and_nothing_is_deleted() {
    let (world, config) = world();
    for event in ["{}", "[]", "null", r#"{"Records":{}}"#] {
        let event = RawValue::from_string(event.to_owned()).unwrap();
        let refused = handle(&world, &config, &event, world.clock.now().plus(MINUTE)).await;
        assert!(matches!(refused, Err(Unanswerable::NotABatch(_))), "{event}");
    }
}
