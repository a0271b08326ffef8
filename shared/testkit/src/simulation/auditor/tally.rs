//! What a history came to at its recipients, counted from what reached them.

use std::collections::{BTreeMap, BTreeSet};

use super::Auditor;

/// Counts of one history, or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Deliveries that were accepted.
    pub accepted: u64,
    /// Requests that reached a recipient.
    pub requests: u64,
    /// Effects beyond the first, of one event at one destination, where the recipient tells repeats by
    /// their `idempotency-key`.
    pub duplicate_effects: u64,
    /// Requests that were applied beyond the first, where the recipient tells no repeats.
    pub duplicate_applications: u64,
    /// Requests whose first byte left at or after the deadline by the sender's clock.
    pub after_deadline: u64,
    /// The same by the true time: a sender's clock may be two seconds behind it.
    pub truly_after_deadline: u64,
}

impl Tally {
    /// With another's.
    pub fn plus(self, other: Self) -> Self {
        Self {
            accepted: self.accepted + other.accepted,
            requests: self.requests + other.requests,
            duplicate_effects: self.duplicate_effects + other.duplicate_effects,
            duplicate_applications: self.duplicate_applications + other.duplicate_applications,
            after_deadline: self.after_deadline + other.after_deadline,
            truly_after_deadline: self.truly_after_deadline + other.truly_after_deadline,
        }
    }
}

impl Auditor {
    /// What reached the recipients.
    pub fn tally(&self) -> Tally {
        let requests = self.world.recipient.requests();
        let mut keys: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let (mut after_deadline, mut truly_after_deadline) = (0, 0);
        for request in &requests {
            let what = (request.destination.as_str(), request.event_id.as_str());
            keys.entry(what).or_default().insert(&request.delivery_id);
            let ward = self.wards.keys().find(|key| key.delivery_id == request.delivery_id);
            let deadline =
                ward.and_then(|key| self.world.ledger.inspect(key, |r| r.delivery.deadline)).flatten();
            after_deadline += u64::from(deadline.is_some_and(|deadline| request.at_sender >= deadline));
            truly_after_deadline += u64::from(deadline.is_some_and(|deadline| request.at >= deadline));
        }
        let applied = self.wards.keys().map(|key| self.world.recipient.applications(&key.delivery_id));
        Tally {
            accepted: self.wards.keys().filter(|key| self.world.ledger.inspect(key, |_| ()).is_some()).count()
                as u64,
            requests: requests.len() as u64,
            duplicate_effects: keys.values().map(|ids| ids.len() as u64 - 1).sum(),
            duplicate_applications: applied.map(|n| u64::from(n.saturating_sub(1))).sum(),
            after_deadline,
            truly_after_deadline,
        }
    }
}
