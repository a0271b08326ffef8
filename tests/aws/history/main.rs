//! What a round of the reconciler costs on DynamoDB, by how much history there is: `make bench-aws`.
//!
//! The same hundred deliveries are due each time, spread evenly over tables that differ in how many deliveries
//! have ended. One delivery of each kind is made by Waybill's own code, and its items are cloned under delivery
//! IDs that are derived as always. Units are DynamoDB's own, as the emulator reckons them; wake-ups are counted
//! in a queue in memory.

#![allow(clippy::unwrap_used, reason = "a panic here is a red test")]

#[path = "../costs/meter.rs"]
#[allow(dead_code, reason = "the costs of a delivery use all of it")]
mod meter;
mod seed;

use std::time::Instant;

use waybill_aws::office::AwsOffice;
use waybill_aws::{Clients, DynamoLedger, S3Payloads};
use waybill_service::reconcile::TickLimits;
use waybill_service::round::Round;
use waybill_service::schedule::Learned;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::SeededDice;
use waybill_testkit::memory::{MemoryQueue, QueueRules};
use waybill_testkit::originals::{self, DUE, LATER};
use waybill_tests_aws::place::{clients, table};

use crate::meter::{Costs, Meter};

/// What a round did and cost.
#[derive(Debug, PartialEq)]
struct Seen {
    woken: usize,
    messages: usize,
    costs: Costs,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_round_costs_does_not_know_history() {
    let sizes = std::env::var("WAYBILL_HISTORY").unwrap_or_else(|_| "10000 1000000".to_owned());
    let mut of_first: Option<(Seen, Seen)> = None;
    println!(
        "| finished deliveries | 100 due: write units | writes | read units | reads | wake-ups | time | nothing due: \
         read units | reads |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for size in sizes.split_whitespace() {
        let finished: usize = size.parse().unwrap();
        let clients = clients().await;
        let table = table(&clients).await;
        let clock = VirtualClock::default();
        seed::seed(&clients, &table, &clock, finished).await;
        clock.advance(LATER);
        let start = Instant::now();
        let due = round(&clients, &table, &clock).await;
        let took = start.elapsed().as_millis();
        let idle = round(&clients, &table, &clock).await;
        clients.dynamo.delete_table().table_name(&table).send().await.unwrap();
        let Costs { write_units, writes, read_units, reads, .. } = due.costs;
        println!(
            "| {finished} | {write_units:.1} | {writes} | {read_units:.1} | {reads} | {} | {took} ms | {:.1} | {} |",
            due.messages, idle.costs.read_units, idle.costs.reads
        );
        assert_eq!((due.woken, due.messages), (DUE, DUE), "what is due is woken");
        assert_eq!((idle.woken, idle.messages, idle.costs.writes), (0, 0, 0.0), "and nothing twice");
        match &of_first {
            Some(first) => assert_eq!((&first.0, &first.1), (&due, &idle), "{finished} finished deliveries"),
            None => of_first = Some((due, idle)),
        }
    }
}

/// One round by a process that knows nothing.
async fn round(clients: &Clients, table: &str, clock: &VirtualClock) -> Seen {
    let meter = Meter::default();
    let metered = clients.dynamo.config().to_builder().interceptor(meter.clone()).build();
    let clients = Clients { dynamo: aws_sdk_dynamodb::Client::from_conf(metered), ..clients.clone() };
    let payloads = S3Payloads::new(clients.s3.clone(), "unused");
    let ledger = DynamoLedger::new(clients.dynamo.clone(), table, payloads);
    let queue = MemoryQueue::new(clock, QueueRules::default());
    let office = AwsOffice::new(clients, table, "unused");
    let dice = SeededDice::new("history", 1);
    let round = Round { ledger: &ledger, queue: &queue, office: &office, clock, dice: &dice };
    let report = round.run(&originals::config(), &Learned::default(), TickLimits::default()).await.unwrap();
    Seen { woken: report.looked.woken, messages: queue.messages().len(), costs: meter.take() }
}
