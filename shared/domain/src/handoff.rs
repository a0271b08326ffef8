//! What the queue is told after the ledger: a pure function of the record.

use crate::delivery::{Record, State};
use crate::ending::Disposition;
use crate::envelope::{DeadLetter, WakeUp};
use crate::time::{DurationMs, TimeMs};

/// What a record's state owes the queue.
#[derive(Debug, Clone, PartialEq)]
pub enum HandOff {
    /// Nothing: it succeeded, it is held, an attempt is being made, or the DLQ was told.
    Nothing,
    /// Nothing yet: its due time lies beyond what the queue can hold back, and the reconciler
    /// wakes it.
    Parked,
    /// A wake-up for the next attempt.
    WakeUp {
        /// The message.
        wakeup: WakeUp,
        /// How long the queue holds it back, at least.
        delay: DurationMs,
    },
    /// The DLQ must be told.
    TellDlq(DeadLetter),
}

/// Decides the hand-off. `queue_window` is the longest delay that the queue can hold.
pub fn hand_off(record: &Record, queue_window: DurationMs, now: TimeMs) -> HandOff {
    match (record.state, record.disposition) {
        (State::Pending | State::Retryable, _) if record.claim.is_some() || record.hold.is_some() => {
            HandOff::Nothing
        }
        (State::Pending | State::Retryable, _) => {
            let delay = record.due_at.since(now);
            // The reconciler looks in time only at what its index says: a clock that runs behind must
            // not park what the reconciler has woken already. A wake-up that comes early waits again.
            let is_looked_at_in_time = record.look_at.is_some_and(|at| at <= record.due_at);
            if delay > queue_window && is_looked_at_in_time {
                return HandOff::Parked;
            }
            HandOff::WakeUp { wakeup: WakeUp::for_next_attempt(record), delay: delay.min(queue_window) }
        }
        (State::DeadLettered | State::Expired, Some(Disposition::Ended(ending))) if !record.dlq_told => {
            HandOff::TellDlq(DeadLetter::of(record, ending))
        }
        _ => HandOff::Nothing,
    }
}
