//! Somebody always owes the next step: where no message was lost, no delivery waits for a rescue.
//!
//! This is the rule behind the admission table. A delivery is carried by the copy that its record
//! works for, by a wake-up for its attempt and due time, by its hold, or by a look that comes
//! before it is due. Only what is about to be sent when its writer dies waits for the reconciler.

use waybill_domain::delivery::{Record, State};
use waybill_domain::identity::MessageId;

use super::{Auditor, Broken, Ward};

impl Auditor {
    pub(super) fn check_carried(&self) -> Result<(), Broken> {
        for (key, ward) in &self.wards {
            let is_carried = self.world.ledger.inspect(key, |record| self.is_carried(record, ward));
            if is_carried == Some(false) {
                return Err(format!("{}: nobody owes its next step, and no message was lost", ward.name));
            }
        }
        Ok(())
    }

    fn is_carried(&self, record: &Record, ward: &Ward) -> bool {
        let by_copy = |copy: Option<&MessageId>| {
            copy.is_some_and(|id| self.is_alive(id) || ward.orphaned_by.as_ref() == Some(id))
        };
        match record.state {
            State::Succeeded => true,
            State::DeadLettered | State::Expired => {
                record.dlq_told || ward.is_excused || by_copy(record.copy.as_ref())
            }
            State::Pending | State::Retryable => match &record.claim {
                Some(claim) => by_copy(Some(&claim.message_id)),
                None => {
                    record.hold.is_some()
                        || ward.is_excused
                        || record.look_at.is_some_and(|at| at <= record.due_at)
                        || by_copy(record.copy.as_ref())
                        || self.has_wake_up(record, ward)
                }
            },
        }
    }

    fn has_wake_up(&self, record: &Record, ward: &Ward) -> bool {
        let next = record.next_attempt();
        ward.messages.iter().any(|m| m.attempt == next && m.due_at == record.due_at && self.is_alive(&m.id))
    }

    /// Of two hands that hold one message (a duplicate), one may delete it because of what it read
    /// before the other made the record work for it. Nothing can make a deletion conditional: here
    /// the reconciler helps, and only here.
    pub(super) fn excuse_an_older_view(&mut self, deleted: &MessageId) {
        for (key, ward) in &mut self.wards {
            let view = self.chronicle.view_of(&self.moving, key);
            let is_older = self.world.ledger.inspect(key, |record| {
                let works_for = record.claim.as_ref().map(|claim| &claim.message_id).or(record.copy.as_ref());
                works_for == Some(deleted) && view.is_some_and(|view| view < ward.works_since)
            });
            if is_older == Some(true) {
                ward.orphaned_by = Some(deleted.clone());
                self.chronicle.count("seen deleted on an older view");
            }
        }
    }

    /// In the queue, or taken from it by a fault.
    fn is_alive(&self, id: &MessageId) -> bool {
        self.lost.contains(id) || self.world.queue.holds(id)
    }
}
