//! The log: one line for each attempt and each decision. Never a payload, a header, a URL or a secret.

use waybill_domain::admit::{Left, Suppressed};
use waybill_domain::attempt::{NotSent, SendReport};
use waybill_domain::delivery::{Claim, Record};
use waybill_domain::identity::{AttemptNumber, DestinationName};
use waybill_domain::outcome::Outcome;

use crate::event::Event;
use crate::payload_schema::PayloadFault;

pub(crate) fn suppressed(record: &Record, why: Suppressed) {
    let delivery = &record.delivery;
    tracing::info!(
        delivery_id = %delivery.id, tenant = %delivery.tenant, destination = %delivery.destination,
        trace_id = delivery.trace_id(), reason = why.as_str(), "suppressed"
    );
}

pub(crate) fn left(record: &Record, why: Left) {
    let reason = why.as_str();
    tracing::info!(delivery_id = %record.delivery.id, tenant = %record.delivery.tenant, reason, "left");
}

pub(crate) fn not_sent(record: &Record, attempt: AttemptNumber, why: NotSent) {
    let delivery = &record.delivery;
    tracing::warn!(
        delivery_id = %delivery.id, tenant = %delivery.tenant, destination = %delivery.destination,
        trace_id = delivery.trace_id(), attempt = attempt.get(), reason = why.as_str(), "not sent"
    );
}

pub(crate) fn decision(record: &Record) {
    let delivery = &record.delivery;
    tracing::info!(
        delivery_id = %delivery.id, tenant = %delivery.tenant, destination = %delivery.destination,
        scope = delivery.scope.as_ref().map(tracing::field::display), trace_id = delivery.trace_id(),
        state = %record.state, attempts_made = record.attempts_made, due_at = %record.due_at,
        held = record.hold.as_ref().map(|held| held.reason.as_str()),
        reason = record.dead_letter_reason().map(tracing::field::display), "decided"
    );
}

pub(crate) fn payload_refused(event: &Event, destination: &DestinationName, fault: &PayloadFault) {
    // The fault names places and rules, never what stands there.
    tracing::warn!(tenant = %event.tenant, %destination, reason = "payload_invalid", %fault, "refused");
}

pub(crate) fn attempt(record: &Record, claim: &Claim, report: &SendReport) {
    let delivery = &record.delivery;
    let (outcome, class, applied) = match report.outcome {
        Outcome::Delivered => ("delivered", None, "yes"),
        Outcome::Failed(failure) => ("failed", Some(failure.class.as_str()), failure.applied.as_str()),
    };
    tracing::info!(
        delivery_id = %delivery.id, idempotency_key = %delivery.id, tenant = %delivery.tenant,
        destination = %delivery.destination, scope = delivery.scope.as_ref().map(tracing::field::display),
        trace_id = delivery.trace_id(), attempt = claim.attempt.get(), outcome, class, applied,
        phase = report.phase.as_str(), status = report.status,
        duration_ms = report.ended_at.since(report.started_at).as_ms(), "attempted"
    );
}
