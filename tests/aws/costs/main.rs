//! What a delivery costs in DynamoDB's units, told by DynamoDB itself: on the way without a failure,
//! and for each retry. Prints the table that the README shows (`--nocapture`).

#![allow(clippy::unwrap_used, reason = "a panic here is a red test")]

mod budgeted;
mod meter;

use aws_sdk_dynamodb::config::Builder;
use serde_json::json;
use waybill_aws::{DynamoLedger, S3Payloads};
use waybill_domain::address::Locality;
use waybill_domain::delivery::State;
use waybill_domain::time::DurationMs;
use waybill_service::config::Config;
use waybill_service::config_file;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::desk::Desk;
use waybill_service::event::Event;
use waybill_service::ports::{Inbox as _, Ledger as _, Ports};
use waybill_service::publish::Publisher;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::FixedDice;
use waybill_testkit::memory::{MemoryQueue, QueueRules};
use waybill_testkit::scripted::{Reaction, ScriptedRecipient};
use waybill_tests_aws::place::{bucket, clients, table};

use crate::meter::{Costs, Meter};

const CONFIG: &str = "
[destinations.acme-accounting]
tenants = [\"acme\"]
url = \"https://accounting.example.com/hooks\"
secrets = [\"env:S\"]
event_types = [\"lease.*\"]
";

const DELIVERIES: u32 = 10;

struct World {
    ports: Ports<DynamoLedger, MemoryQueue, ScriptedRecipient<VirtualClock>, VirtualClock, FixedDice>,
    config: Config,
    meter: Meter,
}

impl World {
    async fn new() -> Self {
        let clients = clients().await;
        let (table, bucket) = (table(&clients).await, bucket(&clients).await);
        let meter = Meter::default();
        let metered: Builder = clients.dynamo.config().to_builder().interceptor(meter.clone());
        let metered = aws_sdk_dynamodb::Client::from_conf(metered.build());
        let ledger = DynamoLedger::new(metered, table, S3Payloads::new(clients.s3, bucket)).reading_ahead();
        let clock = VirtualClock::default();
        let ports = Ports {
            ledger,
            queue: MemoryQueue::new(&clock, QueueRules::default()),
            recipient: ScriptedRecipient::new(&clock),
            clock,
            dice: FixedDice::showing(0.5),
            desk: Desk::default(),
        };
        Self { ports, config: config_file::parse(CONFIG, Locality::PublicOnly).unwrap(), meter }
    }

    /// Publishes events of some 2 KB, as the lease example has them.
    async fn publish(&self, from: u32, events: u32) {
        let ports = &self.ports;
        for n in from..from + events {
            let event = json!({
                "event_id": format!("lease_881:pay_{n}"), "tenant": "acme", "type": "lease.payment_recorded",
                "destination": "acme-accounting", "scope": "prop_204", "deadline": "2026-08-11T00:00:00Z",
                "payload": {"lease": "lease_881", "lines": "x".repeat(2000)},
            });
            let publisher = Publisher { ledger: &ports.ledger, queue: &ports.queue, clock: &ports.clock };
            publisher
                .publish(&self.config, Event::parse(event.to_string().as_bytes()).unwrap())
                .await
                .unwrap();
        }
    }

    /// Works on everything that is visible.
    async fn work(&self) {
        for message in self.ports.queue.receive(100, DurationMs::from_secs(60)).await.unwrap() {
            let incoming = Incoming { message_id: &message.message_id, body: &message.body };
            let consumer = Consumer { ports: &self.ports };
            let verdict = consumer.consume(&self.config, incoming, DurationMs::from_secs(60)).await;
            assert_eq!(verdict, Verdict::Acknowledge);
            self.ports.queue.acknowledge(&message.receipt).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_delivery_costs_at_most_nine_write_units_and_one_read() {
    let world = World::new().await;
    world.publish(0, 1).await;
    let first = world.meter.take();
    world.publish(1, DELIVERIES - 1).await;
    let published = world.meter.take();
    world.work().await;
    let delivered = world.meter.take();

    let others = DELIVERIES - 1;
    println!("publish, the first of a process   {}", first.each_of(1));
    println!("publish                           {}", published.each_of(others));
    println!("deliver                           {}", delivered.each_of(DELIVERIES));
    let each = published.write_units / f64::from(others) + delivered.write_units / f64::from(DELIVERIES);
    println!("published and delivered           {each:.2} write units");
    assert!(each <= 9.0, "{each} write units");
    assert_eq!(delivered.read_units / f64::from(DELIVERIES), 1.0);
    assert_eq!(delivered.reads, DELIVERIES);
    assert_eq!(world.ports.recipient.requests().len(), DELIVERIES as usize);
}

#[tokio::test]
async fn a_retry_costs_its_evidence_and_its_place_in_the_open_index() {
    let world = World::new().await;
    world.publish(0, 1).await;
    let (_, body, _) = world.ports.queue.messages().remove(0);
    let delivery_id = match waybill_domain::envelope::decode(&body) {
        waybill_domain::envelope::Decoded::WakeUp(wakeup) => wakeup.facts.delivery_id,
        other => panic!("{other:?}"),
    };
    world.ports.recipient.react(&delivery_id, [Reaction::answer(503), Reaction::answer(503)]);
    let mut costs: Vec<Costs> = Vec::new();
    for _ in 0..3 {
        world.meter.take();
        world.work().await;
        costs.push(world.meter.take());
        let next = world.ports.queue.next_at();
        next.into_iter().for_each(|at| world.ports.clock.set(at));
    }
    println!("first attempt, failed             {}", costs[0].each_of(1));
    println!("second attempt, failed            {}", costs[1].each_of(1));
    println!("third attempt, delivered          {}", costs[2].each_of(1));
    let key = waybill_domain::identity::DeliveryKey {
        tenant: waybill_domain::identity::TenantId::parse("acme").unwrap(),
        delivery_id,
    };
    let record = world.ports.ledger.load(&key).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempts_made), (State::Succeeded, 3));
    assert!(costs.iter().all(|cost| cost.write_units <= 9.0 && cost.reads == 1), "{costs:?}");
}
