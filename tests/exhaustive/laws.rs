//! What must hold at every write, at every request, in every state, and where nothing happens any more.

use waybill_domain::delivery::{Claim, Record, State as Stands};
use waybill_domain::ending::Disposition;

use crate::ground::Ground;
use crate::state::{Broken, Lies, State};
use crate::store::works_for;

impl State {
    /// One live claim at most, attempts within the budget, final states for good.
    pub(crate) fn check_write(&self, _: &Ground, before: &Record, after: &Record) -> Result<(), Broken> {
        let broken = |what: &str| Err(what.to_owned());
        if !is_legal(before, after) {
            return Err(format!("{} became {}", before.state, after.state));
        }
        if after.attempts_made > after.attempt_limit {
            return Err(format!("{} attempts of {}", after.attempts_made, after.attempt_limit));
        }
        if after.attempts_made < before.attempts_made || after.attempts_made > before.attempts_made + 1 {
            return Err(format!("attempts went from {} to {}", before.attempts_made, after.attempts_made));
        }
        match (&before.claim, &after.claim) {
            (None, Some(_)) if before.hold.is_some() => broken("claimed while held"),
            (None, Some(_)) if before.due_at > self.now => broken("claimed before it was due"),
            (Some(old), Some(new)) if old.token != new.token => broken("two claims at once"),
            (Some(old), None) => {
                let is_own = after.settled_token.as_ref() == Some(&old.token);
                match is_own || is_late(after) || !old.is_live(self.now) {
                    true => Ok(()),
                    false => broken("a live claim was ended by somebody else"),
                }
            }
            _ => Ok(()),
        }
    }

    /// A request leaves only under a live claim of its sender's own, in time, each number once.
    pub(crate) fn check_request(&self, ground: &Ground, n: usize, own: &Claim) -> Result<(), Broken> {
        let record = ground.record(self.record);
        if record.delivery.deadline.is_some_and(|deadline| self.now >= deadline) {
            return Err(format!("w{n} sends at or after the deadline"));
        }
        if self.sent & (1 << own.attempt.get()) != 0 {
            return Err(format!("w{n} sends attempt {} a second time", own.attempt));
        }
        if record.state == Stands::Succeeded && is_late(record) {
            // A late acknowledgement ended it while this claim was about to send: nothing can recall it.
            return Ok(());
        }
        match &record.claim {
            Some(claim) if claim.token == own.token && claim.is_live(self.now) => Ok(()),
            _ => Err(format!("w{n} sends without a live claim of its own")),
        }
    }

    /// Who must now be trusted to send: nobody but the reconciler, if the writer dies and no message
    /// brought it; or a message that was deleted while another hand still held a duplicate of it.
    pub(crate) fn note_write(&mut self, _: &Ground, after: &Record, by_worker: bool) {
        self.ghost.is_excused = !by_worker && !after.dlq_told;
        if by_worker {
            self.ghost.works_since = after.revision;
            let gone = works_for(after).filter(|id| self.lies(*id) == Lies::Deleted);
            self.ghost.orphaned_by = gone;
        }
    }

    /// Somebody owes the next step: where no message was lost, nothing waits for a rescue.
    pub(crate) fn check_state(&self, ground: &Ground) -> Result<(), Broken> {
        let record = ground.record(self.record);
        let is_carried = match record.state {
            Stands::Succeeded => true,
            Stands::DeadLettered | Stands::Expired => {
                record.dlq_told || self.ghost.is_excused || self.is_by_copy(record)
            }
            Stands::Pending | Stands::Retryable => match &record.claim {
                Some(_) => self.is_by_copy(record),
                None => {
                    record.hold.is_some()
                        || self.ghost.is_excused
                        || record.look_at.is_some_and(|at| at <= record.due_at)
                        || self.is_by_copy(record)
                        || self.has_wake_up(record)
                }
            },
        };
        let is_looked_after = !record.state.is_open() || record.hold.is_some() || record.look_at.is_some();
        match (is_carried, is_looked_after) {
            (true, true) => Ok(()),
            (false, _) => Err("nobody owes its next step, and no message was lost".to_owned()),
            (_, false) => Err("it is open and stands in no index".to_owned()),
        }
    }

    fn is_by_copy(&self, record: &Record) -> bool {
        works_for(record).is_some_and(|id| self.is_alive(id) || self.ghost.orphaned_by == Some(id))
    }

    /// In the queue, about to be delivered again, or taken by a fault.
    fn is_alive(&self, id: u8) -> bool {
        self.messages.iter().any(|m| m.id == id && (m.place != Lies::Deleted || m.is_doubled))
    }

    fn has_wake_up(&self, record: &Record) -> bool {
        let next = record.next_attempt().get();
        self.messages.iter().any(|m| self.is_alive(m.id) && m.attempt == next && m.due_at == record.due_at)
    }

    /// Nothing can happen any more: it has ended, the DLQ knows, and nothing is left in the queue. Without
    /// a reconciler, what only that repairs may be left.
    pub(crate) fn check_end(&self, ground: &Ground) -> Result<(), Broken> {
        let record = ground.record(self.record);
        let is_left = self.ghost.is_excused
            || self.ghost.orphaned_by.is_some()
            || self.messages.iter().any(|message| message.place == Lies::Lost)
            || record.hold.is_some();
        if !self.left.reconciles && is_left {
            return Ok(());
        }
        if record.state.is_open() {
            return Err(format!("it is {} for ever", record.state));
        }
        if record.claim.is_some() || record.hold.is_some() || record.look_at.is_some() {
            return Err("it ended with a claim, a hold or a look".to_owned());
        }
        if self.messages.iter().any(|message| message.place == Lies::Here) {
            return Err("messages are left".to_owned());
        }
        match record.state {
            Stands::Succeeded if !self.is_applied => Err("succeeded without an effect".to_owned()),
            Stands::DeadLettered | Stands::Expired if !record.dlq_told || !self.is_buried => {
                Err("ended, and the DLQ was not told".to_owned())
            }
            _ => Ok(()),
        }
    }
}

fn is_late(record: &Record) -> bool {
    matches!(record.disposition, Some(Disposition::Delivered { late: true, .. }))
}

fn is_legal(before: &Record, after: &Record) -> bool {
    use Stands as S;
    match (before.state, after.state) {
        (S::Pending, S::Succeeded) => !is_late(after),
        (S::DeadLettered | S::Expired, S::Succeeded) => is_late(after),
        (S::Pending, S::Pending | S::Retryable)
        | (S::Retryable, S::Retryable | S::Succeeded)
        | (S::Pending | S::Retryable | S::DeadLettered, S::Expired)
        | (S::Pending | S::Retryable, S::DeadLettered) => true,
        // By a release, which leaves its mark.
        (S::DeadLettered, S::Retryable) => after.redrives == before.redrives + 1,
        (S::DeadLettered, S::DeadLettered) | (S::Expired, S::Expired) => {
            after.disposition == before.disposition
        }
        _ => false,
    }
}
