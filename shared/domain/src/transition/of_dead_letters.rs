//! What can become of a dead letter: released by a run, ended by a person, or expired.

use super::{IllegalTransition, end_as};
use crate::delivery::{Change, Record, RecordData, State};
use crate::ending::{DeadLetterReason, Disposition, Ending};
use crate::order::{Decision, OrderId};
use crate::policy::Policy;
use crate::repair::{LookRules, next_look};
use crate::time::TimeMs;

impl Record {
    /// Releases a dead letter into a redrive run: same delivery ID, numbering goes on, nothing is
    /// erased; budget, backoff and horizon begin anew.
    pub fn release(
        &self,
        run: String,
        policy: &Policy,
        now: TimeMs,
        due_at: TimeMs,
        rules: &LookRules,
    ) -> Result<Change, IllegalTransition> {
        self.require_dead_letter("retryable by a release")?;
        let mut after = RecordData::clone(self);
        after.state = State::Retryable;
        after.disposition = None;
        after.ended_at = None;
        // A person may overrule the schedule, never the producer's `not_before`.
        let earliest = self.delivery.not_before.map_or(now, |at| at.max(now));
        after.due_at = due_at.max(earliest);
        after.attempts_before = self.attempts_made;
        after.attempt_limit = self.attempts_made.saturating_add(policy.max_attempts);
        after.horizon_at = after.due_at.plus(policy.horizon);
        after.redrives += 1;
        after.redrive_run = Some(run);
        after.dlq_told = false;
        after.looks = 0;
        after.look_at = next_look(&after, rules, now);
        Ok(Change::new(self, after))
    }

    /// A person ends a dead letter: closed (nothing will be done), or resolved (its effect is known to
    /// stand, so it succeeded). Either way it is none any more, and nothing is left to be looked after.
    pub fn end_by_order(
        &self,
        order: OrderId,
        decision: Decision,
        now: TimeMs,
    ) -> Result<Change, IllegalTransition> {
        let reason = self.require_dead_letter("ended by a person")?;
        let mut after = RecordData::clone(self);
        match decision {
            Decision::Close => after.disposition = Some(Disposition::Closed(reason)),
            Decision::Resolve => {
                after.state = State::Succeeded;
                after.disposition = Some(Disposition::Resolved(reason));
                after.ended_at = Some(now);
            }
        }
        after.ended_by = Some(order);
        after.look_at = None;
        Ok(Change::new(self, after))
    }

    /// A redrive finds that the deadline has passed: expired, to be told to the DLQ as that.
    pub fn expire_dead_letter(&self, now: TimeMs, rules: &LookRules) -> Result<Change, IllegalTransition> {
        self.require_dead_letter("expired")?;
        let deadline = self.delivery.deadline;
        self.require(deadline.is_some(), "expired", "it has no deadline")?;
        let mut after = RecordData::clone(self);
        end_as(&mut after, Ending::Expired, now);
        after.looks = 0;
        after.look_at = next_look(&after, rules, now);
        Ok(Change::new(self, after))
    }

    fn require_dead_letter(&self, to: &'static str) -> Result<DeadLetterReason, IllegalTransition> {
        self.dead_letter_reason().ok_or(self.illegal(to, "it is no dead letter"))
    }
}
