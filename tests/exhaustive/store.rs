//! What everybody does to the stores: one conditional write, one message sent, one deleted.

use waybill_domain::delivery::Record;
use waybill_domain::handoff::{HandOff, hand_off};
use waybill_domain::time::DurationMs;

use crate::ground::{Ground, message_id};
use crate::scopes::Plant;
use crate::state::{Broken, Id, Lies, Message, State, T0};

/// What a conditional write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Landed(Id),
    Lost(Id),
}

/// What is left of a hand-off.
pub(crate) enum Handed {
    Done,
    /// The DLQ was told, and the record is to say so.
    Told,
}

impl State {
    /// Makes the change from `base` to `after` if the record is still as `base` says. `is_repeated`: the
    /// store's client lost the answer and asked again, so the writer is told that it lost to itself.
    pub(crate) fn write(
        &mut self,
        ground: &Ground,
        base: Id,
        after: Id,
        by_worker: bool,
        is_repeated: bool,
    ) -> Result<Written, Broken> {
        let (stored, expected) = (ground.record(self.record), ground.record(base));
        let is_as_expected = stored.state == expected.state
            && (stored.revision == expected.revision || ground.plant == Some(Plant::RevisionIsNotCompared));
        if !is_as_expected {
            return Ok(Written::Lost(self.record));
        }
        self.check_write(ground, stored, ground.record(after))?;
        self.record = after;
        self.note_write(ground, ground.record(after), by_worker);
        Ok(match is_repeated {
            true => Written::Lost(after),
            false => Written::Landed(after),
        })
    }

    /// Sends a wake-up for the next attempt of `record`.
    pub(crate) fn send(&mut self, ground: &Ground, record: Id, delay: DurationMs) {
        let record = ground.record(record);
        // Identifiers are used again once nothing refers to them, so that more states are the same.
        let id = self.free_id(ground.record(self.record));
        let message = Message {
            id,
            attempt: record.next_attempt().get(),
            due_at: record.due_at,
            visible_at: self.now.plus(DurationMs::from_secs(delay.whole_secs_up())),
            is_doubled: false,
            was_received: false,
            place: Lies::Here,
        };
        self.messages.push(message);
        let stored = ground.record(self.record);
        self.ghost.is_excused &= !(stored.state.is_open() && ground.wakeup(&message).is_for(stored));
    }

    /// Tells the queue what `record` says.
    pub(crate) fn hand_off(&mut self, ground: &Ground, record: Id) -> Handed {
        match hand_off(ground.record(record), ground.look.queue_window, self.now) {
            HandOff::Nothing | HandOff::Parked => Handed::Done,
            HandOff::WakeUp { delay, .. } => {
                self.send(ground, record, delay);
                Handed::Done
            }
            HandOff::TellDlq(_) => {
                self.is_buried = true;
                Handed::Told
            }
        }
    }

    /// Marks the ending of `of` as told. `Some` where the record is another by now, to be tried again on.
    pub(crate) fn tell(
        &mut self,
        ground: &mut Ground,
        of: Id,
        current: Id,
        is_repeated: bool,
    ) -> Result<Option<Id>, Broken> {
        let (of, now) = (ground.record(of), ground.record(current));
        let is_same_ending = now.disposition == of.disposition && now.ended_at == of.ended_at;
        if !is_same_ending || now.dlq_told {
            return Ok(None);
        }
        let Ok(change) = now.told() else { return Ok(None) };
        let after = ground.keep(change.into_after());
        Ok(match self.write(ground, current, after, false, is_repeated)? {
            Written::Landed(_) => None,
            Written::Lost(stored) => Some(stored),
        })
    }

    pub(crate) fn message(&self, id: u8) -> &Message {
        self.messages.iter().find(|message| message.id == id).expect("messages are kept")
    }

    pub(crate) fn message_mut(&mut self, id: u8) -> &mut Message {
        self.messages.iter_mut().find(|message| message.id == id).expect("messages are kept")
    }

    /// Deletes a message, on the view of whoever deletes it.
    pub(crate) fn delete(&mut self, ground: &Ground, id: u8, view: u64) {
        let message = self.message_mut(id);
        if message.place == Lies::Here {
            message.place = Lies::Deleted;
        }
        message.is_doubled = false;
        if works_for(ground.record(self.record)) == Some(id) && view < self.ghost.works_since {
            self.ghost.orphaned_by = Some(id);
        }
    }

    /// Where a message is; one that is not kept any more was deleted.
    pub(crate) fn lies(&self, id: u8) -> Lies {
        self.messages.iter().find(|message| message.id == id).map_or(Lies::Deleted, |message| message.place)
    }

    fn free_id(&self, stored: &Record) -> u8 {
        let is_taken = |id: u8| self.messages.iter().any(|message| message.id == id) || refers(stored, id);
        (1..=u8::MAX).find(|id| !is_taken(*id)).expect("a delivery has few messages")
    }

    /// Forgets differences that make none: what nobody can receive, read or compare any more.
    pub(crate) fn tidy(&mut self, ground: &Ground) {
        let stored = ground.record(self.record);
        let works_since = self.ghost.works_since;
        let keeps_count = ground.plant == Some(Plant::FirstCopyOwesNothing);
        let mut in_hand = [0_u8; 2];
        for (worker, message) in self.workers.iter_mut().zip(&mut in_hand) {
            if let Some(errand) = worker.errand() {
                errand.view = if errand.view < works_since { 0 } else { works_since };
                errand.is_first &= keeps_count;
                *message = errand.message;
            }
        }
        let can_return = self.left.duplicates > 0;
        let is_of_use = |message: &Message| {
            let is_known = in_hand.contains(&message.id) || refers(stored, message.id);
            message.place != Lies::Deleted || message.is_doubled || can_return || is_known
        };
        self.messages.retain(is_of_use);
        for message in &mut self.messages {
            message.was_received &= keeps_count;
            if message.place != Lies::Here && !message.is_doubled {
                message.visible_at = T0;
                if message.place == Lies::Deleted && !can_return {
                    (message.attempt, message.due_at) = (1, T0);
                }
            }
        }
        self.messages.sort_unstable_by_key(|message| message.id);
        let claim = stored.claim.as_ref().map(|claim| &claim.token);
        self.evidence.retain(|id| Some(&ground.attempt(*id).token) == claim);
    }
}

fn refers(record: &Record, id: u8) -> bool {
    let id = message_id(id);
    record.copy.as_ref() == Some(&id) || record.claim.as_ref().is_some_and(|claim| claim.message_id == id)
}

/// The message that a record works for.
pub(crate) fn works_for(record: &Record) -> Option<u8> {
    let id = record.claim.as_ref().map(|claim| &claim.message_id).or(record.copy.as_ref())?;
    id.as_str().strip_prefix('m')?.parse().ok()
}
