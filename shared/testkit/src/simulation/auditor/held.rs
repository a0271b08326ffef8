//! What is held: claimed by nobody who could know, held for nothing else, and let go when nothing keeps it back.

use waybill_domain::delivery::{Claim, Record};
use waybill_domain::hold::HoldReason;
use waybill_domain::identity::DeliveryKey;
use waybill_domain::time::{DurationMs, TimeMs};

use crate::memory::Write;

use super::{Auditor, Broken};

/// Once the faults have stopped, what nothing keeps back is let go within this time: the reconciler makes
/// dozens of rounds.
const LET_GO_WITHIN: DurationMs = DurationMs::from_secs(3600);

/// A delivery that is held.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Since when.
    pub(super) since: TimeMs,
    /// Since when nothing keeps it back.
    loose_since: Option<TimeMs>,
}

impl Auditor {
    /// What a person held, or a stopped run released, is claimed by nobody who could know.
    pub(super) fn check_held(&self, before: &Record, claim: &Claim) -> Result<(), Broken> {
        let worker = claim.token.as_str().rsplit_once('-').map_or("", |(worker, _)| worker);
        match self.view_of(worker).and_then(|view| view.keeper_of(before)) {
            Some((order, _)) => Err(format!("{worker} claims what {order} keeps")),
            None => Ok(()),
        }
    }

    /// Whoever holds something knows of what keeps it back: nothing is held for what another hold is about.
    pub(super) fn check_hold(&self, before: &Record, after: &Record) -> Result<(), Broken> {
        let Some(held) = after.hold.as_ref().filter(|_| before.hold != after.hold) else { return Ok(()) };
        let (who, destination) = (&self.moving, &after.delivery.destination);
        let Some(view) = self.view_of(who) else { return Ok(()) };
        match held.reason {
            // The destination's item says so, and not the orders.
            HoldReason::Suspended => Ok(()),
            HoldReason::Budget if view.most_at(destination).is_some() => {
                if view.is_eased(destination) {
                    self.chronicle.count("eased, held for want of room");
                }
                Ok(())
            }
            HoldReason::Budget => {
                Err(format!("{who} holds it for want of room at {destination}, which has no limit"))
            }
            reason => match view.keeper_of(before) {
                Some((_, is_eased)) => {
                    if is_eased {
                        self.chronicle.count("eased, and held for another destination");
                    }
                    Ok(())
                }
                None => Err(format!("{who} holds it as {}, and nothing keeps it", reason.as_str())),
            },
        }
    }

    /// Who is held since when.
    pub(super) fn note_held(&mut self, write: &Write) {
        let key = write.after.delivery.key();
        match (write.before.as_ref().is_some_and(is_held), is_held(&write.after)) {
            (false, true) => {
                let waiting = Waiting { since: self.now(), loose_since: None };
                self.waiting.insert(key, waiting);
            }
            (true, false) => drop(self.waiting.remove(&key)),
            _ => {}
        }
    }

    /// Once the faults have stopped, what nothing keeps back is let go soon.
    pub(super) fn check_let_go(&mut self) -> Result<(), Broken> {
        if !self.is_calm || self.waiting.is_empty() {
            return Ok(());
        }
        let (view, now) = (self.view(), self.now());
        for (key, waiting) in &mut self.waiting {
            let is_loose = self.world.ledger.inspect(key, |record| view.keeper_of(record).is_none());
            let name = self.world.ledger.inspect(key, |record| record.delivery.destination.clone());
            let is_suspended = name.and_then(|name| {
                self.world.ledger.inspect_health(&name, |health| health.suspension().is_some())
            });
            if is_loose != Some(true) || is_suspended == Some(true) {
                waiting.loose_since = None;
                continue;
            }
            let since = *waiting.loose_since.get_or_insert(now);
            if now.since(since) > LET_GO_WITHIN {
                return Err(format!("{key} is held since {}, and nothing keeps it", waiting.since));
            }
        }
        Ok(())
    }

    /// Whether all that is not kept back has ended: what eased holds let go is through.
    pub fn is_through(&mut self) -> bool {
        let view = self.view();
        let is_done = |record: &Record| {
            !record.state.is_open() || (record.hold.is_some() && view.keeper_of(record).is_some())
        };
        let is_through = |key: &DeliveryKey| self.world.ledger.inspect(key, is_done) != Some(false);
        self.wards.keys().all(is_through)
    }
}

fn is_held(record: &Record) -> bool {
    record.state.is_open() && record.hold.is_some()
}
