//! What the use cases need from the world. Errors are named by what the caller does next.

mod budgets;

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;
use waybill_domain::address::RecipientUrl;
use waybill_domain::attempt::{Attempt, SendWindow, Sending};
use waybill_domain::delivery::{Change, Record, State};
use waybill_domain::destination::Destination;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::envelope::DeadLetter;
use waybill_domain::identity::{
    AttemptNumber, DeliveryId, DeliveryKey, DestinationName, EventId, EventType, MessageId, TenantId,
    WriteToken,
};
use waybill_domain::look_up::Finding;
use waybill_domain::time::{DurationMs, TimeMs};

pub use self::budgets::{Budgets, KeptUsage, UsageSet};
use crate::desk::Desk;

/// The cause of a port's failure, for the log.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A store or a queue could not do what was asked.
#[derive(Debug, Error)]
pub enum PortError {
    /// Nobody knows whether it was done: leave the message, answer 503, ask again later.
    #[error("the {port} cannot be asked right now")]
    AskLater {
        /// `ledger` or `queue`.
        port: &'static str,
        /// Why.
        #[source]
        cause: Cause,
    },
    /// What is stored cannot be read, or the request can never be carried out: asking again does
    /// not help, a person must look. Nothing is acknowledged because of it.
    #[error("the {port} needs a person")]
    NeedsPerson {
        /// `ledger` or `queue`.
        port: &'static str,
        /// Why.
        #[source]
        cause: Cause,
    },
}

impl PortError {
    /// The error and its causes in one line, for the log.
    pub fn in_full(&self) -> String {
        in_full(self)
    }
}

/// An error and its causes in one line.
pub fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}

/// A port's answer.
pub type PortResult<T> = Result<T, PortError>;

/// What became of a new record.
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// It was absent and is stored now, durably, with its payload.
    New,
    /// There is one already; nothing was changed.
    Exists(Box<Record>),
}

/// What became of a compare-and-set.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied {
    /// The record had the expected version and is now as the change says, durably.
    Landed,
    /// It had not; nothing was changed. What is stored instead.
    Lost(Option<Box<Record>>),
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The page's items, in the listing's order.
    pub items: Vec<T>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Cursor>,
}

/// A place in a listing. Opaque: only the store that made it reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// The truth about every delivery, and about what is used of budgets.
pub trait Ledger: Budgets {
    /// Stores a new record with its payload, unless there is one: payload first, record second.
    fn create(&self, record: &Record, payload: &Bytes) -> impl Future<Output = PortResult<Created>> + Send;

    /// The record, read strongly: every change that was answered is in it.
    fn load(&self, key: &DeliveryKey) -> impl Future<Output = PortResult<Option<Record>>> + Send;

    /// The records of several deliveries, in the order of `keys`; each is read as strongly as by
    /// [`load`](Self::load), and one that cannot be read keeps nobody from the others.
    fn load_all(
        &self,
        keys: &[DeliveryKey],
    ) -> impl Future<Output = PortResult<Vec<PortResult<Option<Record>>>>> + Send {
        async move {
            let mut records = Vec::with_capacity(keys.len());
            for key in keys {
                records.push(self.load(key).await);
            }
            Ok(records)
        }
    }

    /// The frozen bytes.
    fn payload(&self, key: &DeliveryKey) -> impl Future<Output = PortResult<Option<Bytes>>> + Send;

    /// Makes the change if the stored record has the expected state and revision.
    fn apply(&self, change: &Change) -> impl Future<Output = PortResult<Applied>> + Send;

    /// Stores evidence under (delivery, attempt number, claim token, witness) unless it is there: never
    /// changed.
    fn add_attempt(
        &self,
        key: &DeliveryKey,
        attempt: &Attempt,
    ) -> impl Future<Output = PortResult<()>> + Send;

    /// The evidence of a delivery, by number, then witness.
    fn attempts(&self, key: &DeliveryKey) -> impl Future<Output = PortResult<Vec<Attempt>>> + Send;

    /// Deliveries whose `look_at` has come, earliest first. The index may lag behind the records.
    fn due_for_look(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> impl Future<Output = PortResult<Page<DeliveryKey>>> + Send;

    /// The destinations with something held, by name, each once. There may be others among them that
    /// had something held before.
    fn held_destinations(&self) -> impl Future<Output = PortResult<Vec<DestinationName>>> + Send;

    /// Held deliveries of a destination, earliest deadline first, those without one last. The index
    /// may lag behind the records.
    fn held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> impl Future<Output = PortResult<Page<DeliveryKey>>> + Send;
}

/// What an operator may ask of the ledger beside single deliveries.
pub trait Catalogue: Send + Sync {
    /// Records that match, by tenant, newest first within a tenant.
    fn list(
        &self,
        filter: &Filter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> impl Future<Output = PortResult<Page<Record>>> + Send;

    /// Every record with this ID: one, unless two tenants' identifiers met.
    fn find(&self, id: &DeliveryId) -> impl Future<Output = PortResult<Vec<Record>>> + Send;

    /// Dead letters, counted by tenant, destination and reason, in this order; of one tenant or all.
    fn dead_letter_summary(
        &self,
        tenant: Option<&TenantId>,
    ) -> impl Future<Output = PortResult<Vec<DeadLetterGroup>>> + Send;

    /// Dead letters that match, by tenant, destination and reason, oldest first within these.
    fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> impl Future<Output = PortResult<Page<Record>>> + Send;
}

/// Which records a listing shows. Absent fields match everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Of this tenant.
    pub tenant: Option<TenantId>,
    /// To this destination.
    pub destination: Option<DestinationName>,
    /// In this state.
    pub state: Option<State>,
    /// First queued at this time or later.
    pub since: Option<TimeMs>,
}

/// Which dead letters a listing shows. Absent fields match everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeadLetterFilter {
    /// Of this tenant.
    pub tenant: Option<TenantId>,
    /// To this destination.
    pub destination: Option<DestinationName>,
    /// Dead-lettered for this reason.
    pub reason: Option<DeadLetterReason>,
    /// Ended before this time: what ended later is not in a plan made at it.
    pub ended_before: Option<TimeMs>,
}

/// Dead letters of one tenant and destination that ended for one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetterGroup {
    /// Whose.
    pub tenant: TenantId,
    /// To whom.
    pub destination: DestinationName,
    /// Why automation ended.
    pub reason: DeadLetterReason,
    /// How many there are; at least 1.
    pub count: u64,
    /// When the oldest of them ended.
    pub oldest_ended_at: TimeMs,
    /// The nearest deadline among them, passed or not; `None` where none has one.
    pub nearest_deadline: Option<TimeMs>,
}

/// A wake-up to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// The message body: an envelope.
    pub body: String,
    /// How long the queue holds it back, at least; at most [`Queue::window`].
    pub delay: DurationMs,
}

/// A message for the dead-letter queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Burial {
    /// The body: an envelope, or the raw body of what nobody could read.
    pub body: String,
    /// Message attributes: reason and counts, for whoever browses the DLQ.
    pub attributes: Vec<(&'static str, String)>,
}

impl Burial {
    /// A dead letter, with what a browser of the DLQ looks for as attributes.
    pub fn of(letter: &DeadLetter) -> Self {
        let attributes = vec![
            ("reason", letter.reason.clone()),
            ("attempts_made", letter.attempts_made.to_string()),
            ("ended_at", letter.ended_at.to_string()),
            ("tenant", letter.facts.tenant.to_string()),
            ("destination", letter.facts.destination.to_string()),
        ];
        Self { body: letter.encode(), attributes }
    }
}

/// Where wake-ups go.
pub trait Queue: Send + Sync {
    /// The longest delay that a message can have.
    fn window(&self) -> DurationMs;

    /// Sends one wake-up. When this is answered, the message is stored durably.
    fn send(&self, message: Outgoing) -> impl Future<Output = PortResult<MessageId>> + Send;

    /// Sends several; one answer each, in their order. What becomes of one changes nothing for the
    /// others. A queue that takes several in one request does so.
    fn send_all(&self, messages: Vec<Outgoing>) -> impl Future<Output = Vec<PortResult<MessageId>>> + Send {
        async move {
            let mut answers = Vec::with_capacity(messages.len());
            for message in messages {
                answers.push(self.send(message).await);
            }
            answers
        }
    }

    /// Puts one message into the dead-letter queue.
    fn bury(&self, burial: Burial) -> impl Future<Output = PortResult<MessageId>> + Send;
}

/// Where a polling worker gets its messages. (On Lambda the event source mapping does this.)
pub trait Inbox: Send + Sync {
    /// Up to `most` visible messages, earliest visible first, each hidden for `visibility`; empty
    /// at once if there are none.
    fn receive(
        &self,
        most: usize,
        visibility: DurationMs,
    ) -> impl Future<Output = PortResult<Vec<Received>>> + Send;

    /// Deletes a message. A stale receipt (the message was received again since) deletes nothing.
    fn acknowledge(&self, receipt: &Receipt) -> impl Future<Output = PortResult<()>> + Send;

    /// Changes until when a received message is hidden; a time that has passed shows it at once.
    /// A stale receipt changes nothing.
    fn hide_until(&self, receipt: &Receipt, until: TimeMs) -> impl Future<Output = PortResult<()>> + Send;

    /// When the next message becomes visible, for a poller that sleeps exactly that long; `None`
    /// if the queue is empty. It may have passed.
    fn next_visible_at(&self) -> impl Future<Output = PortResult<Option<TimeMs>>> + Send;
}

/// A message, received once.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// Which message: the same at every redelivery, and what [`Queue::send`] answered.
    pub message_id: MessageId,
    /// Which receiving of it.
    pub receipt: Receipt,
    /// The body as it was sent.
    pub body: String,
    /// How often it was received, this time included. Kept as SQS keeps it; used for nothing.
    pub receive_count: u32,
}

/// The right to delete a received message, until it is received again. Opaque: only the queue
/// that made it reads it. (SQS calls it a receipt handle.)
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Receipt(pub String);

/// A request to a recipient.
#[derive(Debug, Clone)]
pub struct Request {
    /// To whom, and how.
    pub destination: Arc<Destination>,
    /// `webhook-id` and `idempotency-key`: the same on every attempt.
    pub delivery_id: DeliveryId,
    /// `waybill-event-id`.
    pub event_id: EventId,
    /// `waybill-event-type`.
    pub event_type: EventType,
    /// `waybill-attempt`.
    pub attempt: AttemptNumber,
    /// `content-type`.
    pub content_type: String,
    /// The frozen bytes.
    pub body: Bytes,
}

impl Request {
    /// Attempt `attempt` of a delivery, with its frozen bytes.
    pub fn of(to: &Arc<Destination>, record: &Record, attempt: AttemptNumber, body: Bytes) -> Self {
        let delivery = &record.delivery;
        Self {
            destination: to.clone(),
            delivery_id: delivery.id.clone(),
            event_id: delivery.event_id.clone(),
            event_type: delivery.event_type.clone(),
            attempt,
            content_type: delivery.payload.content_type.clone(),
            body,
        }
    }
}

/// The other side.
pub trait Recipient: Send + Sync {
    /// Sends one request, or not: right before the first byte leaves, the wall clock is read again
    /// and [`SendWindow::check`] decides. Never follows a redirect, never takes longer than the
    /// window allows, never panics because of what it is answered.
    fn send(&self, request: Request, window: SendWindow) -> impl Future<Output = Sending> + Send;

    /// Asks at `url` what became of an earlier request of this delivery: a GET under the same guards
    /// as a request, in at most half of the window's time, so that a request can still follow. What
    /// was seen is judged by [`waybill_domain::look_up::judge`].
    fn look_up(
        &self,
        request: Request,
        url: RecipientUrl,
        window: SendWindow,
    ) -> impl Future<Output = Finding> + Send;
}

/// The wall clock.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> TimeMs;
}

/// Chance.
pub trait Dice: Send + Sync {
    /// A number in [0, 1), uniformly.
    fn unit(&self) -> f64;

    /// A token that nobody else has.
    fn token(&self) -> WriteToken;
}

/// The five ports of a worker, side by side, and the desk where all that it works on meets.
#[derive(Debug)]
pub struct Ports<L, Q, R, C, D> {
    /// The truth.
    pub ledger: L,
    /// The wake-ups.
    pub queue: Q,
    /// The other side.
    pub recipient: R,
    /// The time.
    pub clock: C,
    /// Chance.
    pub dice: D,
    /// Takes and gives back what budgets lease, for many deliveries in one write.
    pub desk: Desk,
}
