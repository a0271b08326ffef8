//! Workers that work side by side within a budget, and what came of it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use waybill_domain::budget::Budget;
use waybill_domain::destination::Destination;
use waybill_domain::identity::{DeliveryId, DestinationName};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::ports::{Clock as _, Inbox as _};
use waybill_service::reconcile::TickReport;
use waybill_testkit::memory::QueueEvent;
use waybill_testkit::scripted::Reaction;

use crate::world::{Message, World, event, poll_while_moving};

pub(crate) const MINUTE: DurationMs = DurationMs::from_secs(60);

pub(crate) fn secs(seconds: u64) -> DurationMs {
    DurationMs::from_secs(seconds)
}

pub(crate) fn slots(concurrency: u32) -> impl FnOnce(&mut Destination) {
    move |destination| destination.budget = Budget::of(Some(concurrency), None)
}

pub(crate) fn accounting() -> DestinationName {
    DestinationName::parse("accounting").unwrap()
}

/// Publishes so many events, each answered 200 after `taking`.
pub(crate) fn published(world: &World, from: usize, events: usize, taking: DurationMs) -> Vec<DeliveryId> {
    let reaction = || [Reaction::answer(200).taking(taking)];
    (from..from + events).map(|n| world.published(&event(&format!("e{n}")), reaction())).collect()
}

/// A wake-up for the record as it stands.
pub(crate) fn wake(world: &World, id: &DeliveryId) -> waybill_domain::identity::MessageId {
    let body = waybill_domain::envelope::WakeUp::for_next_attempt(&world.record(id)).encode();
    let outgoing = waybill_service::ports::Outgoing { body, delay: DurationMs::ZERO };
    world.block(waybill_service::ports::Queue::send(&world.ports.queue, outgoing)).unwrap()
}

/// A batch, all of its records at once, as the consumer function works on it. The clock moves only
/// when nobody can.
pub(crate) fn work_on_batch(world: &World, batch: &[Message]) -> Vec<Verdict> {
    let consumer = Consumer { ports: &world.ports };
    let one = |message: &Message| {
        let (id, body) = (message.message_id.clone(), message.body.clone());
        let (consumer, config) = (&consumer, &world.config);
        async move { consumer.consume(config, Incoming { message_id: &id, body: &body }, secs(30)).await }
    };
    let mut working = pin!(futures::future::join_all(batch.iter().map(one)));
    let verdicts = loop {
        match poll_while_moving(working.as_mut()) {
            Some(verdicts) => break verdicts,
            None => world.clock.set(world.clock.next_wait().unwrap()),
        }
    };
    for (message, _) in batch.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Verdict::Acknowledge) {
        world.block(world.ports.queue.acknowledge(&message.receipt)).unwrap();
    }
    verdicts
}

/// So many workers and a reconciler, until the time comes or nothing is left to do.
pub(crate) struct Crew<'w> {
    world: &'w World,
    workers: usize,
    next_tick: TimeMs,
    pub(crate) ticks: Vec<TickReport>,
    at_work: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + 'w>>>,
}

impl<'w> Crew<'w> {
    pub(crate) fn of(world: &'w World, workers: usize) -> Self {
        let at_work = FuturesUnordered::new();
        Self { world, workers, next_tick: world.clock.now(), ticks: Vec::new(), at_work }
    }

    pub(crate) fn work_until(&mut self, end: TimeMs) {
        let world = self.world;
        loop {
            if self.next_tick <= world.clock.now() {
                self.ticks.push(world.reconcile());
                self.next_tick = world.clock.now().plus(MINUTE);
            }
            let room = self.workers - self.at_work.len();
            let received = world.block(world.ports.queue.receive(room, MINUTE)).unwrap();
            for message in received {
                self.at_work.push(Box::pin(async move {
                    let consumer = Consumer { ports: &world.ports };
                    let incoming = Incoming { message_id: &message.message_id, body: &message.body };
                    let verdict = consumer.consume(&world.config, incoming, MINUTE).await;
                    match verdict {
                        Verdict::Acknowledge => world.ports.queue.acknowledge(&message.receipt).await,
                        Verdict::Leave { hidden_until } => {
                            let until = hidden_until.unwrap_or(world.clock.now().plus(MINUTE));
                            world.ports.queue.hide_until(&message.receipt, until).await
                        }
                    }
                    .unwrap();
                }));
            }
            while let Some(Some(())) = poll_while_moving(pin!(self.at_work.next())) {}
            let more = world.ports.queue.next_at().filter(|_| self.at_work.len() < self.workers);
            let next = [world.clock.next_wait(), more, Some(self.next_tick)].into_iter().flatten().min();
            match next {
                Some(at) if at < end => world.clock.set(at.max(world.clock.now())),
                _ => break,
            }
        }
        world.clock.set(end);
    }
}

/// The most requests that were with the recipient at once, each for as long as it took.
pub(crate) fn most_at_once(world: &World, taking: DurationMs) -> usize {
    let mut changes: BTreeMap<TimeMs, i64> = BTreeMap::new();
    for request in world.ports.recipient.requests() {
        *changes.entry(request.at).or_default() += 1;
        *changes.entry(request.at.plus(taking)).or_default() -= 1;
    }
    let mut at_once = 0;
    let counted = changes.values().map(|change| {
        at_once += change;
        at_once
    });
    usize::try_from(counted.max().unwrap_or(0)).unwrap()
}

pub(crate) fn starts_ms(world: &World, from: TimeMs) -> Vec<u64> {
    world.ports.recipient.requests().iter().map(|request| request.at.since(from).as_ms()).collect()
}

pub(crate) fn messages_sent(world: &World) -> usize {
    world.ports.queue.take_journal().iter().filter(|event| matches!(event, QueueEvent::Sent { .. })).count()
}
