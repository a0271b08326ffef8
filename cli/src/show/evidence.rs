//! Attempts with two witnesses: whose word the record followed.
//!
//! A worker that comes back after its claim lapsed leaves its evidence beside the finder's. The
//! record does not keep whose word each attempt was settled by, but what followed shows it.

use waybill_domain::attempt::{Attempt, Next, Witness};
use waybill_domain::delivery::Record;
use waybill_domain::identity::AttemptNumber;
use waybill_domain::outcome::FailureClass;

/// Whose word decided on attempt `number`; `None` where there is one witness only.
pub(crate) fn deciding(record: &Record, attempts: &[Attempt], number: AttemptNumber) -> Option<Witness> {
    let of = |witness| attempts.iter().find(|a| a.number == number && a.witness == witness);
    let (worker, finder) = (of(Witness::Worker)?, of(Witness::Finder)?);
    if let Some(last) = record.last_failure.as_ref().filter(|last| last.attempt == number) {
        let interrupted = last.failure.class == FailureClass::Interrupted;
        return Some(if interrupted { Witness::Finder } else { Witness::Worker });
    }
    let following = AttemptNumber::after(number.get());
    let began = attempts.iter().filter(|a| a.number == following).map(|a| a.started_at).min();
    // The next attempt never began before the due time that was decided on.
    let allows = |attempt: &Attempt| match (&attempt.next, began) {
        (Next::Retry { due_at, .. }, Some(began)) => began >= *due_at,
        (Next::Retry { .. }, None) => true,
        (Next::End(_), _) => false,
    };
    Some(match (allows(worker), allows(finder)) {
        (true, false) => Witness::Worker,
        _ => Witness::Finder,
    })
}
