//! The system on a virtual clock: real use cases, memory backend, scripted recipient.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use waybill_domain::address::Locality;
use waybill_domain::attempt::Attempt;
use waybill_domain::delivery::Record;
use waybill_domain::destination::Destination;
use waybill_domain::identity::{DeliveryId, DeliveryKey, DestinationName, EventId, MessageId, TenantId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::Config;
use waybill_service::config_file;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::desk::Desk;
use waybill_service::event::Event;
use waybill_service::ports::{Clock as _, Inbox as _, Ports};
use waybill_service::publish::{PublishError, Published, Publisher};
use waybill_service::reconcile::{Reconciler, TickLimits, TickReport};
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::FixedDice;
use waybill_testkit::faults::{Stage, Staged};
use waybill_testkit::memory::{self, MemoryLedger, MemoryQueue, MemoryWorker};
use waybill_testkit::scripted::{Reaction, ScriptedRecipient};

pub(crate) const CONFIG: &str = r#"
[policies.default]
max_attempts = 7

[event_types."renewal.*"]
require_deadline = true

[destinations.accounting]
tenants = ["acme"]
url = "https://accounting.example.com/hooks"
secrets = ["env:S"]
event_types = ["lease.*"]

[destinations.crm]
tenants = ["acme"]
url = "https://crm.example.com/hooks"
secrets = ["env:S"]
event_types = ["lease.*"]

[destinations.other]
tenants = ["northwind"]
url = "https://northwind.example.com/hooks"
secrets = ["env:S"]
event_types = ["lease.*"]
"#;

/// The ports of a worker whose ledger is on a stage.
pub(crate) type StagedWorker =
    Ports<Staged<MemoryLedger>, MemoryQueue, ScriptedRecipient<VirtualClock>, VirtualClock, FixedDice>;

/// A message as it was received.
pub(crate) type Message = waybill_service::ports::Received;

pub(crate) struct World {
    pub(crate) clock: VirtualClock,
    pub(crate) config: Config,
    pub(crate) ports: MemoryWorker<FixedDice>,
}

impl World {
    /// Everything in order, and jitter always draws half of what it may.
    pub(crate) fn new() -> Self {
        let clock = VirtualClock::default();
        let ports = memory::worker(&clock, FixedDice::showing(0.5));
        let config = config_file::parse(CONFIG, Locality::PublicOnly).unwrap();
        Self { clock, config, ports }
    }

    /// Changes one destination.
    pub(crate) fn with(mut self, destination: &str, change: impl FnOnce(&mut Destination)) -> Self {
        self.change(destination, change);
        self
    }

    /// Changes one destination while the system runs.
    pub(crate) fn change(&mut self, destination: &str, change: impl FnOnce(&mut Destination)) {
        let name = DestinationName::parse(destination).unwrap();
        let mut changed = Destination::clone(&self.config.destinations[&name]);
        change(&mut changed);
        self.config.destinations.insert(name, Arc::new(changed));
    }

    /// Runs a future; the clock moves when it waits for it.
    pub(crate) fn block<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            match poll_while_moving(future.as_mut()) {
                Some(output) => return output,
                None => self.clock.set(self.clock.next_wait().expect("it waits for the clock")),
            }
        }
    }

    pub(crate) fn publish_to(
        &self,
        queue: &impl waybill_service::ports::Queue,
        json: &str,
    ) -> Result<Vec<Published>, PublishError> {
        let event = Event::parse(json.as_bytes()).map_err(PublishError::Invalid)?;
        let publisher = Publisher { ledger: &self.ports.ledger, queue, clock: &self.clock };
        self.block(publisher.publish(&self.config, event))
    }

    pub(crate) fn publish(&self, json: &str) -> Result<Vec<Published>, PublishError> {
        self.publish_to(&self.ports.queue, json)
    }

    /// Publishes and scripts the recipient's reactions; 200 once they are used up.
    pub(crate) fn published(&self, json: &str, reactions: impl IntoIterator<Item = Reaction>) -> DeliveryId {
        let published = self.publish(json).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(published.len(), 1, "{published:?}");
        let id = published[0].delivery_id.clone();
        self.ports.recipient.react(&id, reactions);
        id
    }

    pub(crate) fn consume(&self, message_id: &MessageId, body: &str) -> Verdict {
        let consumer = Consumer { ports: &self.ports };
        self.block(consumer.consume(&self.config, Incoming { message_id, body }, DurationMs::from_secs(60)))
    }

    /// A worker that waits for the recipient's answer when it dies.
    pub(crate) fn dies_after_sending(&self, message: &Message) {
        let consumer = Consumer { ports: &self.ports };
        let incoming = Incoming { message_id: &message.message_id, body: &message.body };
        let mut work = pin!(consumer.consume(&self.config, incoming, DurationMs::from_secs(60)));
        let polled = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "it is still waiting for an answer");
    }

    /// Its ports, with the ledger on a stage.
    pub(crate) fn staged(&self, stage: &Stage) -> StagedWorker {
        let Ports { ledger, queue, recipient, clock, .. } = &self.ports;
        Ports {
            ledger: Staged::new(ledger.clone(), stage),
            queue: queue.clone(),
            recipient: recipient.clone(),
            clock: clock.clone(),
            dice: FixedDice::showing(0.5),
            desk: Desk::default(),
        }
    }

    /// Everything that is visible now, hidden for a minute.
    pub(crate) fn receive(&self) -> Vec<Message> {
        self.block(self.ports.queue.receive(100, DurationMs::from_secs(60))).unwrap()
    }

    pub(crate) fn work(&self, message: &Message) -> Verdict {
        let verdict = self.consume(&message.message_id, &message.body);
        match verdict {
            Verdict::Acknowledge => self.block(self.ports.queue.acknowledge(&message.receipt)).unwrap(),
            Verdict::Leave { hidden_until: Some(at) } => {
                self.block(self.ports.queue.hide_until(&message.receipt, at)).unwrap();
            }
            Verdict::Leave { hidden_until: None } => {}
        }
        verdict
    }

    /// Works until the queue is empty, skipping from message to message.
    pub(crate) fn work_until_quiet(&self) {
        for _ in 0..1000 {
            let messages = self.receive();
            if messages.is_empty() {
                match self.ports.queue.next_at() {
                    Some(at) => self.clock.set(at.max(self.clock.now())),
                    None => return,
                }
            }
            for message in &messages {
                self.work(message);
            }
        }
        panic!("the queue is never quiet: {:?}", self.ports.queue.messages());
    }

    /// Works, and lets the reconciler tick every minute, for so long.
    pub(crate) fn run_for(&self, span: DurationMs) {
        let end = self.clock.now().plus(span);
        while self.clock.now() < end {
            self.reconcile();
            let minute = self.clock.now().plus(DurationMs::from_secs(60)).min(end);
            loop {
                let messages = self.receive();
                for message in &messages {
                    self.work(message);
                }
                match self.ports.queue.next_at() {
                    _ if !messages.is_empty() => {}
                    Some(at) if at < minute => self.clock.set(at.max(self.clock.now())),
                    _ => break,
                }
            }
            self.clock.set(minute.max(self.clock.now()));
        }
    }

    pub(crate) fn reconcile(&self) -> TickReport {
        let Ports { ledger, queue, clock, dice, .. } = &self.ports;
        let reconciler = Reconciler { ledger, queue, clock, dice };
        self.block(reconciler.tick(&self.config, TickLimits::default())).unwrap()
    }

    pub(crate) fn record(&self, id: &DeliveryId) -> Record {
        self.ports.ledger.peek(&key("acme", id)).unwrap_or_else(|| panic!("no record of {id}"))
    }

    pub(crate) fn evidence(&self, id: &DeliveryId) -> Vec<Attempt> {
        self.ports.ledger.evidence(&key("acme", id))
    }

    /// When requests for a delivery were sent, counted from `from`.
    pub(crate) fn sent_after_ms(&self, id: &DeliveryId, from: TimeMs) -> Vec<u64> {
        let requests = self.ports.recipient.requests();
        requests.iter().filter(|r| r.delivery_id == *id).map(|r| r.at.since(from).as_ms()).collect()
    }
}

/// Whether a future may go on without the clock moving.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Polls a future for as long as it moves; what it came to, or none while it waits for the clock.
pub(crate) fn poll_while_moving<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(flag.clone());
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return Some(done),
            Poll::Pending if flag.0.swap(false, Ordering::SeqCst) => {}
            Poll::Pending => return None,
        }
    }
}

pub(crate) fn key(tenant: &str, id: &DeliveryId) -> DeliveryKey {
    DeliveryKey { tenant: TenantId::parse(tenant).unwrap(), delivery_id: id.clone() }
}

/// An event to the accounting system.
pub(crate) fn event(event_id: &str) -> String {
    with(event_id, "")
}

/// The same with more fields, such as `"deadline":"…"`.
pub(crate) fn with(event_id: &str, fields: &str) -> String {
    let fields = if fields.is_empty() { String::new() } else { format!("{fields},") };
    format!(
        r#"{{"event_id":"{event_id}","tenant":"acme","type":"lease.paid","destination":"accounting",{fields}"payload":{{"n":1.0}}}}"#
    )
}

pub(crate) fn id_of(event_id: &str, destination: &str) -> DeliveryId {
    DeliveryId::derive(
        &TenantId::parse("acme").unwrap(),
        &EventId::parse(event_id).unwrap(),
        &DestinationName::parse(destination).unwrap(),
    )
}
