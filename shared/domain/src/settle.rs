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
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Retry rules.
    pub policy: Policy,
    /// What follows an unknown effect.
    pub on_ambiguous: OnAmbiguous,
    /// Whether the answer is kept.
    pub keep_result: bool,
    /// When open deliveries are looked at.
    pub look: LookRules,
}

/// A settle: the evidence, which is written first, and the change.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The evidence of a failed attempt.
    pub attempt: Option<Attempt>,
    /// What becomes of the record.
    pub change: Change,
}

/// A queue counts in whole seconds and takes a moment: a last attempt is woken this much early.
const WAKE_UP_GRAIN: DurationMs = DurationMs::from_secs(1);

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
        return Ok(Settlement { attempt: None, change: record.settle_delivered(by, result)? });
    };
    let Some(claim) = &record.claim else {
        return Err(IllegalTransition { from: record.state, to: "settled", why: "no attempt is being made" });
    };
    let asked = report.retry_after.as_ref().and_then(|field| field.wait);
    let next = next_step(record, claim, failure, asked, terms, by.now, unit);
    let attempt = evidence_of(report, failure, claim, next);
    let failure = LastFailure {
        attempt: claim.attempt,
        at: report.ended_at,
        failure,
        status: report.status,
        note: report.note.clone(),
    };
    let change = record.settle_failed(by, ClaimEnd::Own, failure, &attempt.next, &terms.look)?;
    Ok(Settlement { attempt: Some(attempt), change })
}

/// Settles an attempt whose claim lapsed: its effect is unknown, and it counts.
pub fn settle_interrupted(
    record: &Record,
    terms: &Terms,
    by: &Writer,
    unit: f64,
) -> Result<Settlement, IllegalTransition> {
    let Some(claim) = &record.claim else {
        return Err(IllegalTransition { from: record.state, to: "settled", why: "no attempt is being made" });
    };
    let failure =
        Failure { verdict: Verdict::Retryable, class: FailureClass::Interrupted, applied: Applied::Unknown };
    let note = format!("the worker did not report back by {}, when its claim lapsed", claim.lease_until);
    let attempt = Attempt {
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
        note: note.clone(),
    };
    let failure = LastFailure { attempt: claim.attempt, at: by.now, failure, status: None, note };
    let change = record.settle_failed(by, ClaimEnd::Lapsed, failure, &attempt.next, &terms.look)?;
    Ok(Settlement { attempt: Some(attempt), change })
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
    if failure.verdict == Verdict::Permanent {
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
    let earliest = now.plus(asked.unwrap_or_default());
    if earliest > latest_start {
        return match limit.ending {
            Ending::Expired => dead(DeadLetterReason::RetryAfterPastDeadline),
            horizon => Next::End(horizon),
        };
    }
    let in_budget = AttemptNumber::after(claim.attempt.get().saturating_sub(record.attempts_before + 1));
    let jittered = terms.policy.backoff.delay(in_budget, unit);
    let last_wake_up = latest_start.minus(WAKE_UP_GRAIN).max(earliest);
    let wished = earliest.plus(jittered);
    let due_at = wished.min(last_wake_up);
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
