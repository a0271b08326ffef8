//! A batch of ten to one destination with a budget: its share beside what a delivery costs anyway.

use std::time::Duration;

use aws_sdk_sqs::types::Message;
use futures::future::join_all;
use waybill_domain::budget::Budget;
use waybill_domain::destination::Destination;
use waybill_domain::envelope::{Decoded, decode};
use waybill_domain::identity::{DestinationName, MessageId};
use waybill_domain::time::DurationMs;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::ports::Budgets as _;
use waybill_testkit::scripted::Reaction;

use crate::{BATCH, World};

impl World {
    fn with_budget(mut self, concurrency: u32) -> Self {
        for destination in self.config.destinations.values_mut() {
            let budget = Budget::of(Some(concurrency), None);
            *destination = Destination { budget, ..Destination::clone(destination) }.into();
        }
        self
    }

    /// Works on everything that is visible as on one batch; each is answered some time after the last.
    async fn work_on_batch(&self) {
        let batch = self.receive(BATCH).await;
        let batch: Vec<(MessageId, Message)> = batch
            .into_iter()
            .map(|message| (MessageId::parse(message.message_id.clone().unwrap()).unwrap(), message))
            .collect();
        for (n, (_, message)) in (1..).zip(&batch) {
            if let Decoded::WakeUp(wakeup) = decode(message.body.as_ref().unwrap()) {
                let reaction = Reaction::answer(200).taking(DurationMs::from_ms(n));
                self.ports.recipient.react(&wakeup.facts.delivery_id, [reaction]);
            }
        }
        let consumer = Consumer { ports: &self.ports };
        let all = batch.iter().map(|(message_id, message)| {
            let incoming = Incoming { message_id, body: message.body.as_ref().unwrap() };
            consumer.consume(&self.config, incoming, DurationMs::from_secs(60))
        });
        let mut working = std::pin::pin!(join_all(all));
        let verdicts = loop {
            tokio::select! {
                verdicts = &mut working => break verdicts,
                // Everything that answers in real time has answered by now.
                () = tokio::time::sleep(Duration::from_millis(300)) => {
                    self.ports.clock.next_wait().into_iter().for_each(|at| self.ports.clock.set(at));
                }
            }
        };
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Acknowledge), "{verdicts:?}");
        self.delete(batch.iter().map(|(_, message)| message.clone()).collect()).await;
    }
}

#[tokio::test]
async fn with_a_budget_a_delivery_of_a_batch_costs_at_most_nine_and_a_half_write_units() {
    let world = World::new().await.with_budget(u32::try_from(BATCH).unwrap());
    let before = world.ports.recipient.requests().len();
    world.publish(|_| 0, BATCH).await;
    let published = world.meter.take().each_of(BATCH);
    world.work_on_batch().await;
    let delivered = world.meter.take();
    let destination = DestinationName::parse("books-0").unwrap();
    let kept = world.ports.ledger.usage(&destination).await.unwrap();

    let each = published.and(delivered.each_of(BATCH));
    println!("| **published and delivered**, one destination with a budget | {each} |");
    assert_eq!(kept.usage.leased(), 0);
    assert!(kept.revision <= 5, "{} writes of the budget", kept.revision);
    assert!(each.write_units <= 9.5, "{each:?}");
    // The first of a process reads the budget; the record's read is the delivery's own.
    assert!(delivered.reads <= BATCH as f64 + 1.0, "{delivered:?}");
    assert_eq!(world.ports.recipient.requests().len(), before + BATCH);
}
