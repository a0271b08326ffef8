//! A table with much history: the items of two deliveries, cloned.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use futures::stream::{self, StreamExt as _};
use waybill_aws::{Clients, DynamoLedger, S3Payloads};
use waybill_domain::address::Locality;
use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId};
use waybill_domain::time::DurationMs;
use waybill_service::config_file;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::event::Event;
use waybill_service::ports::{Inbox as _, Ports};
use waybill_service::publish::Publisher;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::SeededDice;
use waybill_testkit::memory::{MemoryQueue, QueueRules};
use waybill_testkit::scripted::ScriptedRecipient;

/// How many deliveries are due for a look: their wake-ups were lost.
pub(crate) const DUE: usize = 100;

/// What DynamoDB takes in one request.
const TOGETHER: usize = 25;
/// Requests under way at a time.
const AT_ONCE: usize = 4;

const WHILE: DurationMs = DurationMs::from_secs(60);

type Item = HashMap<String, AttributeValue>;

/// The items of a delivery to clone.
struct Template {
    event_id: &'static str,
    delivery_id: String,
    items: Vec<Item>,
}

/// Makes `finished` deliveries that succeeded, and [`DUE`] that are due, evenly among them.
pub(crate) async fn seed(clients: &Clients, table: &str, clock: &VirtualClock, finished: usize) {
    one_of_each(clients, table, clock).await;
    let done = Template::of(clients, table, "done").await;
    let lost = Template::of(clients, table, "lost").await;
    let every = finished / DUE;
    // The templates count: the first of each kind stands already.
    let items = (1..finished).flat_map(|n| {
        let due = n.is_multiple_of(every).then(|| lost.clone_as(&format!("lost-{n}")));
        done.clone_as(&format!("done-{n}")).into_iter().chain(due.into_iter().flatten())
    });
    let batches = stream::iter(items).chunks(TOGETHER).map(|batch| put(clients, table, batch));
    batches.buffer_unordered(AT_ONCE).for_each(|()| async {}).await;
}

/// Two deliveries: `done` was delivered, `lost` was recorded and its wake-up is gone.
async fn one_of_each(clients: &Clients, table: &str, clock: &VirtualClock) {
    let config = config_file::parse(crate::CONFIG, Locality::PublicOnly).unwrap();
    let payloads = S3Payloads::new(clients.s3.clone(), "unused");
    let ports = Ports {
        ledger: DynamoLedger::new(clients.dynamo.clone(), table, payloads),
        queue: MemoryQueue::new(clock, QueueRules::default()),
        recipient: ScriptedRecipient::new(clock),
        clock: clock.clone(),
        dice: SeededDice::new("seed", 1),
        desk: Default::default(),
    };
    for event_id in ["done", "lost"] {
        let event = format!(
            r#"{{"event_id":"{event_id}","tenant":"acme","type":"lease.payment_recorded","destination":"books",
                "payload":{{"leaseId":"lease_881","amountCents":125000,"currency":"USD"}}}}"#
        );
        let event = Event::parse(event.as_bytes()).unwrap();
        let publisher = Publisher { ledger: &ports.ledger, queue: &ports.queue, clock };
        publisher.publish(&config, event).await.unwrap();
        for message in ports.queue.receive(1, WHILE).await.unwrap() {
            if event_id == "done" {
                let incoming = Incoming { message_id: &message.message_id, body: &message.body };
                let verdict = Consumer { ports: &ports }.consume(&config, incoming, WHILE).await;
                assert_eq!(verdict, Verdict::Acknowledge, "it is delivered");
            }
            ports.queue.acknowledge(&message.receipt).await.unwrap();
        }
    }
}

impl Template {
    async fn of(clients: &Clients, table: &str, event_id: &'static str) -> Self {
        let delivery_id = derived(event_id);
        let partition = AttributeValue::S(format!("T#acme#D#{delivery_id}"));
        let asking = clients.dynamo.query().table_name(table).key_condition_expression("pk = :pk");
        let found = asking.expression_attribute_values(":pk", partition).send().await.unwrap();
        let items = found.items.unwrap();
        assert_eq!(items.len(), 2, "a record and a payload");
        Self { event_id, delivery_id, items }
    }

    fn clone_as(&self, event_id: &str) -> Vec<Item> {
        let delivery_id = derived(event_id);
        let quoted = |text: &str| format!("\"{text}\"");
        let said = |value: &AttributeValue| match value {
            AttributeValue::S(text) => {
                let text = text.replace(&self.delivery_id, &delivery_id);
                AttributeValue::S(text.replace(&quoted(self.event_id), &quoted(event_id)))
            }
            other => other.clone(),
        };
        let cloned = |item: &Item| {
            let mut cloned: Item = item.iter().map(|(name, value)| (name.clone(), said(value))).collect();
            // A delivery's shard follows from its ID.
            if let Some(shard) = cloned.get_mut("open_shard") {
                let sum: u32 = delivery_id.bytes().map(u32::from).sum();
                *shard = AttributeValue::S(format!("O#{}", sum % waybill_aws::table::OPEN_SHARDS));
            }
            cloned
        };
        self.items.iter().map(cloned).collect()
    }
}

async fn put(clients: &Clients, table: &str, batch: Vec<Item>) {
    let request = |item| {
        WriteRequest::builder()
            .put_request(PutRequest::builder().set_item(Some(item)).build().unwrap())
            .build()
    };
    let mut left: Vec<WriteRequest> = batch.into_iter().map(request).collect();
    while !left.is_empty() {
        let writing = clients.dynamo.batch_write_item().request_items(table, left);
        let answer = writing.send().await.unwrap();
        left = answer.unprocessed_items.unwrap_or_default().remove(table).unwrap_or_default();
    }
}

fn derived(event_id: &str) -> String {
    let (tenant, destination) = (TenantId::parse("acme"), DestinationName::parse("books"));
    let event = EventId::parse(event_id).unwrap();
    DeliveryId::derive(&tenant.unwrap(), &event, &destination.unwrap()).to_string()
}
