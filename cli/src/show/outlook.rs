//! What happens next to a delivery, or why nothing does; and what a person can do about it.

use waybill_domain::delivery::{LastFailure, Record, State};
use waybill_domain::ending::{DeadLetterReason, Disposition, Ending};
use waybill_domain::hold::HoldReason;
use waybill_domain::outcome::FailureClass;
use waybill_domain::time::TimeMs;

use super::escape::escaped;

/// What is left to do about what no path sends any more.
const ANEW: &str = "if it still matters, the producer decides on a new event";

/// Two sentences for whoever looks at a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// What automation does next, or why it stopped.
    pub(crate) next: String,
    /// What a person can do; nothing where nothing is to be done.
    pub(crate) for_you: Option<String>,
}

/// The outlook of a record as it stands. Whom to ask is said where `owner` is known; no redrive is offered of
/// what it would expire (`is_too_late`).
pub(crate) fn outlook(record: &Record, owner: Option<&str>, is_too_late: bool) -> Outlook {
    match (record.state, record.disposition) {
        (State::Pending | State::Retryable, _) => of_open(record),
        (_, Some(Disposition::Delivered { by_look_up: true, .. })) => {
            quiet("nothing: the recipient said in a status look-up that it has applied it".to_owned())
        }
        (_, Some(Disposition::Delivered { attempt, late: false, .. })) => {
            quiet(format!("nothing: the recipient acknowledged attempt {attempt}"))
        }
        (_, Some(Disposition::Delivered { attempt, late: true, .. })) => quiet(format!(
            "nothing: the recipient acknowledged attempt {attempt}, late: its claim had been lost, but the \
             effect is real"
        )),
        (_, Some(Disposition::Ended(Ending::Expired))) => expired(record),
        (_, Some(Disposition::Ended(Ending::DeadLettered(reason)))) => {
            dead_lettered(record, reason, owner, is_too_late)
        }
        (_, Some(Disposition::Closed(_))) => quiet("nothing: a person closed it".to_owned()),
        (_, Some(Disposition::Resolved(_))) => {
            quiet("nothing: a person found that its effect stands, and resolved it".to_owned())
        }
        (state, None) => quiet(format!("unknown: it is {state}, and the record does not say how")),
    }
}

fn of_open(record: &Record) -> Outlook {
    let next = record.next_attempt();
    if let Some(claim) = &record.claim {
        return quiet(format!(
            "attempt {} is being made since {}; if its worker does not report back by {}, it counts as \
             interrupted",
            claim.attempt, claim.claimed_at, claim.lease_until
        ));
    }
    if let Some(held) = &record.hold {
        let why = match held.reason {
            HoldReason::Paused => "its destination or its tenant is paused",
            HoldReason::Quarantine => "its class of payloads is kept back",
            HoldReason::Gate => "everything is held",
            HoldReason::Suspended => "its destination is suspended until it is mended",
            HoldReason::RunStopped => "the redrive run that released it was stopped",
            HoldReason::Budget => "its destination has as much to do as it may have at once",
        };
        let sentence = format!("it is held since {}: {why}; it costs no attempt meanwhile", held.since);
        let until = match (held.reason, record.delivery.deadline) {
            // It goes by itself as soon as there is room.
            (HoldReason::Budget, _) => None,
            (HoldReason::RunStopped, deadline) => Some(stopped(record, deadline)),
            // Lifted by hand it would be refused, and suspended again.
            (HoldReason::Suspended, deadline) => {
                let destination = &record.delivery.destination;
                let by = deadline.map_or_else(String::new, |at| format!(" in time: its deadline is {at}"));
                Some(format!(
                    "mend {destination}{by}; the next probe lifts it (waybill destinations show {destination})"
                ))
            }
            (_, Some(deadline)) => Some(format!("lift the hold in time: its deadline is {deadline}")),
            (_, None) => Some("lift the hold when it may go".to_owned()),
        };
        return Outlook { next: sentence, for_you: until };
    }
    let of = record.attempt_limit;
    let limit = match record.delivery.deadline {
        Some(deadline) if deadline <= record.horizon_at => format!("nothing is sent from {deadline} on"),
        _ => format!("automation ends at {}", record.horizon_at),
    };
    quiet(format!("attempt {next} of {of} is due at {}; {limit}", record.due_at))
}

/// The record does not say how its run stands now: what is true either way.
fn stopped(record: &Record, deadline: Option<TimeMs>) -> String {
    let status = ["waybill redrive status"].into_iter().chain(record.redrive_run.as_deref());
    let status = status.collect::<Vec<_>>().join(" ");
    let resume = match deadline {
        Some(deadline) => format!("resume it in time: its deadline is {deadline}"),
        None => "resume it when it may go".to_owned(),
    };
    format!(
        "where its run is stopped still ({status}), {resume}; where it goes on or has finished, this goes by itself \
         when there is room"
    )
}

fn expired(record: &Record) -> Outlook {
    let when = record.delivery.deadline.map_or_else(String::new, |deadline| format!(" ({deadline})"));
    let maybe = if may_be_applied(record.last_failure.as_ref()) {
        "; the recipient may have applied an attempt whose answer was lost: ask it"
    } else {
        ""
    };
    Outlook {
        next: format!("nothing: {}, and no path sends it any more", why_expired(record, &when)),
        for_you: Some(format!("{ANEW}{maybe}")),
    }
}

/// Why an expired delivery expired: its deadline had come, or too little was left before it.
/// `when` stands behind the deadline.
pub(crate) fn why_expired(record: &Record, when: &str) -> String {
    match (record.delivery.deadline, record.ended_at) {
        (Some(deadline), Some(ended_at)) if ended_at < deadline => {
            format!("{} before its deadline{when} no attempt may start any more", deadline.since(ended_at))
        }
        _ => format!("its deadline{when} passed"),
    }
}

/// Automation ends where no further attempt may start: when its time is over, before that where little is
/// left, and earlier still where the recipient asked to wait longer.
fn why_horizon(record: &Record) -> String {
    let over_at = record.horizon_at;
    match record.ended_at {
        Some(ended_at) if ended_at < over_at => format!(
            "no further attempt may start in the {} that automation has left, until {over_at}",
            over_at.since(ended_at)
        ),
        _ => format!("automation's time for it was over at {over_at}"),
    }
}

fn dead_lettered(
    record: &Record,
    reason: DeadLetterReason,
    owner: Option<&str>,
    is_too_late: bool,
) -> Outlook {
    let destination = &record.delivery.destination;
    let why = match reason {
        DeadLetterReason::AttemptsExhausted => match record.attempts_made {
            1 => "the one attempt of its budget was made".to_owned(),
            made => format!("all {made} attempts of its budget were made"),
        },
        DeadLetterReason::HorizonReached => why_horizon(record),
        DeadLetterReason::RetryAfterPastDeadline => {
            "the recipient asked to wait until after the deadline".to_owned()
        }
        DeadLetterReason::AmbiguousOutcome => {
            "the recipient may have applied it, and its destination wants a person to decide".to_owned()
        }
        DeadLetterReason::DestinationRemoved => {
            format!("destination {destination} is not configured any more for its tenant")
        }
        DeadLetterReason::PayloadInvalid => format!("the schema of {destination} refuses its payload"),
        DeadLetterReason::Permanent(class) => {
            format!("the last attempt failed in a way that a repeat does not mend ({class})")
        }
    };
    let doubt =
        may_be_applied(record.last_failure.as_ref()) && !matches!(reason, DeadLetterReason::AmbiguousOutcome);
    let ask = if doubt { "; the last attempt may have been applied: ask the recipient first" } else { "" };
    let remedy = match (reason, is_too_late) {
        (DeadLetterReason::RetryAfterPastDeadline, true) => {
            format!("find out why {destination} could not take it in time")
        }
        _ => remedy(record, reason),
    };
    let mut sentences = vec![format!("{remedy}{ask}")];
    sentences.extend(owner.map(|owner| format!("The owner of {destination} is {}", escaped(owner))));
    sentences.push(match is_too_late {
        true => {
            format!("No redrive sends it any more: {ANEW}. To end it, waybill dead-letters close or resolve")
        }
        false => {
            "To release it, begin with waybill redrive plan; to end it, waybill dead-letters close or resolve"
                .to_owned()
        }
    });
    Outlook { next: format!("nothing: {why}; a person decides"), for_you: Some(sentences.join(". ")) }
}

fn remedy(record: &Record, reason: DeadLetterReason) -> String {
    use FailureClass as C;
    let destination = &record.delivery.destination;
    match reason {
        DeadLetterReason::AttemptsExhausted | DeadLetterReason::HorizonReached => {
            "find out why it kept failing (see the attempts above)".to_owned()
        }
        DeadLetterReason::RetryAfterPastDeadline => {
            let by = record.delivery.deadline.map_or_else(String::new, |at| format!(" before {at}"));
            format!("find out whether {destination} can take it{by}")
        }
        DeadLetterReason::AmbiguousOutcome => {
            format!("find out whether {destination} applied {}", record.delivery.id)
        }
        DeadLetterReason::DestinationRemoved => {
            format!("put {destination} back into the configuration if it was removed by mistake")
        }
        DeadLetterReason::PayloadInvalid => {
            format!("correct what makes the payload, or the schema of {destination}")
        }
        DeadLetterReason::Permanent(class) => match class {
            C::AuthenticationRejected => "correct the credentials or the secret on both sides".to_owned(),
            C::PayloadRejected => "review the payload: the recipient says above what it refuses".to_owned(),
            C::EndpointMissing | C::Redirect | C::Gone => "correct the URL of the destination".to_owned(),
            C::ForbiddenAddress => "find out why its name leads to an address that is not public".to_owned(),
            C::PayloadMissing => {
                "the payload is lost to Waybill: the producer still has the event".to_owned()
            }
            _ => "see the last attempt".to_owned(),
        },
    }
}

fn may_be_applied(failure: Option<&LastFailure>) -> bool {
    failure.is_some_and(|last| last.failure.applied == waybill_domain::outcome::Applied::Unknown)
}

fn quiet(next: String) -> Outlook {
    Outlook { next, for_you: None }
}
