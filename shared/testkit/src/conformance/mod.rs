//! The exam that every backend sits: named checks over the ports, and nothing else.
//!
//! A check knows no backend. It is handed a fresh one and panics with what it found. The macros
//! [`ledger_exam!`](crate::ledger_exam) and [`queue_exam!`](crate::queue_exam) make one test of
//! each check, so that a small backend is held to what the real one does, and the other way round. A
//! queue that keeps no order and tells nobody when its next message becomes visible (SQS) sits
//! [`message_exam!`](crate::message_exam), which is the queue's exam without `polling`. Operators' acts have
//! [`office_exam!`](crate::office_exam), the DLQ [`dead_letter_box_exam!`](crate::dead_letter_box_exam).
//! Numbers in names are those of the list of known faults (`C15`…).

pub mod acts;
pub mod browsing;
pub mod budgets;
pub mod changes;
pub mod desk;
pub mod evidence;
mod exam;
pub mod fixture;
pub mod indexes;
pub mod listings;
pub mod messages;
pub mod orders;
pub mod polling;
pub mod receipts;
pub mod revisions;

use std::collections::BTreeMap;
use std::future::Future;

use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Inbox, Queue};

/// A queue that sits the exam: with its inbox, its dead-letter queue and its time.
pub trait QueueCandidate: Send + Sync {
    /// The queue and its inbox.
    type Queue: Queue + Inbox;

    /// The queue itself, empty at first.
    fn queue(&self) -> &Self::Queue;

    /// What lies in the dead-letter queue, oldest first.
    fn browse_dlq(&self) -> impl Future<Output = Vec<Buried>> + Send;

    /// How often a message is delivered before the redrive policy moves it.
    fn max_receives(&self) -> u32;

    /// The queue's clock.
    fn now(&self) -> TimeMs;

    /// Lets the time pass: a virtual clock is moved, the real one is waited for.
    fn pass(&self, span: DurationMs) -> impl Future<Output = ()> + Send;

    /// How far off a check may be in time: nothing on a virtual clock; where the time is real, what
    /// the calls themselves take.
    fn grain(&self) -> DurationMs {
        DurationMs::from_ms(1)
    }

    /// Lets a span pass but for its last grain: what it is for has not come yet.
    fn pass_until_just_before(&self, span: DurationMs) -> impl Future<Output = ()> + Send {
        self.pass(DurationMs::from_ms(span.as_ms().saturating_sub(self.grain().as_ms())))
    }

    /// Lets the grain pass that was left, and where the time is real, one more to be sure.
    fn pass_the_rest(&self) -> impl Future<Output = ()> + Send {
        let grain = self.grain().as_ms();
        self.pass(DurationMs::from_ms(if grain == 1 { 1 } else { 2 * grain }))
    }
}

/// A message found in the dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buried {
    /// Its body.
    pub body: String,
    /// Its attributes.
    pub attributes: BTreeMap<String, String>,
}
