//! A worker and a reconciler, each with a clock of its own, over a queue that may lose and double.

use std::future::Future;

use waybill_domain::delivery::Record;
use waybill_domain::identity::DeliveryId;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::event::Event;
use waybill_service::ports::{Clock as _, Inbox as _, Ports};
use waybill_service::publish::Publisher;
use waybill_service::reconcile::{Reconciler, TickLimits};
use waybill_testkit::clock::{SkewedClock, VirtualClock};
use waybill_testkit::dice::SeededDice;
use waybill_testkit::memory::{MemoryLedger, MemoryQueue, QueueEvent};
use waybill_testkit::scripted::{Reaction, ScriptedRecipient};

use crate::world::{World, key};

pub(crate) const MINUTE: DurationMs = DurationMs::from_secs(60);

/// One worker, and a reconciler that ticks every minute of true time; each with a clock of its own.
pub(crate) struct Site {
    pub(crate) world: World,
    pub(crate) reconciler: SkewedClock,
    pub(crate) worker:
        Ports<MemoryLedger, MemoryQueue, ScriptedRecipient<SkewedClock>, SkewedClock, SeededDice>,
    next_tick: TimeMs,
    /// Messages that were sent so far.
    pub(crate) sent: usize,
    /// What happens to the n-th message that is sent.
    pub(crate) mischief: fn(usize) -> Mischief,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mischief {
    None,
    Lost,
    Doubled,
}

impl Site {
    pub(crate) fn new(worker_ms: i64, reconciler_ms: i64) -> Self {
        let world = World::new();
        let clock = SkewedClock::of(&world.clock, worker_ms);
        let worker = Ports {
            ledger: world.ports.ledger.clone(),
            queue: world.ports.queue.clone(),
            recipient: world.ports.recipient.reached_by("worker", clock.clone()),
            clock,
            dice: SeededDice::new("worker", 7),
            desk: Default::default(),
        };
        let reconciler = SkewedClock::of(&world.clock, reconciler_ms);
        Self {
            next_tick: world.clock.now(),
            world,
            reconciler,
            worker,
            sent: 0,
            mischief: |_| Mischief::None,
        }
    }

    pub(crate) fn clock(&self) -> &VirtualClock {
        &self.world.clock
    }

    pub(crate) fn block<F: Future>(&self, future: F) -> F::Output {
        self.world.block(future)
    }

    /// Published at a machine whose clock is right.
    pub(crate) fn publish(
        &mut self,
        json: &str,
        reactions: impl IntoIterator<Item = Reaction>,
    ) -> DeliveryId {
        let event = Event::parse(json.as_bytes()).unwrap();
        let Ports { ledger, queue, .. } = &self.worker;
        let publisher = Publisher { ledger, queue, clock: self.clock() };
        let published = self.block(publisher.publish(&self.world.config, event)).unwrap();
        let id = published[0].delivery_id.clone();
        self.world.ports.recipient.react(&id, reactions);
        self.meddle();
        id
    }

    /// Loses and doubles what was sent since the last call.
    pub(crate) fn meddle(&mut self) {
        for happened in self.worker.queue.take_journal() {
            let QueueEvent::Sent { message_id, .. } = happened else { continue };
            self.sent += 1;
            match (self.mischief)(self.sent) {
                Mischief::None => {}
                Mischief::Lost => assert!(self.worker.queue.lose(&message_id)),
                Mischief::Doubled => assert!(self.worker.queue.duplicate(&message_id)),
            }
        }
    }

    pub(crate) fn work_for_what_is_visible(&mut self) -> bool {
        let messages = self.block(self.worker.queue.receive(10, MINUTE)).unwrap();
        for message in &messages {
            let consumer = Consumer { ports: &self.worker };
            let incoming = Incoming { message_id: &message.message_id, body: &message.body };
            match self.block(consumer.consume(&self.world.config, incoming, MINUTE)) {
                Verdict::Acknowledge => self.block(self.worker.queue.acknowledge(&message.receipt)).unwrap(),
                Verdict::Leave { .. } => {}
            }
            self.meddle();
        }
        !messages.is_empty()
    }

    pub(crate) fn tick(&mut self) {
        let Ports { ledger, queue, dice, .. } = &self.worker;
        let reconciler = Reconciler { ledger, queue, clock: &self.reconciler, dice };
        self.block(reconciler.tick(&self.world.config, TickLimits::default())).unwrap();
        self.meddle();
    }

    pub(crate) fn run_until(&mut self, end: TimeMs) {
        while self.clock().now() < end {
            if self.clock().now() >= self.next_tick {
                self.tick();
                self.next_tick = self.clock().now().plus(MINUTE);
            }
            if self.work_for_what_is_visible() {
                continue;
            }
            let next = self.next_tick.min(end);
            let next = self.worker.queue.next_at().map_or(next, |at| at.min(next));
            // What a right clock sees as due may lie ahead of a slow one: then a second is let pass.
            self.clock().set(next.max(self.clock().now().plus(DurationMs::from_ms(1))));
        }
    }

    pub(crate) fn record(&self, id: &DeliveryId) -> Record {
        self.world.ports.ledger.peek(&key("acme", id)).unwrap()
    }

    pub(crate) fn sent_after(&self, id: &DeliveryId, from: TimeMs) -> Vec<DurationMs> {
        let requests = self.world.ports.recipient.requests();
        requests.iter().filter(|r| r.delivery_id == *id).map(|r| r.at.since(from)).collect()
    }
}
