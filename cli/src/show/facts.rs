//! The facts of a delivery as JSON: what the tables and the timeline say, for programs.

use serde_json::{Map, Value, json};
use waybill_domain::attempt::{Attempt, Excerpt, Next, Witness};
use waybill_domain::delivery::Record;
use waybill_domain::ending::Disposition;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::DeadLetterGroup;
use waybill_service::sweep::UnknownCopy;

use super::beside::Beside;
use super::evidence::deciding;
use super::outlook::outlook;

/// One delivery, without its attempts; `is_too_late` where a redrive would expire it.
pub(crate) fn of_record(record: &Record, owner: Option<&str>, is_too_late: bool) -> Map<String, Value> {
    let delivery = &record.delivery;
    let outlook = outlook(record, owner, is_too_late);
    let (ending, delivered) = match record.disposition {
        Some(Disposition::Ended(ending)) => (Some(ending.reason()), None),
        Some(Disposition::Delivered { attempt, late, by_look_up }) => {
            (None, Some((attempt.get(), late, by_look_up)))
        }
        Some(Disposition::Closed(reason) | Disposition::Resolved(reason)) => (Some(reason.as_str()), None),
        None => (None, None),
    };
    let facts = json!({
        "delivery_id": delivery.id.as_str(),
        "tenant": delivery.tenant.as_str(),
        "event_id": delivery.event_id.as_str(),
        "type": delivery.event_type.as_str(),
        "scope": delivery.scope.as_ref().map(|scope| scope.as_str()),
        "destination": delivery.destination.as_str(),
        "trace_id": delivery.trace_id(),
        "payload": {
            "sha256": delivery.payload.sha256,
            "length": delivery.payload.length,
            "content_type": delivery.payload.content_type,
            "version": delivery.payload.version,
        },
        "state": record.state.as_str(),
        "reason": ending,
        "ended_by": record.ended_by.as_ref().map(|order| order.as_str()),
        "delivered_by_attempt": delivered.map(|(attempt, ..)| attempt),
        "late": delivered.map(|(_, late, _)| late),
        "confirmed_by_look_up": delivered.map(|(.., by_look_up)| by_look_up),
        "first_queued_at": time(delivery.first_queued_at),
        "not_before": delivery.not_before.map(time),
        "due_at": record.state.is_open().then(|| time(record.due_at)),
        "deadline": delivery.deadline.map(time),
        "horizon_at": time(record.horizon_at),
        "ended_at": record.ended_at.map(time),
        "acknowledged_after_ms": record.acknowledged_after.map(DurationMs::as_ms),
        "policy": delivery.policy.as_ref().map(|policy| policy.as_str()),
        "attempts_made": record.attempts_made,
        "attempt_limit": record.attempt_limit,
        "redrives": record.redrives,
        "redrive_run": record.redrive_run,
        "claim": record.claim.as_ref().map(|claim| json!({
            "attempt": claim.attempt.get(),
            "claimed_at": time(claim.claimed_at),
            "lease_until": time(claim.lease_until),
        })),
        "hold": record.hold.as_ref().map(|held| json!({
            "reason": held.reason.as_str(),
            "since": time(held.since),
        })),
        "last_failure": record.last_failure.as_ref().map(|last| json!({
            "attempt": last.attempt.get(),
            "at": time(last.at),
            "status": last.status,
            "class": last.failure.class.as_str(),
            "verdict": last.failure.verdict,
            "applied": last.failure.applied.as_str(),
            "note": last.note,
        })),
        "result": record.result.as_ref().map(excerpt),
        "dlq_told": record.dlq_told,
        "config_revision": record.config_revision.as_str(),
        "next": outlook.next,
        "for_you": outlook.for_you,
    });
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}

/// One delivery with every attempt that failed.
pub(crate) fn of_delivery(record: &Record, attempts: &[Attempt], beside: &Beside<'_>) -> Map<String, Value> {
    let mut facts = of_record(record, beside.owner, beside.is_too_late());
    let of = |attempt| of_attempt(record, attempts, attempt);
    facts.insert("attempts".to_owned(), attempts.iter().map(of).collect());
    facts
}

fn of_attempt(record: &Record, attempts: &[Attempt], attempt: &Attempt) -> Value {
    let decided = deciding(record, attempts, attempt.number).is_none_or(|witness| witness == attempt.witness);
    json!({
        "number": attempt.number.get(),
        "witness": attempt.witness.as_str(),
        "decided": decided,
        "started_at": time(attempt.started_at),
        "ended_at": time(attempt.ended_at),
        "duration_ms": (attempt.witness == Witness::Worker)
            .then(|| attempt.ended_at.since(attempt.started_at).as_ms()),
        "phase": attempt.phase.map(|phase| phase.as_str()),
        "status": attempt.status,
        "class": attempt.failure.class.as_str(),
        "verdict": attempt.failure.verdict,
        "applied": attempt.failure.applied.as_str(),
        "retry_after": attempt.retry_after.as_ref().map(|asked| json!({
            "received": asked.received,
            "wait_ms": asked.wait.map(|wait| wait.as_ms()),
        })),
        "next": next(&attempt.next),
        "note": attempt.note,
        "excerpt": attempt.excerpt.as_ref().map(excerpt),
        "config_revision": attempt.config_revision.as_str(),
    })
}

fn next(next: &Next) -> Value {
    match next {
        Next::Retry { due_at, delay } => json!({
            "due_at": time(*due_at),
            "delay_ms": delay.chosen.as_ms(),
            "jittered_ms": delay.jittered.as_ms(),
            "ceiling_ms": delay.ceiling.as_ms(),
            "retry_after_ms": delay.retry_after.map(|asked| asked.as_ms()),
            "moved_before_limit": delay.moved_before_limit,
            "why": delay.to_string(),
        }),
        Next::End(ending) => json!({ "state": ending.state().as_str(), "reason": ending.reason() }),
    }
}

fn excerpt(excerpt: &Excerpt) -> Value {
    json!({
        "text": String::from_utf8_lossy(&excerpt.bytes),
        "full_length": excerpt.full_length,
        "complete": excerpt.complete,
    })
}

/// One group of dead letters.
pub(crate) fn of_group(group: &DeadLetterGroup) -> Value {
    json!({
        "tenant": group.tenant.as_str(),
        "destination": group.destination.as_str(),
        "reason": group.reason.as_str(),
        "count": group.count,
        "oldest_ended_at": time(group.oldest_ended_at),
        "nearest_deadline": group.nearest_deadline.map(time),
    })
}

/// One copy in the DLQ that nobody knows.
pub(crate) fn of_unknown_copy(copy: &UnknownCopy) -> Value {
    json!({
        "message_id": copy.message_id.as_str(),
        "why": copy.why,
        "delivery_id": copy.delivery.as_ref().map(|key| key.delivery_id.as_str()),
        "tenant": copy.delivery.as_ref().map(|key| key.tenant.as_str()),
        "bytes": copy.bytes,
    })
}

fn time(at: TimeMs) -> String {
    at.to_string()
}
