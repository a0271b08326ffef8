//! A batch of ten to one destination with a budget: its share beside what a delivery costs anyway.

use std::time::Duration;

use futures::future::join_all;
use waybill_domain::budget::Budget;
use waybill_domain::destination::Destination;
use waybill_domain::identity::DestinationName;
use waybill_domain::time::DurationMs;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::ports::{Budgets as _, Inbox as _};
use waybill_testkit::scripted::Reaction;

use crate::{DELIVERIES, World};

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
        let batch = self.ports.queue.receive(100, DurationMs::from_secs(60)).await.unwrap();
        for (n, message) in (1..).zip(&batch) {
            if let waybill_domain::envelope::Decoded::WakeUp(wakeup) =
                waybill_domain::envelope::decode(&message.body)
            {
                let taking = DurationMs::from_ms(n);
                let reaction = Reaction::answer(200).taking(taking);
                self.ports.recipient.react(&wakeup.facts.delivery_id, [reaction]);
            }
        }
        let consumer = Consumer { ports: &self.ports };
        let all = batch.iter().map(|message| {
            let incoming = Incoming { message_id: &message.message_id, body: &message.body };
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
        for message in &batch {
            self.ports.queue.acknowledge(&message.receipt).await.unwrap();
        }
    }
}

#[tokio::test]
async fn with_a_budget_a_delivery_of_a_batch_costs_at_most_nine_and_a_half_write_units() {
    let world = World::new().await.with_budget(DELIVERIES);
    world.publish(0, 1).await;
    world.meter.take();
    world.publish(1, DELIVERIES - 1).await;
    let published = world.meter.take();
    world.work_on_batch().await;
    let delivered = world.meter.take();
    let destination = DestinationName::parse("acme-accounting").unwrap();
    let kept = world.ports.ledger.usage(&destination).await.unwrap();

    println!("deliver, with a budget            {}", delivered.each_of(DELIVERIES));
    let each =
        published.write_units / f64::from(DELIVERIES - 1) + delivered.write_units / f64::from(DELIVERIES);
    println!("published and delivered           {each:.2} write units");
    assert_eq!(kept.usage.leased(), 0);
    assert!(kept.revision <= 5, "{} writes of the budget", kept.revision);
    assert!(each <= 9.5, "{each} write units");
    // The first of a process reads the budget; the record's read is the delivery's own.
    assert!(delivered.reads <= DELIVERIES + 1, "{} reads", delivered.reads);
    assert_eq!(world.ports.recipient.requests().len(), DELIVERIES as usize);
}
