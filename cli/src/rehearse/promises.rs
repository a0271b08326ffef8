//! What a rehearsal promises, checked on what really arrived at the recipient.

use std::collections::BTreeSet;

use waybill_domain::delivery::{Record, State};
use waybill_domain::signature::SigningKey;
use waybill_testkit::server::Received;
use waybill_testkit::server::dedup::Tally;

/// One promise, and whether it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Promise {
    /// In words.
    pub(crate) text: String,
    /// What was seen instead, if it was broken.
    pub(crate) broken: Option<String>,
}

/// Keeps the promise if what was seen is what was promised.
pub(crate) fn promise<T: PartialEq + std::fmt::Debug>(
    text: impl Into<String>,
    promised: T,
    seen: T,
) -> Promise {
    let broken = (promised != seen).then(|| format!("promised {promised:?}, seen {seen:?}"));
    Promise { text: text.into(), broken }
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
    let counted: Vec<String> = (1..=requests.len()).map(|n| n.to_string()).collect();
    let limit_at = delivery.deadline.unwrap_or(record.horizon_at);
    let late = requests.iter().filter(|request| request.at.is_none_or(|at| at >= limit_at)).count();
    vec![
        promise(
            format!("{event}: one delivery ID on every request"),
            BTreeSet::from([Some(delivery.id.as_str())]),
            ids,
        ),
        promise(
            format!("{event}: the very {} bytes that were published on every request", payload.len()),
            0,
            requests.iter().filter(|request| request.body != payload).count(),
        ),
        promise(
            format!("{event}: attempts numbered from 1, none twice"),
            counted.iter().map(|n| Some(n.as_str())).collect(),
            numbers,
        ),
        promise(format!("{event}: at most {} attempts", record.attempt_limit), true, {
            record.attempts_made <= record.attempt_limit
        }),
        promise(
            format!("{event}: every signature verifies"),
            0,
            requests.iter().filter(|request| !request.is_signed_by(key)).count(),
        ),
        promise(format!("{event}: nothing sent at or after {limit_at}"), 0, late),
    ]
}

/// How a delivery ends.
pub(crate) fn ends_as(record: &Record, state: State) -> Promise {
    promise(format!("{}: ends as {state}", record.delivery.event_id), state, record.state)
}

/// What the recipient's own books show.
pub(crate) fn effects(record: &Record, tally: Tally, requests: usize, effects: usize) -> Vec<Promise> {
    let event = &record.delivery.event_id;
    vec![
        promise(format!("{event}: requests at the recipient: {requests}"), requests, tally.requests),
        promise(format!("{event}: business effects at the recipient: {effects}"), effects, tally.effects),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_says_what_was_seen_instead() {
        assert_eq!(promise("one effect", 1, 1).broken, None);
        let broken = promise("one effect", 1, 2).broken.unwrap();
        assert_eq!(broken, "promised 1, seen 2");
    }
}
