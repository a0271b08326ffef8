//! Once the faults have stopped and everything is quiet: everything that was accepted has ended.

use waybill_domain::delivery::{Record, State};
use waybill_domain::destination::OnAmbiguous;
use waybill_domain::ending::Disposition;
use waybill_domain::envelope::{Decoded, decode};

use super::{Auditor, Broken};

impl Auditor {
    /// Looks at what is left.
    pub fn at_the_end(&self) -> Result<(), Broken> {
        for (key, ward) in &self.wards {
            match self.world.ledger.peek(key) {
                Some(record) => self
                    .check_end(&record, ward.is_letter_lost)
                    .map_err(|what| format!("{}: {what}", ward.name))?,
                None if ward.is_accepted => return Err(format!("{}: accepted and lost", ward.name)),
                None => {}
            }
        }
        self.check_orders_at_the_end()?;
        let spare = self.most_spare_wake_ups();
        if spare > Self::MOST_SPARE_WAKE_UPS {
            return Err(format!("{spare} wake-ups beyond one per request"));
        }
        let messages = self.world.queue.messages();
        if !messages.is_empty() {
            return Err(format!("the queue is not empty at the end: {messages:?}"));
        }
        let bodies = self.world.queue.dead_letters();
        let unread = bodies.iter().filter(|b| matches!(decode(&b.body), Decoded::Undecodable(_))).count();
        if unread < self.undecodable {
            return Err(format!("{unread} of {} unreadable bodies are in the DLQ", self.undecodable));
        }
        Ok(())
    }

    fn check_end(&self, record: &Record, is_letter_lost: bool) -> Result<(), Broken> {
        let key = record.delivery.key();
        if record.state.is_open() {
            return Err(format!("still {} at the end, due {}", record.state, record.due_at));
        }
        if record.claim.is_some() || record.hold.is_some() {
            return Err("ended with a claim or a hold".to_owned());
        }
        let requests = self.world.recipient.requests();
        let of_this = requests.iter().filter(|request| request.delivery_id == key.delivery_id);
        let sent = of_this.map(|request| request.attempt.get()).max().unwrap_or(0);
        if record.attempts_made < sent {
            return Err(format!("attempt {sent} was sent, and {} are counted", record.attempts_made));
        }
        let config = self.world.config();
        let destination = config.destinations.get(&record.delivery.destination);
        let is_asked = destination.is_some_and(|to| to.on_ambiguous == OnAmbiguous::Query);
        if is_asked && self.world.recipient.applications(&key.delivery_id) > 1 {
            return Err("applied twice, although the recipient can be asked".to_owned());
        }
        if record.look_at.is_some() {
            return Err("ended, and still to be looked after".to_owned());
        }
        if matches!(record.disposition, Some(Disposition::Closed(_) | Disposition::Resolved(_))) {
            // A person ended it: nothing is owed to anybody.
            return match record.ended_by.is_some() {
                true => Ok(()),
                false => Err("ended by nobody's order".to_owned()),
            };
        }
        if record.state == State::Succeeded {
            let effects = self.world.recipient.effects(&key.delivery_id);
            return if effects == 1 { Ok(()) } else { Err("succeeded without an effect".to_owned()) };
        }
        let is_its_letter = |body: &str| match decode(body) {
            Decoded::DeadLetter(letter) => letter.facts.key() == key,
            _ => false,
        };
        let bodies = self.world.queue.dead_letters();
        let is_there = is_letter_lost || bodies.iter().any(|buried| is_its_letter(&buried.body));
        if !record.dlq_told || !is_there {
            return Err(format!("{} and not in the DLQ (told: {})", record.state, record.dlq_told));
        }
        Ok(())
    }
}
