//! Only legal writes: states, claims, attempts, evidence, times.

use waybill_domain::attempt::Next;
use waybill_domain::delivery::{Claim, Record, State};
use waybill_domain::ending::{Disposition, Ending};
use waybill_domain::time::DurationMs;

use crate::memory::Write;

use super::{Auditor, Broken, SKEW};

impl Auditor {
    pub(super) fn check_write(&mut self, write: &Write) -> Result<(), Broken> {
        let after = &write.after;
        let name = &after.delivery.event_id;
        let named = |what: String| format!("{name}: {what}");
        let broken = |what: String| Err(named(what));
        let Some(before) = &write.before else {
            self.note_write(after, false);
            return Ok(());
        };
        if after.revision != before.revision + 1 {
            let (stored, base) = (before.revision, after.revision);
            return broken(format!("revision {base} was written over revision {stored}"));
        }
        if before.delivery != after.delivery {
            return broken("what was asked for has changed".to_owned());
        }
        if !is_legal(before, after) {
            return broken(format!("{} became {}", before.state, after.state));
        }
        if before.state == State::Succeeded {
            return broken("a success was written to".to_owned());
        }
        if after.attempts_made < before.attempts_made || after.attempts_made > before.attempts_made + 1 {
            return broken(format!("attempts went from {} to {}", before.attempts_made, after.attempts_made));
        }
        if after.attempts_made > after.attempt_limit {
            return broken(format!("{} attempts of {}", after.attempts_made, after.attempt_limit));
        }
        // A clock may have jumped back between the claim and the settle.
        if after.delivery.not_before.is_some_and(|at| after.due_at < at.minus(SKEW).minus(SKEW)) {
            return broken("due before not_before".to_owned());
        }
        self.check_claims(before, after).map_err(named)?;
        self.check_hold(before, after).map_err(named)?;
        if after.attempts_made > before.attempts_made && after.state != State::Succeeded {
            self.check_evidence(after).map_err(named)?;
        }
        self.check_expiry(before, after).map_err(named)?;
        if (before.state, after.state) == (State::DeadLettered, State::Retryable) {
            self.check_release(before, after).map_err(named)?;
        }
        if after.redrives > before.redrives
            && let Some(ward) = self.wards.get_mut(&after.delivery.key())
        {
            // A person's release overrules what the recipient asked for.
            ward.asked_until = None;
        }
        let is_automatic = after.settled_token == before.settled_token
            || after.settled_token.as_ref().is_some_and(|token| token.as_str().starts_with("reconciler"));
        // Whoever looks for what may go, or for a probe, finds, and ends, what passed its deadline while it was
        // held: for no message, as the reconciler does, so that the copy stays what it was.
        let is_found_over = !after.state.is_open() && before.hold.is_some() && after.copy == before.copy;
        // A claim, a settle by a worker, or a copy of a message: the worker has a message in hand.
        let is_by_worker = after.claim != before.claim || !(is_automatic || is_found_over);
        self.note_write(after, is_by_worker);
        Ok(())
    }

    fn check_claims(&self, before: &Record, after: &Record) -> Result<(), Broken> {
        let now = self.now();
        match (&before.claim, &after.claim) {
            (None, Some(claim)) => {
                if before.hold.is_some() {
                    return Err("claimed while held".to_owned());
                }
                self.check_held(before, claim)?;
                if before.due_at > now.plus(SKEW) {
                    return Err(format!("claimed at {now}, due at {}", before.due_at));
                }
                if claim.attempt != before.next_attempt() {
                    return Err(format!("claimed attempt {} after {}", claim.attempt, before.attempts_made));
                }
                Ok(())
            }
            (Some(old), Some(new)) if old.token != new.token => Err("two claims at once".to_owned()),
            (Some(old), None) => self.check_claim_end(old, after),
            _ => Ok(()),
        }
    }

    fn check_claim_end(&self, old: &Claim, after: &Record) -> Result<(), Broken> {
        let is_own = after.settled_token.as_ref() == Some(&old.token);
        let is_late = matches!(after.disposition, Some(Disposition::Delivered { late: true, .. }));
        let has_lapsed = old.lease_until <= self.now().plus(SKEW);
        if is_own || is_late || has_lapsed {
            return Ok(());
        }
        Err(format!("the live claim {} was ended by somebody else", old.token))
    }

    /// Evidence before the settle; and what the recipient asked for is remembered.
    fn check_evidence(&mut self, after: &Record) -> Result<(), Broken> {
        let key = after.delivery.key();
        let evidence = self.world.ledger.evidence(&key);
        let of_this: Vec<_> = evidence.iter().filter(|a| a.number.get() == after.attempts_made).collect();
        if of_this.is_empty() {
            return Err(format!("attempt {} failed and left no evidence", after.attempts_made));
        }
        let names_another = of_this.iter().all(|a| match &a.next {
            Next::Retry { due_at, .. } => *due_at != after.due_at,
            Next::End(_) => after.state == State::Retryable,
        });
        if names_another && after.state == State::Retryable {
            return Err(format!("no evidence of attempt {} names its due time", after.attempts_made));
        }
        // The evidence that was settled by, whoever settled: what a worker wrote down before it died
        // counts, and what it writes after somebody else has concluded does not.
        let settled_by = of_this.iter().filter(|a| match &a.next {
            Next::Retry { due_at, .. } => *due_at == after.due_at,
            Next::End(_) => false,
        });
        let asked =
            settled_by.filter_map(|a| a.retry_after.as_ref()?.wait.map(|wait| a.ended_at.plus(wait))).next();
        if let Some(ward) = self.wards.get_mut(&key) {
            ward.asked_until = asked;
        }
        Ok(())
    }

    fn check_expiry(&self, before: &Record, after: &Record) -> Result<(), Broken> {
        let (Some(deadline), State::Expired) = (after.delivery.deadline, after.state) else { return Ok(()) };
        let config = self.world.config();
        let policy = config.destination_of(&after.delivery).map(|destination| destination.policy);
        let minimum_window = policy.unwrap_or_default().minimum_window;
        // Where the last attempt that could be woken has failed, it is over two seconds before that (decision 3).
        let of_last = before.claim.as_ref().map_or(DurationMs::ZERO, |_| DurationMs::from_secs(2));
        let earliest = deadline.minus(minimum_window).minus(of_last).minus(SKEW);
        if before.state != State::Expired && self.now() < earliest {
            return Err(format!(
                "expired at {}, {} before its deadline",
                self.now(),
                deadline.since(self.now())
            ));
        }
        Ok(())
    }

    /// Who must now be trusted to send: nobody but the reconciler, if the writer dies and no message
    /// brought it; or a message that was deleted while another hand still held a duplicate of it.
    fn note_write(&mut self, after: &Record, is_by_worker: bool) {
        let works_for = after.claim.as_ref().map(|claim| &claim.message_id).or(after.copy.as_ref());
        let is_gone = works_for.is_some_and(|id| !self.world.queue.holds(id) && !self.lost.contains(id));
        let Some(ward) = self.wards.get_mut(&after.delivery.key()) else { return };
        ward.is_excused = !is_by_worker && !after.dlq_told;
        if is_by_worker {
            ward.works_since = after.revision;
            ward.orphaned_by = works_for.filter(|_| is_gone).cloned();
            if is_gone {
                self.chronicle.count("seen works for a message that was deleted from another hand");
            }
        }
    }
}

fn is_legal(before: &Record, after: &Record) -> bool {
    use State as S;
    let is_late = matches!(after.disposition, Some(Disposition::Delivered { late: true, .. }));
    match (before.state, after.state) {
        (S::Pending, S::Succeeded) => !is_late,
        (S::DeadLettered, S::Succeeded) => {
            is_late || matches!(after.disposition, Some(Disposition::Resolved(_)))
        }
        (S::Expired, S::Succeeded) => is_late,
        // By a run that came after its deadline.
        (S::DeadLettered, S::Expired) => after.delivery.deadline.is_some(),
        (S::Pending, S::Pending | S::Retryable)
        | (S::Retryable, S::Retryable | S::Succeeded)
        | (S::Pending | S::Retryable, S::DeadLettered | S::Expired) => true,
        // By a release, which leaves its mark.
        (S::DeadLettered, S::Retryable) => after.redrives == before.redrives + 1,
        (S::DeadLettered, S::DeadLettered) => {
            after.disposition == before.disposition
                || matches!(after.disposition, Some(Disposition::Closed(_)))
        }
        (S::Expired, S::Expired) => after.disposition == Some(Disposition::Ended(Ending::Expired)),
        _ => false,
    }
}
