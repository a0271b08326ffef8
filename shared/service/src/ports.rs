//! What the use cases need from the world. Errors are named by what the caller does next.

mod budgets;
mod catalogue;
mod queue;
mod recipient;

use std::future::Future;

use bytes::Bytes;
use futures::future::join_all;
use thiserror::Error;
use waybill_domain::attempt::Attempt;
use waybill_domain::delivery::{Change, Record};
use waybill_domain::identity::{DeliveryKey, DestinationName, WriteToken};
use waybill_domain::time::TimeMs;

pub use self::budgets::{Budgets, KeptUsage, UsageSet};
pub use self::catalogue::{Catalogue, DeadLetterFilter, DeadLetterGroup, Filter};
pub use self::queue::{Burial, Inbox, Outgoing, Queue, Receipt, Received};
pub use self::recipient::{Recipient, Request};
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

/// How many records are asked for at once where a store has no better way: each waits for the store.
const LOADED_TOGETHER: usize = 20;

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
            for together in keys.chunks(LOADED_TOGETHER) {
                records.extend(join_all(together.iter().map(|key| self.load(key))).await);
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
