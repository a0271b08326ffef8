//! What an attempt's report makes of the delivery: the next due time, or the end.

use crate::attempt::{Attempt, Delay, Next, SendReport, Witness};
use crate::delivery::{Change, Claim, LastFailure, Record};
use crate::destination::OnAmbiguous;
use crate::ending::{DeadLetterReason, Ending};
use crate::identity::AttemptNumber;
use crate::outcome::{Applied, Failure, FailureClass, Outcome, Verdict};
use crate::policy::Policy;
use crate::repair::LookRules;
use crate::time::{DurationMs, TimeMs};
use crate::transition::{ClaimEnd, IllegalTransition, Writer};

/// The terms under which an attempt is settled: its destination's, or the defaults if that is gone.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Retry rules.
    pub policy: Policy,
    /// What follows an unknown effect.
    pub on_ambiguous: OnAmbiguous,
    /// Whether the answer is kept.
    pub keep_result: bool,
    /// The fingerprint of the destination's configuration; `None` if that is gone.
    pub fingerprint: Option<String>,
    /// When open deliveries are looked at.
    pub look: LookRules,
    /// Whether this attempt only tries whether a suspended destination takes something again: what was
    /// refused because of the destination is not the delivery's end.
    pub is_probe: bool,
}

/// A settle: the evidence, which is written first, and the change.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The evidence of a failed attempt.
    pub attempt: Option<Attempt>,
    /// What becomes of the record.
    pub change: Change,
}

/// How much before the latest start a last attempt is woken: a queue rounds up to whole seconds, and
/// its message takes up to another to be worked for.
const WAKE_UP_GRAIN: DurationMs = DurationMs::from_secs(2);

/// Settles the attempt under the claim of `by`. `unit` in [0, 1) was drawn outside.
pub fn settle(
    record: &Record,
    report: &SendReport,
    terms: &Terms,
    by: &Writer,
    unit: f64,
) -> Result<Settlement, IllegalTransition> {
    let Outcome::Failed(failure) = report.outcome else {
        let result = report.excerpt.clone().filter(|_| terms.keep_result);
        let change = match report.is_look_up() {
            true => record.settle_confirmed(by, result)?,
            false => record.settle_delivered(by, result)?,
        };
        return Ok(Settlement { attempt: None, change });
    };
    let claim = claim_of(record)?;
    let asked = report.retry_after.as_ref().and_then(|field| field.wait);
    let next = next_step(record, claim, failure, asked, terms, by.now, unit);
    let attempt = evidence_of(report, failure, claim, next);
    let change = settle_by(record, &attempt, ClaimEnd::Own, terms, by)?;
    Ok(Settlement { attempt: Some(attempt), change })
}

/// What is done about a success whose claim was lost meanwhile: the effect is real.
pub fn settle_late(
    record: &Record,
    attempt: AttemptNumber,
    report: &SendReport,
    terms: &Terms,
    by: &Writer,
) -> Result<Change, IllegalTransition> {
    let result = report.excerpt.clone().filter(|_| terms.keep_result);
    match report.is_look_up() {
        true => record.confirmed_late(by, attempt, result),
        false => record.acknowledged_late(by, attempt, result),
    }
}

/// Settles an attempt as its evidence says.
pub fn settle_by(
    record: &Record,
    attempt: &Attempt,
    end: ClaimEnd,
    terms: &Terms,
    by: &Writer,
) -> Result<Change, IllegalTransition> {
    let failure = LastFailure {
        attempt: attempt.number,
        at: attempt.ended_at,
        failure: attempt.failure,
        status: attempt.status,
        note: attempt.note.clone(),
        destination: terms.fingerprint.clone(),
    };
    record.settle_failed(by, end, failure, &attempt.next, &terms.look)
}

/// The evidence by which a lapsed claim is to be settled, if there is some: its worker's own, when it
/// died between evidence and settle, or else that of whoever found the claim before.
pub fn standing_evidence<'a>(record: &Record, attempts: &'a [Attempt]) -> Option<&'a Attempt> {
    let claim = record.claim.as_ref()?;
    attempts.iter().filter(|attempt| attempt.token == claim.token).min_by_key(|attempt| attempt.witness)
}

/// The evidence of an attempt whose claim lapsed: its effect is unknown, and it counts.
pub fn interrupted(
    record: &Record,
    terms: &Terms,
    by: &Writer,
    unit: f64,
) -> Result<Attempt, IllegalTransition> {
    let claim = claim_of(record)?;
    let failure =
        Failure { verdict: Verdict::Retryable, class: FailureClass::Interrupted, applied: Applied::Unknown };
    Ok(Attempt {
        number: claim.attempt,
        witness: Witness::Finder,
        token: claim.token.clone(),
        started_at: claim.claimed_at,
        ended_at: by.now,
        phase: None,
        status: None,
        failure,
        retry_after: None,
        next: next_step(record, claim, failure, None, terms, by.now, unit),
        config_revision: claim.config_revision.clone(),
        excerpt: None,
        note: format!("the worker did not report back by {}, when its claim lapsed", claim.lease_until),
    })
}

fn claim_of(record: &Record) -> Result<&Claim, IllegalTransition> {
    let why = "no attempt is being made";
    record.claim.as_ref().ok_or(IllegalTransition { from: record.state, to: "settled", why })
}

fn evidence_of(report: &SendReport, failure: Failure, claim: &Claim, next: Next) -> Attempt {
    Attempt {
        number: claim.attempt,
        witness: Witness::Worker,
        token: claim.token.clone(),
        started_at: report.started_at,
        ended_at: report.ended_at,
        phase: Some(report.phase),
        status: report.status,
        failure,
        retry_after: report.retry_after.clone(),
        next,
        config_revision: claim.config_revision.clone(),
        excerpt: report.excerpt.clone(),
        note: report.note.clone(),
    }
}

/// The ladder after a failure: permanent, ambiguous, exhausted, past the limit, or due again.
fn next_step(
    record: &Record,
    claim: &Claim,
    failure: Failure,
    asked: Option<DurationMs>,
    terms: &Terms,
    now: TimeMs,
    unit: f64,
) -> Next {
    let dead = |reason| Next::End(Ending::DeadLettered(reason));
    let is_for_all = matches!(failure.class, FailureClass::AuthenticationRejected | FailureClass::Gone);
    if failure.verdict == Verdict::Permanent && !(terms.is_probe && is_for_all) {
        return dead(DeadLetterReason::Permanent(failure.class));
    }
    if failure.applied == Applied::Unknown && terms.on_ambiguous == OnAmbiguous::Hold {
        return dead(DeadLetterReason::AmbiguousOutcome);
    }
    if claim.attempt.get() >= record.attempt_limit {
        return dead(DeadLetterReason::AttemptsExhausted);
    }
    let limit = record.limit(now);
    let latest_start = limit.at.minus(terms.policy.minimum_window);
    if now > latest_start {
        return Next::End(limit.ending);
    }
    let last_wake_up = latest_start.minus(WAKE_UP_GRAIN);
    let earliest = now.plus(asked.unwrap_or_default());
    if earliest > now && earliest > last_wake_up {
        return match limit.ending {
            Ending::Expired => dead(DeadLetterReason::RetryAfterPastDeadline),
            horizon => Next::End(horizon),
        };
    }
    let in_budget = AttemptNumber::after(claim.attempt.get().saturating_sub(record.attempts_before + 1));
    let jittered = terms.policy.backoff.delay(in_budget, unit);
    let wished = earliest.plus(jittered);
    // One last attempt is moved back to where it fits. What began no earlier than that was it already: another
    // is made if the delay that was drawn for it leaves room, and is not moved.
    let is_last = claim.claimed_at >= last_wake_up;
    if is_last && wished > latest_start {
        return Next::End(limit.ending);
    }
    let due_at = if is_last { wished } else { wished.min(last_wake_up.max(earliest)) };
    Next::Retry {
        due_at,
        delay: Delay {
            chosen: due_at.since(now),
            jittered,
            ceiling: terms.policy.backoff.ceiling(in_budget),
            retry_after: asked,
            moved_before_limit: due_at < wished,
        },
    }
}
