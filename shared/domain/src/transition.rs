//! The legal transitions of a record, one constructor each. There is no other way to a [`Change`].
//!
//! ```text
//! pending   -> succeeded | retryable | dead_lettered | expired
//! retryable -> succeeded | retryable | dead_lettered | expired
//! dead_lettered -> retryable                  by a release, and only so
//! dead_lettered -> succeeded                  by a person who knows that its effect stands
//! dead_lettered -> expired                    by a redrive that comes after its deadline
//! retryable | dead_lettered | expired -> succeeded    by a late acknowledgement, and only so
//! ```
//!
//! Writes within a state: claim, not sent, hold, lift, look, told, close.

mod of_dead_letters;

use thiserror::Error;

use crate::attempt::{Excerpt, Next, NotSent};
use crate::delivery::{Change, Claim, Delivery, LastFailure, Record, RecordData, State};
use crate::ending::{DeadLetterReason, Disposition, Ending};
use crate::hold::Held;
use crate::identity::{AttemptNumber, ConfigRevision, MessageId, WriteToken};
use crate::newer::Newer;
use crate::outcome::Applied;
use crate::policy::Policy;
use crate::repair::{LookRules, next_look};
use crate::time::{DurationMs, TimeMs};

/// A transition that the record does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a {from} delivery cannot become {to}: {why}")]
pub struct IllegalTransition {
    /// The state it is in.
    pub from: State,
    /// What was asked for.
    pub to: &'static str,
    /// Why not.
    pub why: &'static str,
}

/// Who writes, on whose behalf, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// The queue copy that is worked for; `None` for writers that no message woke.
    pub message_id: Option<MessageId>,
    /// Recognises this write: a claim's token when settling the claim.
    pub token: WriteToken,
    /// The wall clock.
    pub now: TimeMs,
}

/// How the claim came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimEnd {
    /// Its own worker settles it.
    Own,
    /// It lapsed, and somebody else found it.
    Lapsed,
}

impl Record {
    /// A new delivery: pending, due at `not_before` or at once. Automation's horizon counts from
    /// when it may first be sent.
    pub fn new(
        delivery: Delivery,
        policy: &Policy,
        config_revision: ConfigRevision,
        rules: &LookRules,
    ) -> Self {
        let due_at =
            delivery.not_before.map_or(delivery.first_queued_at, |at| at.max(delivery.first_queued_at));
        let now = delivery.first_queued_at;
        let mut data = RecordData {
            config_revision,
            revision: 0,
            state: State::Pending,
            due_at,
            attempts_made: 0,
            attempts_before: 0,
            attempt_limit: policy.max_attempts,
            horizon_at: due_at.plus(policy.horizon),
            redrives: 0,
            redrive_run: None,
            last_failure: None,
            disposition: None,
            ended_at: None,
            acknowledged_after: None,
            ended_by: None,
            result: None,
            claim: None,
            hold: None,
            copy: None,
            settled_token: None,
            dlq_told: false,
            look_at: None,
            looks: 0,
            newer: Newer::default(),
            delivery,
        };
        data.look_at = next_look(&data, rules, now);
        Record::from_data(data)
    }

    /// A new delivery whose payload its destination's schema refuses, with nobody there to be told:
    /// it ends as it begins, without an attempt, and the DLQ is owed its letter.
    pub fn refused(
        delivery: Delivery,
        policy: &Policy,
        config_revision: ConfigRevision,
        rules: &LookRules,
    ) -> Self {
        let now = delivery.first_queued_at;
        let mut data = RecordData::clone(&Record::new(delivery, policy, config_revision, rules));
        end_as(&mut data, Ending::DeadLettered(DeadLetterReason::PayloadInvalid), now);
        data.look_at = next_look(&data, rules, now);
        Record::from_data(data)
    }

    /// Leases the next attempt to the worker of one queue copy. Touches no index key.
    pub fn claim(
        &self,
        message_id: MessageId,
        token: WriteToken,
        now: TimeMs,
        timeout: DurationMs,
        config_revision: ConfigRevision,
    ) -> Result<Change, IllegalTransition> {
        self.require_open("claimed")?;
        self.require(self.claim.is_none(), "claimed", "it has a claim that nobody settled")?;
        self.require(self.attempts_made < self.attempt_limit, "claimed", "its attempts are used up")?;
        let mut after = RecordData::clone(self);
        after.copy = Some(message_id.clone());
        after.claim = Some(Claim {
            attempt: self.next_attempt(),
            token,
            message_id,
            claimed_at: now,
            lease_until: now.plus(timeout).plus(Claim::MARGIN),
            config_revision,
        });
        Ok(Change::new(self, after))
    }

    /// The recipient acknowledged the claimed attempt.
    pub fn settle_delivered(
        &self,
        by: &Writer,
        result: Option<Excerpt>,
    ) -> Result<Change, IllegalTransition> {
        self.settle_success(by, false, result)
    }

    /// The recipient answered a look-up, made as the claimed attempt, that it has applied an earlier
    /// request.
    pub fn settle_confirmed(
        &self,
        by: &Writer,
        result: Option<Excerpt>,
    ) -> Result<Change, IllegalTransition> {
        let doubted = self.last_failure.as_ref().is_some_and(|last| last.failure.applied == Applied::Unknown);
        self.require(doubted, "succeeded by a look-up", "no attempt of it is in doubt")?;
        self.settle_success(by, true, result)
    }

    fn settle_success(
        &self,
        by: &Writer,
        by_look_up: bool,
        result: Option<Excerpt>,
    ) -> Result<Change, IllegalTransition> {
        let claim = self.claim_ending("succeeded", by, ClaimEnd::Own)?;
        let mut after = self.settled(by);
        after.attempts_made = claim.attempt.get();
        after.config_revision = claim.config_revision.clone();
        after.state = State::Succeeded;
        after.disposition = Some(Disposition::Delivered { attempt: claim.attempt, late: false, by_look_up });
        after.ended_at = Some(by.now);
        after.acknowledged_after = (!by_look_up).then(|| by.now.since(claim.claimed_at));
        after.result = result;
        after.look_at = None;
        Ok(Change::new(self, after))
    }

    /// The claimed attempt failed, or its claim lapsed: `next` says what follows.
    pub fn settle_failed(
        &self,
        by: &Writer,
        end: ClaimEnd,
        failure: LastFailure,
        next: &Next,
        rules: &LookRules,
    ) -> Result<Change, IllegalTransition> {
        let claim = self.claim_ending("settled", by, end)?;
        let mut after = self.settled(by);
        after.attempts_made = claim.attempt.get();
        after.config_revision = claim.config_revision.clone();
        after.last_failure = Some(failure);
        match next {
            Next::Retry { due_at, .. } => {
                after.state = State::Retryable;
                after.due_at = *due_at;
            }
            Next::End(ending) => end_as(&mut after, *ending, by.now),
        }
        after.look_at = next_look(&after, rules, by.now);
        Ok(Change::new(self, after))
    }

    /// Nothing was sent under the claim: the attempt does not count. The due time moves, so that
    /// the copy that brought the worker here never claims again beside the one handed off now.
    pub fn settle_not_sent(
        &self,
        by: &Writer,
        why: NotSent,
        rules: &LookRules,
    ) -> Result<Change, IllegalTransition> {
        self.claim_ending("unclaimed", by, ClaimEnd::Own)?;
        let mut after = self.settled(by);
        after.due_at = by.now.plus(why.pause()).max(self.due_at.plus(DurationMs::from_ms(1)));
        after.look_at = next_look(&after, rules, by.now);
        Ok(Change::new(self, after))
    }

    /// Ends an open delivery on which nobody is at work.
    pub fn end(&self, by: &Writer, ending: Ending, rules: &LookRules) -> Result<Change, IllegalTransition> {
        let to = ending.state().as_str();
        self.require_open(to)?;
        self.require(self.claim.is_none(), to, "it has a claim that nobody settled")?;
        let mut after = self.settled(by);
        end_as(&mut after, ending, by.now);
        after.look_at = next_look(&after, rules, by.now);
        Ok(Change::new(self, after))
    }

    /// Keeps an open delivery from going, until the hold is lifted. State and due time stay.
    pub fn hold(&self, by: &Writer, held: Held) -> Result<Change, IllegalTransition> {
        self.require_open("held")?;
        self.require(self.claim.is_none(), "held", "it has a claim that nobody settled")?;
        let mut after = self.settled(by);
        after.hold = Some(held);
        after.look_at = None;
        Ok(Change::new(self, after))
    }

    /// Lets a held delivery go: back into the open index before its wake-up is sent.
    pub fn lift(&self, now: TimeMs, rules: &LookRules) -> Result<Change, IllegalTransition> {
        self.lift_not_before(self.due_at, now, rules)
    }

    /// The same, to be sent at `not_before` at the earliest: where many are lifted at once that were to
    /// go one after the other.
    pub fn lift_not_before(
        &self,
        not_before: TimeMs,
        now: TimeMs,
        rules: &LookRules,
    ) -> Result<Change, IllegalTransition> {
        self.require_open("lifted")?;
        self.require(self.hold.is_some(), "lifted", "nothing holds it")?;
        let mut after = RecordData::clone(self);
        after.hold = None;
        after.due_at = self.due_at.max(not_before);
        after.looks = 0;
        after.look_at = next_look(&after, rules, now);
        Ok(Change::new(self, after))
    }

    /// Moves the next look forward with doubled patience, before anything is sent because of this one.
    pub fn looked(&self, now: TimeMs, rules: &LookRules) -> Result<Change, IllegalTransition> {
        self.require(self.look_at.is_some(), "looked at", "it stands in no index of things to look at")?;
        let mut after = RecordData::clone(self);
        after.looks = self.looks.saturating_add(1);
        after.look_at = next_look(&after, rules, now);
        Ok(Change::new(self, after))
    }

    /// The DLQ was told of the ending: nothing is left to be looked after.
    pub fn told(&self) -> Result<Change, IllegalTransition> {
        let ended = matches!(self.state, State::DeadLettered | State::Expired);
        self.require(ended, "told to the DLQ", "only a dead letter or an expired delivery is")?;
        let mut after = RecordData::clone(self);
        after.dlq_told = true;
        after.look_at = None;
        Ok(Change::new(self, after))
    }

    /// The acknowledgement of a request that left in time, arriving after its claim was lost. The
    /// effect is real and nobody must replay it, so it overrules what was concluded without it.
    pub fn acknowledged_late(
        &self,
        by: &Writer,
        attempt: AttemptNumber,
        result: Option<Excerpt>,
    ) -> Result<Change, IllegalTransition> {
        self.late_success(by, attempt, false, result)
    }

    /// The same where a look-up's answer came after its claim was lost.
    pub fn confirmed_late(
        &self,
        by: &Writer,
        attempt: AttemptNumber,
        result: Option<Excerpt>,
    ) -> Result<Change, IllegalTransition> {
        self.late_success(by, attempt, true, result)
    }

    fn late_success(
        &self,
        by: &Writer,
        attempt: AttemptNumber,
        by_look_up: bool,
        result: Option<Excerpt>,
    ) -> Result<Change, IllegalTransition> {
        let overruled = matches!(self.state, State::Retryable | State::DeadLettered | State::Expired);
        self.require(overruled, "succeeded", "a late acknowledgement overrules only a conclusion")?;
        let mut after = self.settled(by);
        if let Some(claim) = &self.claim {
            // Another worker may be sending the next one: it counts, and nobody settles it any more.
            after.attempts_made = claim.attempt.get();
        }
        after.state = State::Succeeded;
        after.disposition = Some(Disposition::Delivered { attempt, late: true, by_look_up });
        after.ended_at = Some(by.now);
        after.result = result;
        after.look_at = None;
        Ok(Change::new(self, after))
    }

    /// What every consumer write has in common: it keeps the copy that it worked for and its
    /// token, ends claim and hold, and is progress.
    fn settled(&self, by: &Writer) -> RecordData {
        let mut after = RecordData::clone(self);
        if let Some(message_id) = &by.message_id {
            after.copy = Some(message_id.clone());
        }
        after.settled_token = Some(by.token.clone());
        after.claim = None;
        after.hold = None;
        after.looks = 0;
        after
    }

    fn claim_ending(
        &self,
        to: &'static str,
        by: &Writer,
        end: ClaimEnd,
    ) -> Result<&Claim, IllegalTransition> {
        self.require_open(to)?;
        let Some(claim) = &self.claim else {
            return Err(self.illegal(to, "no attempt is being made"));
        };
        match end {
            ClaimEnd::Own => self.require(claim.token == by.token, to, "the claim is somebody else's")?,
            ClaimEnd::Lapsed => self.require(!claim.is_live(by.now), to, "its claim is alive")?,
        }
        Ok(claim)
    }

    fn require_open(&self, to: &'static str) -> Result<(), IllegalTransition> {
        self.require(self.state.is_open(), to, "it is not open")
    }

    fn require(&self, holds: bool, to: &'static str, why: &'static str) -> Result<(), IllegalTransition> {
        if holds { Ok(()) } else { Err(self.illegal(to, why)) }
    }

    fn illegal(&self, to: &'static str, why: &'static str) -> IllegalTransition {
        IllegalTransition { from: self.state, to, why }
    }
}

fn end_as(after: &mut RecordData, ending: Ending, now: TimeMs) {
    after.state = ending.state();
    after.disposition = Some(Disposition::Ended(ending));
    after.ended_at = Some(now);
    after.dlq_told = false;
}
