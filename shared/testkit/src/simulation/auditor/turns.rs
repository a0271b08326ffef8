//! What is held goes in its order: whoever looks for what may go, and reserves slots, leaves nothing behind that
//! has an earlier deadline and may go as well.
//!
//! Looked at where a reservation is written, for that is where it is decided; what was reserved is lifted together,
//! in any order.

use std::collections::{BTreeMap, BTreeSet};

use waybill_domain::delivery::Record;
use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::time::{DurationMs, TimeMs};

use super::view::Known;
use super::{Auditor, Broken, SKEW};

/// A start that the deadline forbids is nobody's turn: by a minute's worth of starts, or by what clocks differ.
const TOO_LATE: [DurationMs; 2] = [DurationMs::from_secs(120), DurationMs::from_secs(10)];

/// Which deliveries have a slot reserved.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Of each destination, as of which write of its item.
    reserved: BTreeMap<DestinationName, (u64, BTreeSet<DeliveryKey>)>,
    /// When a reservation ended that does not stand any more.
    reserved_until: BTreeMap<DeliveryKey, TimeMs>,
}

impl Auditor {
    /// Whoever moves has written what is used of a budget, unless another was quicker.
    pub fn budget_written(&mut self) {
        self.is_budget_written = true;
    }

    /// Looks at what was reserved in this step.
    pub(super) fn check_turns(&mut self) -> Result<(), Broken> {
        if !std::mem::take(&mut self.is_budget_written) {
            return Ok(());
        }
        let now = self.now();
        for name in &self.destinations {
            let (revision, before) = self.turns.reserved.get(name).cloned().unwrap_or_default();
            let kept = self.world.ledger.peek_usage(name);
            if kept.revision == revision {
                continue;
            }
            let is_reserved = |key: &&DeliveryKey| kept.usage.is_reserved(&key.delivery_id);
            let after: BTreeSet<DeliveryKey> = self.wards.keys().filter(is_reserved).cloned().collect();
            let ended = before.difference(&after).map(|key| (key.clone(), now));
            self.turns.reserved_until.extend(ended);
            for key in after.difference(&before) {
                self.check_turn(key, &before, &after)?;
            }
            self.turns.reserved.insert(name.clone(), (kept.revision, after));
        }
        Ok(())
    }

    fn check_turn(
        &self,
        chosen: &DeliveryKey,
        before: &BTreeSet<DeliveryKey>,
        after: &BTreeSet<DeliveryKey>,
    ) -> Result<(), Broken> {
        let (who, ledger) = (&self.moving, &self.world.ledger);
        let Some(known) = self.known.get(who).filter(|known| !known.is_harmed) else { return Ok(()) };
        let to = |record: &Record| (record.delivery.destination.clone(), record.delivery.deadline);
        let Some((destination, limit)) = ledger.inspect(chosen, to) else { return Ok(()) };
        let has_rate = |config: &waybill_service::config::Config| {
            let budget = config.destinations.get(&destination).and_then(|destination| destination.budget);
            budget.is_some_and(|budget| budget.rate.is_some())
        };
        let [paced, unpaced] = TOO_LATE;
        let too_late = self.now().plus(if has_rate(&self.world.config()) { paced } else { unpaced });
        let others = self.waiting.iter().filter(|(key, waiting)| {
            *key != chosen
                && waiting.since < known.began_at
                && !before.contains(*key)
                && !after.contains(*key)
                && self.turns.reserved_until.get(*key).is_none_or(|until| *until < known.began_at)
        });
        for (key, _) in others {
            let is_next = |record: &Record| {
                record.delivery.destination == destination && may_go(record, known, too_late)
            };
            if ledger.inspect(key, is_next) != Some(true) {
                continue;
            }
            let deadline = ledger.inspect(key, |record| record.delivery.deadline).flatten();
            if deadline.is_some_and(|deadline| limit.is_none_or(|limit| deadline < limit)) {
                return Err(format!(
                    "{who} lets {chosen} go to {destination} before {key}, which comes first"
                ));
            }
            self.chronicle.count("let go in its turn");
        }
        Ok(())
    }
}

/// Whether somebody who began then could let it go.
fn may_go(record: &Record, known: &Known, too_late: TimeMs) -> bool {
    // Redrives have half of the slots, and what a stopped run released goes later.
    record.redrive_run.is_none()
        && record.due_at.plus(SKEW) <= known.began_at
        && known.view.keeper_of(record).is_none()
        && record.delivery.deadline.is_none_or(|deadline| deadline > too_late)
}
