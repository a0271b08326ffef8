//! What a delivery costs: DynamoDB's units, told by DynamoDB itself, and requests to SQS, counted as
//! they leave. Prints the table of docs/BENCHMARKS.md: `make costs`.
//!
//! Messages are received and deleted by the test, in batches of ten, as the event source mapping does
//! it. What a mapping spends on polling an empty queue, and a function on reading its configuration
//! every ten seconds, belongs to no delivery and is not in it.

#![allow(clippy::unwrap_used, reason = "a panic here is a red test")]

mod budgeted;
mod meter;

use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message};
use futures::future::join_all;
use serde_json::json;
use waybill_aws::{DynamoLedger, S3Payloads, SqsQueue};
use waybill_domain::address::Locality;
use waybill_domain::delivery::State;
use waybill_domain::identity::{DeliveryKey, MessageId, TenantId};
use waybill_domain::time::DurationMs;
use waybill_service::config::Config;
use waybill_service::config_file;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::desk::Desk;
use waybill_service::event::Event;
use waybill_service::ports::{Clock as _, Ledger as _, Ports};
use waybill_service::publish::{Published, Publisher};
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::FixedDice;
use waybill_testkit::scripted::{Reaction, ScriptedRecipient};
use waybill_tests_aws::place::{bucket, clients, name, table};

use crate::meter::{Costs, Meter, SqsMeter};

/// How many deliveries a batch has.
const BATCH: usize = 10;

struct World {
    ports: Ports<DynamoLedger, SqsQueue, ScriptedRecipient<VirtualClock>, VirtualClock, FixedDice>,
    config: Config,
    meter: Meter,
    sqs: aws_sdk_sqs::Client,
    queue_url: String,
    published: std::cell::Cell<usize>,
}

impl World {
    /// Everything in its place, and one event published: the first of a process names its tenant and
    /// its day, which the next ones need not.
    async fn new() -> Self {
        let clients = clients().await;
        let (table, bucket) = (table(&clients).await, bucket(&clients).await);
        let made = clients.sqs.create_queue().queue_name(name("work")).send().await.unwrap();
        let queue_url = made.queue_url.unwrap();
        let meter = Meter::default();
        let dynamo = clients.dynamo.config().to_builder().interceptor(meter.clone());
        let dynamo = aws_sdk_dynamodb::Client::from_conf(dynamo.build());
        let sqs = clients.sqs.config().to_builder().interceptor(SqsMeter(meter.clone()));
        let sqs = aws_sdk_sqs::Client::from_conf(sqs.build());
        let clock = VirtualClock::default();
        let ports = Ports {
            ledger: DynamoLedger::new(dynamo, table, S3Payloads::new(clients.s3, bucket)).reading_ahead(),
            queue: SqsQueue::new(sqs.clone(), &queue_url, "http://nowhere"),
            recipient: ScriptedRecipient::new(&clock),
            clock,
            dice: FixedDice::showing(0.5),
            desk: Desk::default(),
        };
        let config: String = (0..BATCH)
            .map(|n| {
                format!(
                    "[destinations.books-{n}]\ntenants = [\"acme\"]\nurl = \"https://b{n}.example.com/hooks\"\n\
                     secrets = [\"env:S\"]\n"
                )
            })
            .collect();
        let config = config_file::parse(&config, Locality::PublicOnly).unwrap();
        let world = Self { ports, config, meter, sqs, queue_url, published: Default::default() };
        world.publish(|_| 0, 1).await;
        world.work(1).await;
        world.meter.take();
        world
    }

    /// Publishes events of some 2 KB, as the lease example has them.
    async fn publish(&self, destination: impl Fn(usize) -> usize, events: usize) -> Vec<Published> {
        let ports = &self.ports;
        let mut published = Vec::new();
        for n in 0..events {
            let event = json!({
                "event_id": format!("lease_881:pay_{}", self.published.replace(self.published.get() + 1)),
                "tenant": "acme", "type": "lease.payment_recorded", "scope": "prop_204",
                "destination": format!("books-{}", destination(n)), "deadline": "2026-08-11T00:00:00Z",
                "payload": {"lease": "lease_881", "lines": "x".repeat(2000)},
            });
            let publisher = Publisher { ledger: &ports.ledger, queue: &ports.queue, clock: &ports.clock };
            let event = Event::parse(event.to_string().as_bytes()).unwrap();
            published.append(&mut publisher.publish(&self.config, event).await.unwrap());
        }
        published
    }

    /// Works on a batch of so many wake-ups, all at once, and deletes them together.
    async fn work(&self, messages: usize) {
        let received = self.receive(messages).await;
        join_all(received.iter().map(|message| async {
            let message_id = MessageId::parse(message.message_id.clone().unwrap()).unwrap();
            let incoming = Incoming { message_id: &message_id, body: message.body.as_ref().unwrap() };
            let consumer = Consumer { ports: &self.ports };
            let verdict = consumer.consume(&self.config, incoming, DurationMs::from_secs(60)).await;
            assert_eq!(verdict, Verdict::Acknowledge);
        }))
        .await;
        self.delete(received).await;
    }

    /// Deletes what was worked on, in one request.
    async fn delete(&self, received: Vec<Message>) {
        let entries = received.into_iter().enumerate().map(|(n, message)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(n.to_string());
            entry.receipt_handle(message.receipt_handle.unwrap()).build().unwrap()
        });
        let deleting = self.sqs.delete_message_batch().queue_url(&self.queue_url);
        let deleted = deleting.set_entries(Some(entries.collect())).send().await.unwrap();
        assert!(deleted.failed.is_empty());
    }

    async fn receive(&self, messages: usize) -> Vec<Message> {
        let receiving = self.sqs.receive_message().queue_url(&self.queue_url);
        let receiving = receiving.max_number_of_messages(messages as i32);
        let received = receiving.send().await.unwrap().messages.unwrap_or_default();
        assert_eq!(received.len(), messages, "one batch");
        received
    }

    /// What publishing a batch costs, and what delivering it does, for each event.
    async fn published_and_delivered(&self, destination: impl Fn(usize) -> usize) -> (Costs, Costs) {
        let before = self.ports.recipient.requests().len();
        self.publish(destination, BATCH).await;
        let published = self.meter.take().each_of(BATCH);
        self.work(BATCH).await;
        let delivered = self.meter.take().each_of(BATCH);
        assert_eq!(self.ports.recipient.requests().len(), before + BATCH);
        (published, delivered)
    }

    /// What an attempt that fails costs each of a batch, and one that succeeds after it.
    async fn retried_and_delivered(&self) -> (Costs, Costs) {
        let published = self.publish(|_| 0, BATCH).await;
        let keys: Vec<DeliveryKey> = self.keys(&published);
        for key in &keys {
            self.ports.recipient.react(&key.delivery_id, [Reaction::answer(503)]);
        }
        self.meter.take();
        self.work(BATCH).await;
        let failed = self.meter.take().each_of(BATCH);
        for key in &keys {
            let record = self.ports.ledger.load(key).await.unwrap().unwrap();
            assert_eq!((record.state, record.attempts_made), (State::Retryable, 1));
            self.ports.clock.set(record.due_at.max(self.ports.clock.now()));
        }
        self.wait_for(BATCH).await;
        self.meter.take();
        self.work(BATCH).await;
        let delivered = self.meter.take().each_of(BATCH);
        for key in &keys {
            assert_eq!(self.ports.ledger.load(key).await.unwrap().unwrap().state, State::Succeeded);
        }
        (failed, delivered)
    }

    fn keys(&self, published: &[Published]) -> Vec<DeliveryKey> {
        let tenant = TenantId::parse("acme").unwrap();
        let key =
            |one: &Published| DeliveryKey { tenant: tenant.clone(), delivery_id: one.delivery_id.clone() };
        published.iter().map(key).collect()
    }

    /// Waits until so many delayed messages may be seen: SQS keeps its delays by its own clock.
    async fn wait_for(&self, messages: usize) {
        use aws_sdk_sqs::types::QueueAttributeName::ApproximateNumberOfMessages as Visible;
        for _ in 0..200 {
            let asking = self.sqs.get_queue_attributes().queue_url(&self.queue_url).attribute_names(Visible);
            let told = asking.send().await.unwrap().attributes.unwrap();
            if told[&Visible].parse::<usize>().unwrap() >= messages {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("the wake-ups never came");
    }
}

#[tokio::test]
async fn what_a_delivery_costs() {
    let world = World::new().await;
    let (published, delivered) = world.published_and_delivered(|_| 0).await;
    let (published_to_ten, delivered_to_ten) = world.published_and_delivered(|n| n).await;
    let (failed, delivered_later) = world.retried_and_delivered().await;
    let (one, ten) = (published.and(delivered), published_to_ten.and(delivered_to_ten));

    println!("| per event, batches of ten | write units | writes | read units | reads | SQS requests |");
    println!("|---|---|---|---|---|---|");
    println!("| publish | {published} |");
    println!("| deliver | {delivered} |");
    println!("| **published and delivered**, one destination | {one} |");
    println!("| **published and delivered**, ten destinations | {ten} |");
    println!("| each attempt that fails and is retried | {failed} |");
    println!("| the attempt that succeeds after it | {delivered_later} |");

    for (name, costs) in [("one destination", one), ("ten destinations", ten)] {
        assert!(costs.write_units <= 9.5, "{name}: {costs:?}");
        assert!(costs.reads <= 1.0 && costs.read_units <= 1.0, "{name}: {costs:?}");
        assert!(costs.sqs_requests <= 1.3, "{name}: {costs:?}");
    }
    assert!(failed.write_units <= 9.0 && failed.reads <= 1.0 && failed.sqs_requests <= 1.3, "{failed:?}");
}
