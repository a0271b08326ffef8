//! The steps that every path shares: a conditional write that recognises itself, and the hand-off.

use std::future::Future;

use waybill_domain::delivery::{Change, Record};
use waybill_domain::handoff::{HandOff, hand_off};
use waybill_domain::transition::IllegalTransition;

use crate::ports::{Applied, Burial, Clock, Ledger, Outgoing, PortError, PortResult, Queue};

/// How often a step is tried against records that change under it before the message is left.
pub(crate) const MOST_ROUNDS: usize = 8;

/// What became of a conditional write.
#[derive(Debug)]
pub(crate) enum Landing {
    /// It stands, as this record says (which may have been moved on since by somebody else).
    Landed(Box<Record>),
    /// It does not; what is stored instead.
    Lost(Option<Box<Record>>),
}

/// Makes a change. A store's client may have retried our own write, which then fails its condition:
/// `is_ours` recognises it in what is stored, by its token.
pub(crate) async fn write(
    ledger: &impl Ledger,
    change: &Change,
    is_ours: impl Fn(&Record) -> bool,
) -> PortResult<Landing> {
    Ok(match ledger.apply(change).await? {
        Applied::Landed => Landing::Landed(Box::new(change.after().clone())),
        Applied::Lost(Some(stored)) if is_ours(&stored) => Landing::Landed(stored),
        Applied::Lost(stored) => Landing::Lost(stored),
    })
}

/// Asks again while the port only says "later": what was sent is worth more than one try at writing
/// it down. Only for what may be repeated.
pub(crate) async fn insist<T, F: Future<Output = PortResult<T>>>(ask: impl Fn() -> F) -> PortResult<T> {
    for _ in 0..2 {
        match ask().await {
            Err(PortError::AskLater { .. }) => {}
            answer => return answer,
        }
    }
    ask().await
}

/// Tells the queue what the ledger already says. Safe to repeat: an extra wake-up is superseded or
/// meets a claim, an extra dead letter is swept.
pub(crate) async fn hand_over(
    ledger: &impl Ledger,
    queue: &impl Queue,
    clock: &impl Clock,
    record: &Record,
) -> PortResult<()> {
    match hand_off(record, queue.window(), clock.now()) {
        HandOff::Nothing | HandOff::Parked => Ok(()),
        HandOff::WakeUp { wakeup, delay } => {
            queue.send(Outgoing { body: wakeup.encode(), delay }).await?;
            Ok(())
        }
        HandOff::TellDlq(letter) => {
            queue.bury(Burial::of(&letter)).await?;
            mark_told(ledger, record).await
        }
    }
}

/// Marks the ending as told; until then the record stays in the open index and is told again.
async fn mark_told(ledger: &impl Ledger, record: &Record) -> PortResult<()> {
    let mut current = Box::new(record.clone());
    for _ in 0..MOST_ROUNDS {
        let same_ending = current.disposition == record.disposition && current.ended_at == record.ended_at;
        if !same_ending || current.dlq_told {
            return Ok(());
        }
        let Ok(change) = current.told() else { return Ok(()) };
        match write(ledger, &change, |_| false).await? {
            Landing::Landed(_) | Landing::Lost(None) => return Ok(()),
            Landing::Lost(Some(stored)) => current = stored,
        }
    }
    Ok(())
}

/// The domain forbids what its own admission allowed: a bug of ours, for a person to see.
pub(crate) fn legal<T>(decided: Result<T, IllegalTransition>) -> PortResult<T> {
    decided.map_err(|cause| PortError::NeedsPerson { port: "ledger", cause: cause.into() })
}
