//! From what was seen to a [`SendReport`], with one sentence for the operator.
//!
//! A note names hosts, addresses, statuses and secrets' references. It never holds a path, a query,
//! a header, a payload, a secret, or text that the recipient chose.

use http::StatusCode;
use waybill_domain::attempt::{NotSent, Phase, SendReport};
use waybill_domain::look_up::{Finding, judge};
use waybill_domain::outcome::{Seen, StatusOverrides, classify};
use waybill_domain::time::TimeMs;

use crate::answer::Answer;

/// An attempt that came to no status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    seen: Seen,
    phase: Phase,
    note: String,
}

impl Fault {
    /// What was seen, how far the attempt had come, and the sentence about it.
    pub(crate) fn saw(seen: Seen, phase: Phase, note: impl Into<String>) -> Self {
        Self { seen, phase, note: note.into() }
    }

    /// The sentence about it.
    pub(crate) fn into_note(self) -> String {
        self.note
    }

    /// A request that HTTP has no way of writing (a content type with a line break in it): permanent,
    /// because no retry mends it, and certainly not applied. Sending something else than what was
    /// frozen, or under another type, would be worse than not sending.
    pub(crate) fn unsendable(note: impl Into<String>) -> Self {
        Self::saw(Seen::RequestUnwritable, Phase::Prepare, note)
    }
}

/// Why an attempt ended before a status came back.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Nothing left, and nothing was attempted.
    NotSent(NotSent),
    /// Something went wrong on the way.
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

/// The report of a fault. The times are the caller's to fill in.
pub(crate) fn of_fault(fault: Fault, overrides: &StatusOverrides) -> SendReport {
    SendReport { phase: fault.phase, note: fault.note, ..blank(fault.seen, overrides) }
}

/// The report of an answer. The times are the caller's to fill in.
pub(crate) fn of_answer(answer: Answer, overrides: &StatusOverrides) -> SendReport {
    SendReport {
        phase: Phase::Answer,
        status: Some(answer.status),
        retry_after: answer.retry_after,
        note: about_status(answer.status),
        excerpt: answer.excerpt,
        ..blank(Seen::Status(answer.status), overrides)
    }
}

/// What a status look-up's answer says. The times are the caller's to fill in.
pub(crate) fn of_looked_up(answer: Answer) -> Finding {
    let note = match answer.status {
        200..300 => format!("status look-up: {}; an earlier request was applied", registered(answer.status)),
        status => format!("status look-up: {}", registered(status)),
    };
    looked_up(Seen::Status(answer.status), |blank| SendReport {
        status: Some(answer.status),
        retry_after: answer.retry_after,
        note,
        excerpt: answer.excerpt,
        ..blank
    })
}

/// A status look-up that came to no answer. The times are the caller's to fill in.
pub(crate) fn of_failed_look_up(fault: Fault) -> Finding {
    let note = format!("status look-up: {}", fault.note);
    looked_up(fault.seen, |blank| SendReport { note, ..blank })
}

fn looked_up(seen: Seen, fill: impl FnOnce(SendReport) -> SendReport) -> Finding {
    match judge(seen) {
        None => Finding::NotApplied,
        Some(outcome) => Finding::Settles(fill(SendReport {
            outcome,
            phase: Phase::LookUp,
            ..blank(seen, &StatusOverrides::new())
        })),
    }
}

fn blank(seen: Seen, overrides: &StatusOverrides) -> SendReport {
    SendReport {
        outcome: classify(seen, overrides),
        phase: Phase::Prepare,
        status: None,
        retry_after: None,
        excerpt: None,
        note: String::new(),
        started_at: TimeMs::from_unix_ms(0),
        ended_at: TimeMs::from_unix_ms(0),
    }
}

/// The reason phrase is the registered one: the recipient's own may hold anything.
fn about_status(status: u16) -> String {
    let answered = registered(status);
    let hint = match status {
        101 => "to a protocol that nobody asked to switch to",
        300..=399 => "redirects are never followed; configure the URL that it points to",
        401 | 403 => "the recipient does not accept this signature or sender; check the secret on both sides",
        404 | 405 => "the URL is not, or is no longer, an endpoint for POST",
        410 => "the recipient wants no more deliveries here",
        _ => return answered,
    };
    format!("{answered}: {hint}")
}

fn registered(status: u16) -> String {
    match StatusCode::from_u16(status).ok().and_then(|code| code.canonical_reason()) {
        Some(reason) => format!("answered {status} {reason}"),
        None => format!("answered {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_without_a_registered_name_is_still_a_sentence() {
        assert_eq!(about_status(299), "answered 299");
        assert_eq!(about_status(503), "answered 503 Service Unavailable");
    }
}
