//! Kind M, of writes whose answer is lost: what the client repeats, and what comes no further.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use waybill_domain::attempt::Attempt;
use waybill_domain::budget::Usage;
use waybill_domain::delivery::{Change, Record, State};
use waybill_domain::identity::{DeliveryKey, DestinationName, WriteToken};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::desk::Desk;
use waybill_service::ports::{
    Applied, Budgets, Created, Cursor, KeptUsage, Ledger, Page, PortError, PortResult, Ports, UsageSet,
};
use waybill_testkit::dice::SeededDice;
use waybill_testkit::memory::MemoryLedger;
use waybill_testkit::scripted::Reaction;

use crate::world::{Message, World, event, id_of};

/// A ledger whose client lost the answer to its own write, and wrote again.
struct Retried<'a> {
    ledger: &'a MemoryLedger,
    /// Which of the changes is written twice, counted from 0.
    twice: usize,
    changes: AtomicUsize,
    /// Somebody else's write lands instead of the first of the two.
    foreign: bool,
    /// From this change on, nothing is answered any more.
    dies_at: Option<usize>,
}

impl<'a> Retried<'a> {
    fn of(ledger: &'a MemoryLedger) -> Self {
        Self { ledger, twice: usize::MAX, changes: AtomicUsize::new(0), foreign: false, dies_at: None }
    }

    /// What a worker with this ledger says of the message.
    fn consume(self, world: &World, message: &Message) -> Verdict {
        let Ports { queue, recipient, clock, .. } = &world.ports;
        let ports = Ports {
            ledger: self,
            queue: queue.clone(),
            recipient: recipient.clone(),
            clock: clock.clone(),
            dice: SeededDice::new("own", 1),
            desk: Desk::default(),
        };
        let incoming = Incoming { message_id: &message.message_id, body: &message.body };
        world.block(Consumer { ports: &ports }.consume(&world.config, incoming, DurationMs::from_secs(60)))
    }
}

impl Ledger for Retried<'_> {
    async fn apply(&self, change: &Change) -> PortResult<Applied> {
        let number = self.changes.fetch_add(1, Ordering::SeqCst);
        if self.dies_at.is_some_and(|at| number >= at) {
            return Err(PortError::AskLater { port: "ledger", cause: "it is gone".into() });
        }
        if number == self.twice {
            if self.foreign {
                let other = self.ledger.peek(&change.after().delivery.key()).unwrap();
                let by = WriteToken::parse("foreign").unwrap();
                let claim = change.after().claim.clone().unwrap();
                let foreign = other.claim(
                    claim.message_id,
                    by,
                    claim.claimed_at,
                    DurationMs::from_secs(15),
                    claim.config_revision,
                );
                self.ledger.overwrite(foreign.unwrap().into_after());
            } else {
                self.ledger.apply(change).await?;
            }
        }
        self.ledger.apply(change).await
    }

    async fn create(&self, record: &Record, payload: &Bytes) -> PortResult<Created> {
        self.ledger.create(record, payload).await
    }

    async fn load(&self, key: &DeliveryKey) -> PortResult<Option<Record>> {
        self.ledger.load(key).await
    }

    async fn payload(&self, key: &DeliveryKey) -> PortResult<Option<Bytes>> {
        self.ledger.payload(key).await
    }

    async fn add_attempt(&self, key: &DeliveryKey, attempt: &Attempt) -> PortResult<()> {
        self.ledger.add_attempt(key, attempt).await
    }

    async fn attempts(&self, key: &DeliveryKey) -> PortResult<Vec<Attempt>> {
        self.ledger.attempts(key).await
    }

    async fn due_for_look(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.ledger.due_for_look(now, limit, from).await
    }

    async fn held_destinations(&self) -> PortResult<Vec<DestinationName>> {
        self.ledger.held_destinations().await
    }

    async fn held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.ledger.held(destination, limit, from).await
    }
}

impl Budgets for Retried<'_> {
    async fn usage(&self, destination: &DestinationName) -> PortResult<KeptUsage> {
        self.ledger.usage(destination).await
    }

    async fn set_usage(
        &self,
        destination: &DestinationName,
        expected: u64,
        usage: &Usage,
    ) -> PortResult<UsageSet> {
        self.ledger.set_usage(destination, expected, usage).await
    }
}

#[test]
fn c95_ones_own_write_is_recognised_when_the_client_retried_it() {
    let consumed = |twice, foreign| {
        let world = World::new();
        world.published(&event("e"), []);
        let message = world.receive().remove(0);
        let retried = Retried { twice, foreign, ..Retried::of(&world.ports.ledger) };
        let verdict = retried.consume(&world, &message);
        (world, verdict)
    };
    for (twice, what) in [(0, "the claim"), (1, "the settle")] {
        let (world, verdict) = consumed(twice, false);
        assert_eq!(verdict, Verdict::Acknowledge, "{what}");
        assert_eq!(world.ports.recipient.requests().len(), 1, "{what}");
        assert_eq!(world.record(&id_of("e", "accounting")).state, State::Succeeded, "{what}");
    }
    let (world, verdict) = consumed(0, true);
    assert!(matches!(verdict, Verdict::Leave { .. }), "somebody else's claim on the same copy: {verdict:?}");
    assert_eq!(world.ports.recipient.requests().len(), 0);
}

#[test]
fn an_answer_that_was_written_down_counts_although_its_worker_died() {
    let world = World::new();
    let id = world.published(&event("e"), [Reaction::answer(429).asking("3600")]);
    let message = world.receive().remove(0);
    let start = waybill_service::ports::Clock::now(&world.clock);
    // The worker dies between evidence and settle: the first change after the claim never happens.
    let left = Retried { dies_at: Some(1), ..Retried::of(&world.ports.ledger) }.consume(&world, &message);
    assert!(matches!(left, Verdict::Leave { .. }));
    world.run_for(DurationMs::from_secs(2 * 3600));
    let sent = world.sent_after_ms(&id, start);
    assert_eq!(sent.len(), 2);
    assert!(sent[1] >= 3_600_000, "Retry-After is kept by whoever settles: {sent:?}");
    assert_eq!(world.evidence(&id).len(), 1, "and nobody says that it was interrupted");
}
