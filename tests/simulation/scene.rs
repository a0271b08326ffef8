//! A small world for traces: one destination, two workers, one reconciler, stepped by hand.

use bytes::Bytes;
use waybill_domain::delivery::{Record, State};
use waybill_domain::identity::{DeliveryKey, DestinationName, EventId, MessageId, TenantId};
use waybill_domain::policy::{Backoff, PolicyTerms};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::event::Event;
use waybill_service::ports::{Clock, PortResult};
use waybill_service::reconcile::{TickLimits, TickReport};
use waybill_testkit::faults::{Actor, Call, Side};
use waybill_testkit::memory::QueueRules;
use waybill_testkit::scripted::Reaction;
use waybill_testkit::simulation::actors::WorkerTerms;
use waybill_testkit::simulation::world::{TENANT, World, destination, event_type};

pub(crate) const SECOND: DurationMs = DurationMs::from_secs(1);
pub(crate) const MINUTE: DurationMs = DurationMs::from_secs(60);

/// The destination of every trace: no backoff, so that what is due again is due at once.
pub(crate) const BOOKS: &str = "books";

/// A world, and the one delivery that the trace is about.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) key: DeliveryKey,
}

impl Scene {
    pub(crate) fn new(max_attempts: u32) -> Self {
        let backoff = Backoff { base: DurationMs::ZERO, factor: 1.0, max: DurationMs::ZERO };
        let terms = PolicyTerms { max_attempts, backoff, ..PolicyTerms::default() };
        let world = World::new(QueueRules::default(), vec![destination(BOOKS, terms)], None);
        let key = world.key("e1", BOOKS);
        Self { world, key }
    }

    pub(crate) fn event(&self) -> Event {
        Event {
            event_id: EventId::parse("e1").unwrap(),
            tenant: TenantId::parse(TENANT).unwrap(),
            event_type: event_type(false),
            destination: Some(DestinationName::parse(BOOKS).unwrap()),
            scope: None,
            deadline: None,
            not_before: None,
            policy: None,
            payload_version: None,
            content_type: "application/json".to_owned(),
            payload: Bytes::from_static(br#"{"amount": 1}"#),
        }
    }

    /// Publishes the event, and says which message the queue made of its wake-up.
    pub(crate) fn publish(&self) -> MessageId {
        self.publish_as(self.event());
        self.newest_message()
    }

    pub(crate) fn publish_as(&self, event: Event) {
        let (producer, answer) = self.world.producer("producer", &self.world.right_clock(), event);
        producer.run();
        answer.lock().unwrap().take().unwrap().unwrap();
    }

    /// A worker about to receive.
    pub(crate) fn worker(&self, name: &str) -> Actor {
        self.world.worker(name, &self.world.right_clock(), 1, WorkerTerms::default())
    }

    /// A worker that has received what is visible, or was made a duplicate, and has loaded nothing.
    pub(crate) fn worker_with(&self, name: &str, message_id: &MessageId) -> Actor {
        let mut worker = self.worker(name);
        worker.run_to(Call::Receive, Side::After);
        assert!(self.world.queue.holds(message_id), "{message_id} is not there to be received");
        worker
    }

    pub(crate) fn react(&self, reactions: impl IntoIterator<Item = Reaction>) {
        self.world.recipient.react(&self.key.delivery_id, reactions);
    }

    pub(crate) fn tick(&self) -> TickReport {
        let clock = self.world.right_clock();
        let (reconciler, answer) = self.world.reconciler("reconciler", &clock, 2, TickLimits::default());
        reconciler.run();
        let report: PortResult<TickReport> = answer.lock().unwrap().take().unwrap();
        report.unwrap()
    }

    pub(crate) fn record(&self) -> Record {
        self.world.ledger.peek(&self.key).expect("it was published")
    }

    pub(crate) fn now(&self) -> TimeMs {
        self.world.clock.now()
    }

    pub(crate) fn pass(&self, span: DurationMs) {
        self.world.clock.advance(span);
    }

    /// The time moves past the lease of the live claim, and its copy is visible again.
    pub(crate) fn pass_the_lease(&self) {
        let lease_until = self.record().claim.clone().expect("a claim").lease_until;
        self.world.clock.set(lease_until);
    }

    pub(crate) fn newest_message(&self) -> MessageId {
        let messages = self.world.queue.messages();
        messages.last().expect("a message").0.clone()
    }

    /// What the dead-letter queue was told about the delivery, without what the queue moved itself.
    pub(crate) fn told(&self) -> usize {
        let buried = self.world.queue.dead_letters();
        buried.iter().filter(|b| !b.natively && b.body.contains(self.key.delivery_id.as_str())).count()
    }

    pub(crate) fn requests(&self) -> usize {
        self.world.recipient.requests().len()
    }

    /// Workers alone, without a reconciler, until the queue is empty.
    pub(crate) fn work_until_empty(&self) {
        for round in 0..50 {
            let Some(at) = self.world.queue.next_at() else { return };
            if at > self.now() {
                self.world.clock.set(at);
            }
            let mut worker = self.worker(&format!("later{round}"));
            while let progress = worker.step(Default::default())
                && progress != waybill_testkit::faults::Progress::Done
            {
                if !worker.is_ready() {
                    self.world.clock.set(self.world.clock.next_wait().expect("it waits for the clock"));
                }
            }
        }
        panic!("the queue is never empty: {:?}", self.world.queue.messages());
    }

    /// It ended as it should, and nothing is left in the queue.
    #[track_caller]
    pub(crate) fn assert_ended(&self, state: State) {
        assert_eq!(self.record().state, state);
        assert_eq!(self.world.queue.messages(), [], "messages are left");
        assert!(self.record().claim.is_none());
        if matches!(state, State::DeadLettered | State::Expired) {
            assert!(self.record().dlq_told, "the record does not say that the DLQ was told");
            assert!(self.told() >= 1, "the DLQ was not told");
        }
    }
}
