//! The system as an operator has it: tenants, dead letters, and the reconciler's round.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use waybill_domain::address::Locality;
use waybill_domain::authority::Book;
use waybill_domain::budget::Budget;
use waybill_domain::delivery::{Delivery, Record};
use waybill_domain::destination::Destination;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::{DeliveryKey, TenantId};
use waybill_domain::order::{Order, OrderBody};
use waybill_domain::outcome::FailureClass;
use waybill_domain::redrive::{ReleaseRate, Reviews, Run, Selection};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::acts::{Desk, all_open};
use waybill_service::config::Config;
use waybill_service::config_file;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::office::Office as _;
use waybill_service::ports::{Clock as _, Inbox as _, Ports};
use waybill_service::reconcile::TickLimits;
use waybill_service::redrive::orders::Start;
use waybill_service::redrive::plan::{Plan, Wish, plan};
use waybill_service::round::Round;
use waybill_service::schedule::Learned;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::conformance::fixture;
use waybill_testkit::dice::SeededDice;
use waybill_testkit::memory::{self, MemoryOffice, MemoryWorker};

pub(crate) const CONFIG: &str = r#"
[policies.default]
max_attempts = 3

[destinations.books]
tenants = ["acme", "globex", "northwind"]
url = "https://books.example.com/hooks"
secrets = ["env:S"]

[destinations.crm]
tenants = ["acme"]
url = "https://crm.example.com/hooks"
secrets = ["env:S"]
"#;

pub(crate) const EXHAUSTED: DeadLetterReason = DeadLetterReason::AttemptsExhausted;
pub(crate) const REFUSED: DeadLetterReason =
    DeadLetterReason::Permanent(FailureClass::AuthenticationRejected);

pub(crate) struct World {
    pub(crate) clock: VirtualClock,
    pub(crate) config: Config,
    pub(crate) ports: MemoryWorker<SeededDice>,
    pub(crate) office: MemoryOffice,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = VirtualClock::at(fixture::T0);
        let ports = memory::worker(&clock, SeededDice::new("operator", 1));
        let config = config_file::parse(CONFIG, Locality::PublicOnly).unwrap();
        Self { clock, config, ports, office: MemoryOffice::default() }
    }

    /// Each destination takes so many requests at once.
    pub(crate) fn with_places(mut self, concurrency: u32) -> Self {
        for destination in self.config.destinations.values_mut() {
            let budget = Budget::of(Some(concurrency), None);
            *destination = Arc::new(Destination { budget, ..Destination::clone(destination) });
        }
        self
    }

    pub(crate) fn desk(&self) -> Desk<'_, MemoryOffice, VirtualClock, SeededDice> {
        Desk { office: &self.office, clock: &self.clock, dice: &self.ports.dice }
    }

    pub(crate) fn block<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        let mut turns = 0;
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => return output,
                Poll::Pending => match self.clock.next_wait() {
                    Some(at) => self.clock.set(at),
                    // The desk of a budget lets others have their turn first; here is nobody else.
                    None => turns += 1,
                },
            }
            assert!(turns < 1_000, "it waits for nothing that comes");
        }
    }

    /// A dead letter, ended now.
    pub(crate) fn dead(&self, tenant: &str, event: &str, to: &str, reason: DeadLetterReason) -> DeliveryKey {
        self.dead_with(fixture::delivery(tenant, event, to), reason)
    }

    pub(crate) fn dead_with(&self, delivery: Delivery, reason: DeadLetterReason) -> DeliveryKey {
        let (ledger, now) = (&self.ports.ledger, self.clock.now());
        let pending = fixture::pending(Delivery { first_queued_at: now, ..delivery });
        let ending = self
            .block(fixture::store_as(ledger, &pending, |record| fixture::dead_lettered(record, reason, now)));
        self.block(fixture::land(ledger, ending.told().unwrap()));
        pending.delivery.key()
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.advance(DurationMs::from_secs(seconds));
    }

    pub(crate) fn record(&self, key: &DeliveryKey) -> Record {
        self.ports.ledger.peek(key).unwrap_or_else(|| panic!("no record of {key}"))
    }

    /// A plan of everything that is meant by `selection`.
    pub(crate) fn plan(&self, selection: Selection, reviews: Reviews) -> Plan {
        let run = self.desk().new_id("rdr").unwrap();
        let wish = Wish { run, by: "maria".to_owned(), selection, reviews };
        self.block(plan(&self.ports.ledger, &self.config, wish, self.clock.now())).unwrap()
    }

    pub(crate) fn start(&self, plan: &Plan, rate: &str, sample: Option<u64>) -> Order {
        let start = Start { rate: ReleaseRate::parse("rate", rate).unwrap(), sample, not_before: None };
        self.block(self.desk().start(plan, start, "maria", "credentials corrected")).unwrap().order().clone()
    }

    pub(crate) fn stop(&self, run: &Order, why: &str) {
        self.block(self.desk().stop(&run.id, std::slice::from_ref(&run.book), "maria", why)).unwrap();
    }

    pub(crate) fn resume(&self, run: &Order, why: &str) {
        self.block(self.desk().resume(&run.id, std::slice::from_ref(&run.book), "maria", why)).unwrap();
    }

    /// The reconciler's round, under the holds that stand.
    pub(crate) fn round(&self) {
        let Ports { ledger, queue, clock, dice, .. } = &self.ports;
        let round = Round { ledger, queue, office: &self.office, clock, dice };
        self.block(round.run(&self.config_now(), &Learned::default(), TickLimits::default())).unwrap();
    }

    /// The configuration with the holds in force.
    pub(crate) fn config_now(&self) -> Config {
        let open = self.block(all_open(&self.office)).unwrap();
        self.config.clone().under(&open)
    }

    /// Works for so long, with a round every minute.
    pub(crate) fn run_for(&self, seconds: u64) {
        let end = self.clock.now().plus(DurationMs::from_secs(seconds));
        while self.clock.now() < end {
            self.round();
            self.work_until(self.clock.now().plus(DurationMs::from_secs(60)).min(end));
        }
    }

    /// Works off whatever becomes visible before `end`, and lets the time pass until then.
    pub(crate) fn work_until(&self, end: TimeMs) {
        loop {
            let config = self.config_now();
            let messages = self.block(self.ports.queue.receive(1000, DurationMs::from_secs(60))).unwrap();
            for message in &messages {
                let incoming = Incoming { message_id: &message.message_id, body: &message.body };
                let consumer = Consumer { ports: &self.ports };
                let verdict = self.block(consumer.consume(&config, incoming, DurationMs::from_secs(60)));
                if verdict == Verdict::Acknowledge {
                    self.block(self.ports.queue.acknowledge(&message.receipt)).unwrap();
                }
            }
            match self.ports.queue.next_at() {
                _ if !messages.is_empty() => {}
                Some(at) if at < end => self.clock.set(at.max(self.clock.now())),
                _ => break,
            }
        }
        self.clock.set(end.max(self.clock.now()));
    }

    pub(crate) fn run_of(&self, order: &Order) -> Run {
        let stored = self.block(self.office.order(&order.book, &order.id)).unwrap().unwrap();
        match stored.body {
            OrderBody::Redrive(run) => *run,
            other => panic!("{other:?}"),
        }
    }

    /// The acts in a book, in order.
    pub(crate) fn acts(&self, book: &Book) -> Vec<String> {
        let page = self.block(self.office.entries(book, 1000, None)).unwrap();
        page.items.iter().map(|entry| format!("{} by {}", entry.act, entry.who)).collect()
    }
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

pub(crate) fn of(name: &str) -> Selection {
    Selection { tenant: Some(tenant(name)), ..Selection::default() }
}

pub(crate) fn book(name: &str) -> Book {
    Book::Tenant(tenant(name))
}
