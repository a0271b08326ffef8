//! C95: our own conditional write was made, its answer was lost, and the SDK's second try fails the
//! condition. The stored token says whose write it was.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use waybill_aws::clients::Limits;
use waybill_aws::{DynamoLedger, S3Payloads};
use waybill_domain::address::Locality;
use waybill_domain::delivery::State;
use waybill_domain::identity::DeliveryKey;
use waybill_domain::time::DurationMs;
use waybill_service::config_file;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::desk::Desk;
use waybill_service::event::Event;
use waybill_service::ports::{Ledger as _, Ports};
use waybill_service::publish::Publisher;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::FixedDice;
use waybill_testkit::memory::{MemoryQueue, QueueRules};
use waybill_testkit::scripted::ScriptedRecipient;

use crate::stub::{Asked, Reply, Stub};

const CONFIG: &str = "
[destinations.books]
tenants = [\"acme\"]
url = \"https://books.example.com/hooks\"
secrets = [\"env:S\"]
";

const EVENT: &str =
    r#"{"event_id":"e1","tenant":"acme","type":"lease.signed","destination":"books","payload":{"a":1.0}}"#;

/// What befalls the first answer to a conditional update.
#[derive(Clone, Copy, PartialEq)]
enum Mishap {
    Nothing,
    /// The update is made, and its answer is lost.
    AnswerLost(usize),
    /// The answer is lost, and what is stored is somebody else's claim.
    Overtaken,
}

/// As much of a table as the ledger uses.
#[derive(Default)]
struct Table {
    items: BTreeMap<(String, String), Map<String, Value>>,
    updates: usize,
}

impl Table {
    fn reply(&mut self, asked: &Asked, mishap: Mishap) -> Reply {
        let body = &asked.body;
        let text = |value: &Value| value["S"].as_str().unwrap_or_default().to_owned();
        let key = |item: &Value| (text(&item["pk"]), text(&item["sk"]));
        match asked.operation.as_str() {
            "PutItem" => {
                let at = key(&body["Item"]);
                if body.get("ConditionExpression").is_some() && self.items.contains_key(&at) {
                    return failed(self.items.get(&at));
                }
                self.items.insert(at, body["Item"].as_object().unwrap().clone());
                Reply::Answer(200, json!({}))
            }
            "GetItem" => match self.items.get(&key(&body["Key"])) {
                Some(item) => Reply::Answer(200, json!({ "Item": item })),
                None => Reply::Answer(200, json!({})),
            },
            "Query" => {
                let values = &body["ExpressionAttributeValues"];
                let (from, to) = (text(&values[":from"]), text(&values[":to"]));
                let pk = text(&values[":p"]);
                let found = self.items.iter().filter(|((p, s), _)| *p == pk && from <= *s && *s <= to);
                let items: Vec<_> = found.map(|(_, item)| item).collect();
                Reply::Answer(200, json!({ "Items": items, "Count": items.len() }))
            }
            "UpdateItem" => {
                self.updates += 1;
                let at = key(&body["Key"]);
                let values = &body["ExpressionAttributeValues"];
                let stored = self.items.get_mut(&at).unwrap();
                if stored["state"] != values[":was_state"] || stored["revision"] != values[":was_revision"] {
                    return failed(Some(stored));
                }
                for (name, value) in values.as_object().unwrap() {
                    if !name.starts_with(":was_") {
                        stored.insert(name[1..].to_owned(), value.clone());
                    }
                }
                let expression = body["UpdateExpression"].as_str().unwrap();
                if let Some((_, removed)) = expression.split_once(" REMOVE ") {
                    removed.split(", ").for_each(|name| drop(stored.remove(&name[1..])));
                }
                match mishap {
                    Mishap::AnswerLost(nth) if nth == self.updates => Reply::Cut,
                    Mishap::Overtaken if self.updates == 1 => {
                        let written = stored["record"]["S"].as_str().unwrap();
                        let theirs = written.replace("\"tk\":\"", "\"tk\":\"their-");
                        stored.insert("record".to_owned(), json!({ "S": theirs }));
                        Reply::Cut
                    }
                    _ => Reply::Answer(200, json!({})),
                }
            }
            other => panic!("the ledger asks for {other}"),
        }
    }
}

fn failed(stored: Option<&Map<String, Value>>) -> Reply {
    let code = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
    Reply::Answer(400, json!({ "__type": code, "message": "The conditional request failed", "Item": stored }))
}

type Worker = Ports<DynamoLedger, MemoryQueue, ScriptedRecipient<VirtualClock>, VirtualClock, FixedDice>;

/// Publishes one event and works on its wake-up, while `mishap` befalls an answer.
async fn worked_through(mishap: Mishap) -> (Verdict, Worker, DeliveryKey, Stub) {
    let table = Arc::new(Mutex::new(Table::default()));
    let stub = Stub::start(move |asked| table.lock().unwrap().reply(asked, mishap)).await;
    let clients = stub.clients(Limits::default()).await;
    let clock = VirtualClock::default();
    let ports = Ports {
        ledger: DynamoLedger::new(clients.dynamo, "ledger", S3Payloads::new(clients.s3, "bucket")),
        queue: MemoryQueue::new(&clock, QueueRules::default()),
        recipient: ScriptedRecipient::new(&clock),
        clock: clock.clone(),
        dice: FixedDice::showing(0.5),
        desk: Desk::default(),
    };
    let config = config_file::parse(CONFIG, Locality::PublicOnly).unwrap();
    let publisher = Publisher { ledger: &ports.ledger, queue: &ports.queue, clock: &clock };
    let event = Event::parse(EVENT.as_bytes()).unwrap();
    let key = DeliveryKey {
        tenant: event.tenant.clone(),
        delivery_id: publisher.publish(&config, event).await.unwrap().remove(0).delivery_id,
    };
    let (message_id, body, _) = ports.queue.messages().remove(0);
    let incoming = Incoming { message_id: &message_id, body: &body };
    let verdict = Consumer { ports: &ports }.consume(&config, incoming, DurationMs::from_secs(60)).await;
    (verdict, ports, key, stub)
}

#[tokio::test]
async fn a_delivery_needs_a_claim_a_settle_and_one_request() {
    let (verdict, ports, key, stub) = worked_through(Mishap::Nothing).await;
    assert_eq!(verdict, Verdict::Acknowledge);
    assert_eq!(ports.recipient.requests().len(), 1);
    let record = ports.ledger.load(&key).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempts_made), (State::Succeeded, 1));
    assert_eq!(stub.count("UpdateItem"), 2);
    // C101: the frozen bytes.
    assert_eq!(&ports.ledger.payload(&key).await.unwrap().unwrap()[..], br#"{"a":1.0}"#);
}

#[tokio::test]
async fn c95_our_own_write_whose_answer_was_lost_is_recognised() {
    for (name, nth) in [("the claim", 1), ("the settle", 2)] {
        let (verdict, ports, key, stub) = worked_through(Mishap::AnswerLost(nth)).await;
        assert_eq!(verdict, Verdict::Acknowledge, "{name}");
        assert_eq!(ports.recipient.requests().len(), 1, "{name}: sent exactly once");
        let record = ports.ledger.load(&key).await.unwrap().unwrap();
        assert_eq!((record.state, record.attempts_made), (State::Succeeded, 1), "{name}");
        assert_eq!(stub.count("UpdateItem"), 3, "{name}: one of two was repeated by the SDK");
    }
}

#[tokio::test]
async fn c95_a_claim_of_somebody_else_sends_nothing() {
    let (verdict, ports, key, _) = worked_through(Mishap::Overtaken).await;
    assert!(
        matches!(verdict, Verdict::Leave { .. }),
        "our copy owes the hand-off of that claim: {verdict:?}"
    );
    assert_eq!(ports.recipient.requests().len(), 0);
    let record = ports.ledger.load(&key).await.unwrap().unwrap();
    assert!(record.claim.as_ref().unwrap().token.as_str().starts_with("their-"));
}
