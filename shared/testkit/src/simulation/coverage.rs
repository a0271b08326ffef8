//! What was taken how often: every admission, transition, repair and fault, over all histories.
//!
//! A simulator that never went somewhere has not tested it. [`Coverage::missing`] names where.

use std::collections::BTreeMap;

use waybill_domain::admit::{Admission, Left, Suppressed};
use waybill_domain::delivery::{Record, State};
use waybill_domain::ending::{DeadLetterReason, Disposition, Ending};
use waybill_domain::hold::HoldReason;
use waybill_service::ports::PortResult;
use waybill_service::reconcile::TickReport;

use crate::memory::Write;

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    counts: BTreeMap<&'static str, u64>,
}

/// Everything that must be met at least once, and what it is.
pub const EXPECTED: &[&str] = &[
    "admit acknowledge claimed",
    "admit acknowledge dead_lettered",
    "admit acknowledge final",
    "admit acknowledge held",
    "admit acknowledge superseded",
    "admit claim",
    "admit end destination_removed",
    "admit end expired",
    "admit end horizon_reached",
    "admit hold gate",
    "admit hold paused",
    "admit hold quarantine",
    "admit leave own_claim",
    "admit leave time_short",
    "admit lift",
    "admit repeat dead_lettered",
    "admit repeat final",
    "admit repeat superseded",
    "admit settle_interrupted",
    "admit wait",
    "write claim",
    "write create",
    "write end destination_removed",
    "write end expired",
    "write end horizon_reached",
    "write hold",
    "write hold, budget",
    "write interrupted, ends",
    "write interrupted, retries",
    "write late over dead_lettered",
    "write late over expired",
    "write late over retryable",
    "write lift",
    "write lift, budget",
    "write looked",
    "write not_sent",
    "write release",
    "write settled, ambiguous",
    "write settled, confirmed",
    "write settled, delivered",
    "write settled, exhausted",
    "write settled, expired",
    "write settled, horizon",
    "write settled, permanent",
    "write settled, retries",
    "write settled, retry_after_past_deadline",
    "write told",
    "tick ended",
    "tick failed",
    "tick held",
    "tick lifted",
    "tick raced",
    "tick told",
    "tick woken",
    "tick working",
    "fault call fails after",
    "fault call fails before",
    "fault call made twice",
    "fault clock jumps",
    "fault config loses destination",
    "fault console redrives",
    "fault crash after",
    "fault crash before",
    "fault crash while waiting",
    "fault crash with a slot",
    "fault deleted message comes back",
    "fault freeze",
    "fault index lags",
    "fault message duplicated",
    "fault message lost",
    "fault message moved natively",
    "fault producer repeats",
    "fault queue purged",
    "fault stray newer",
    "fault stray undecodable",
    "fault stray unknown",
    "fault two reconcilers",
];

/// What is never met, and why that is right.
pub const EXCEPTIONS: &[(&str, &str)] = &[
    ("admit hold budget", "the budget is asked after the admission, right before the claim"),
    (
        "admit end attempts_exhausted",
        "the settle of the last attempt already dead-letters, and a release raises the limit: a record \
         that is open with its attempts used up cannot be written; the row is a second lock",
    ),
    (
        "admit repeat claimed, repeat held",
        "a live claim's own copy is left and never asked to repeat; a held record owes the queue nothing: \
         admit never constructs these two",
    ),
];

impl Coverage {
    /// One more.
    pub fn count(&mut self, name: &'static str) {
        self.add(name, 1);
    }

    /// So many more.
    pub fn add(&mut self, name: &'static str, n: u64) {
        if n > 0 {
            *self.counts.entry(name).or_default() += n;
        }
    }

    /// How often.
    pub fn of(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// Everything that another history met, too.
    pub fn merge(&mut self, other: &Coverage) {
        for (name, n) in &other.counts {
            self.add(name, *n);
        }
    }

    /// What was expected and never met.
    pub fn missing(&self) -> Vec<&'static str> {
        EXPECTED.iter().filter(|name| self.of(name) == 0).copied().collect()
    }

    /// What was met and stands in no list.
    pub fn unexpected(&self) -> Vec<&'static str> {
        self.counts.keys().filter(|name| !EXPECTED.contains(name)).copied().collect()
    }

    pub(super) fn tick(&mut self, report: &PortResult<TickReport>) {
        let Ok(report) = report else { return };
        for (name, n) in [
            ("tick woken", report.woken),
            ("tick ended", report.ended),
            ("tick told", report.told),
            ("tick lifted", report.lifted),
            ("tick working", report.working),
            ("tick held", report.held),
            ("tick raced", report.raced),
            ("tick failed", report.failed),
        ] {
            self.add(name, n as u64);
        }
    }
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, n) in &self.counts {
            writeln!(f, "{n:>9}  {name}")?;
        }
        Ok(())
    }
}

/// An admission's name.
pub(super) fn admission(admission: &Admission) -> &'static str {
    use Suppressed as S;
    match admission {
        Admission::Acknowledge(S::Final) => "admit acknowledge final",
        Admission::Acknowledge(S::DeadLettered) => "admit acknowledge dead_lettered",
        Admission::Acknowledge(S::Claimed) => "admit acknowledge claimed",
        Admission::Acknowledge(S::Superseded) => "admit acknowledge superseded",
        Admission::Acknowledge(S::Held) => "admit acknowledge held",
        Admission::RepeatHandOff(S::Final) => "admit repeat final",
        Admission::RepeatHandOff(S::DeadLettered) => "admit repeat dead_lettered",
        Admission::RepeatHandOff(S::Superseded) => "admit repeat superseded",
        Admission::RepeatHandOff(S::Claimed | S::Held) => "admit repeat claimed, repeat held",
        Admission::Leave(Left::OwnClaim { .. }) => "admit leave own_claim",
        Admission::Leave(Left::TimeShort) => "admit leave time_short",
        Admission::SettleInterrupted => "admit settle_interrupted",
        Admission::End(Ending::Expired) => "admit end expired",
        Admission::End(Ending::DeadLettered(DeadLetterReason::HorizonReached)) => "admit end horizon_reached",
        Admission::End(Ending::DeadLettered(DeadLetterReason::DestinationRemoved)) => {
            "admit end destination_removed"
        }
        Admission::End(Ending::DeadLettered(_)) => "admit end attempts_exhausted",
        Admission::Hold(HoldReason::Paused) => "admit hold paused",
        Admission::Hold(HoldReason::Quarantine) => "admit hold quarantine",
        Admission::Hold(HoldReason::Gate) => "admit hold gate",
        Admission::Hold(HoldReason::Suspended) => "admit hold suspended",
        Admission::Hold(HoldReason::RunStopped) => "admit hold run_stopped",
        Admission::Hold(HoldReason::Budget) => "admit hold budget",
        Admission::Lift => "admit lift",
        Admission::Wait => "admit wait",
        Admission::Claim { .. } => "admit claim",
    }
}

/// A write's name, read from what it changed.
pub(super) fn write(write: &Write) -> &'static str {
    let after = &write.after;
    let Some(before) = &write.before else { return "write create" };
    match (before.state, after.state) {
        (State::DeadLettered, State::Retryable) => return "write release",
        (State::DeadLettered, State::Succeeded) => return "write late over dead_lettered",
        (State::Expired, State::Succeeded) => return "write late over expired",
        (_, State::Succeeded) => {
            let own = before.claim.as_ref().is_some_and(|c| Some(&c.token) == after.settled_token.as_ref());
            return match after.disposition {
                Some(Disposition::Delivered { by_look_up: true, .. }) if own => "write settled, confirmed",
                _ if own => "write settled, delivered",
                _ => "write late over retryable",
            };
        }
        _ => {}
    }
    let claim = match (&before.claim, &after.claim) {
        (None, Some(_)) => return "write claim",
        (Some(claim), None) => claim,
        _ => return unclaimed(before.state != after.state, write),
    };
    if after.attempts_made == before.attempts_made {
        return "write not_sent";
    }
    let is_own = Some(&claim.token) == after.settled_token.as_ref();
    use DeadLetterReason as R;
    match (is_own, after.state, after.dead_letter_reason()) {
        (true, State::Expired, _) => "write settled, expired",
        (true, _, None) => "write settled, retries",
        (true, _, Some(R::AttemptsExhausted)) => "write settled, exhausted",
        (true, _, Some(R::HorizonReached)) => "write settled, horizon",
        (true, _, Some(R::RetryAfterPastDeadline)) => "write settled, retry_after_past_deadline",
        (true, _, Some(R::AmbiguousOutcome)) => "write settled, ambiguous",
        (true, _, Some(R::Permanent(_) | R::DestinationRemoved | R::PayloadInvalid)) => {
            "write settled, permanent"
        }
        (false, State::Retryable, _) => "write interrupted, retries",
        (false, ..) => "write interrupted, ends",
    }
}

fn unclaimed(changes_state: bool, write: &Write) -> &'static str {
    let (Some(before), after) = (&write.before, &write.after) else { return "write create" };
    match (after.state, after.dead_letter_reason()) {
        (State::Expired, _) if changes_state => "write end expired",
        (_, Some(DeadLetterReason::DestinationRemoved)) if changes_state => "write end destination_removed",
        (_, Some(_)) if changes_state => "write end horizon_reached",
        _ if after.dlq_told && !before.dlq_told => "write told",
        _ if is_of_budget(after) && before.hold != after.hold => "write hold, budget",
        _ if after.hold.is_some() && before.hold != after.hold => "write hold",
        _ if after.hold.is_none() && is_of_budget(before) => "write lift, budget",
        _ if after.hold.is_none() && before.hold.is_some() => "write lift",
        _ => "write looked",
    }
}

fn is_of_budget(record: &Record) -> bool {
    record.hold.as_ref().is_some_and(|held| held.reason == HoldReason::Budget)
}
