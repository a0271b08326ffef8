//! What a rehearsal promises, checked on what really arrived at the recipient.

use std::collections::BTreeSet;
use std::fmt::{self, Display};

use serde::Serialize;
use serde_json::{Value, json};
use waybill_domain::delivery::{Record, State};
use waybill_domain::signature::SigningKey;
use waybill_testkit::server::Received;
use waybill_testkit::server::dedup::Tally;

use crate::show::counted;

/// One promise, and whether it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Promise {
    /// The event that it is about.
    pub(crate) event: String,
    /// In words.
    pub(crate) text: String,
    /// Whether what was seen is what was promised.
    pub(crate) is_kept: bool,
    /// What was promised, as a value.
    promised: Value,
    /// What was seen.
    seen: Value,
}

/// Keeps the promise about an event if what was seen is what was promised.
pub(crate) fn promise<T: PartialEq + Serialize>(
    event: impl Display,
    text: impl Into<String>,
    promised: T,
    seen: T,
) -> Promise {
    Promise {
        event: event.to_string(),
        text: text.into(),
        is_kept: promised == seen,
        promised: json!(promised),
        seen: json!(seen),
    }
}

impl Promise {
    /// For programs.
    pub(crate) fn as_json(&self, example: &str) -> Value {
        let promise = format!("{}: {}", self.event, self.text);
        json!({ "example": example, "promise": promise, "kept": self.is_kept, "seen": self.seen })
    }
}

/// For people, beneath the name of the event.
impl Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, promised, seen, .. } = self;
        match self.is_kept {
            true => write!(f, "✓ {text}"),
            false => write!(f, "✗ {text} — BROKEN: promised {promised}, seen {seen}"),
        }
    }
}

/// How many promises were kept and broken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) kept: u64,
    pub(crate) broken: u64,
}

impl Count {
    /// Counts one more.
    pub(crate) fn add(&mut self, promise: &Promise) {
        *if promise.is_kept { &mut self.kept } else { &mut self.broken } += 1;
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { kept: self.kept + other.kept, broken: self.broken + other.broken }
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kept, {} broken", counted(self.kept, "promise"), self.broken)
    }
}

/// What holds for every delivery, whatever its story was.
pub(crate) fn of_every_delivery(
    record: &Record,
    payload: &[u8],
    requests: &[Received],
    key: &SigningKey,
) -> Vec<Promise> {
    let delivery = &record.delivery;
    let event = &delivery.event_id;
    let ids: BTreeSet<_> = requests.iter().map(|request| request.header("webhook-id")).collect();
    let numbers: Vec<_> = requests.iter().map(|request| request.header("waybill-attempt")).collect();
    let expected: Vec<String> = (1..=requests.len()).map(|n| n.to_string()).collect();
    let limit_at = delivery.deadline.unwrap_or(record.horizon_at);
    let late = requests.iter().filter(|request| request.at.is_none_or(|at| at >= limit_at)).count();
    vec![
        promise(event, "one delivery ID on every request", BTreeSet::from([Some(delivery.id.as_str())]), ids),
        promise(
            event,
            format!("the very {} bytes that were published on every request", payload.len()),
            0,
            requests.iter().filter(|request| request.body != payload).count(),
        ),
        promise(
            event,
            "attempts numbered from 1, none twice",
            expected.iter().map(|n| Some(n.as_str())).collect(),
            numbers,
        ),
        promise(event, format!("at most {}", counted(record.attempt_limit, "attempt")), true, {
            record.attempts_made <= record.attempt_limit
        }),
        promise(
            event,
            "every signature verifies",
            0,
            requests.iter().filter(|request| !request.is_signed_by(key)).count(),
        ),
        promise(event, format!("nothing sent at or after {limit_at}"), 0, late),
    ]
}

/// How a delivery ends.
pub(crate) fn ends_as(record: &Record, state: State) -> Promise {
    promise(&record.delivery.event_id, format!("ends as {state}"), state, record.state)
}

/// What the recipient's own books show.
pub(crate) fn effects(record: &Record, tally: Tally, requests: usize, effects: usize) -> Vec<Promise> {
    let event = &record.delivery.event_id;
    vec![
        promise(event, format!("requests at the recipient: {requests}"), requests, tally.requests),
        promise(event, format!("business effects at the recipient: {effects}"), effects, tally.effects),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_says_what_was_seen_instead() {
        let (kept, broken) = (promise("e1", "one effect", 1, 1), promise("e1", "one effect", 1, 2));
        assert_eq!(kept.to_string(), "✓ one effect");
        assert_eq!(broken.to_string(), "✗ one effect — BROKEN: promised 1, seen 2");
        let json = json!({ "example": "x", "promise": "e1: one effect", "kept": false, "seen": 2 });
        assert_eq!(broken.as_json("x"), json);
        let mut count = Count::default();
        [&kept, &broken, &broken].into_iter().for_each(|promise| count.add(promise));
        assert_eq!(count.and(Count::default()).to_string(), "1 promise kept, 2 broken");
    }
}
