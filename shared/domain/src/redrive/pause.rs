//! A pause of a run: what a stop had held goes later by as long as the run stood still, and so in the
//! same order and with the same distances as it was to go. Nothing is counted, so it does not matter who
//! lifts what, when, or how often.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Run;
use crate::delivery::Record;
use crate::identity::{DestinationName, TenantId};
use crate::order::OrderId;
use crate::time::{DurationMs, TimeMs};

/// How long a worker may not have heard that a run was resumed: what is due until then it still holds.
pub const UNHEARD: DurationMs = DurationMs::from_secs(10);

/// A queue may delay by whole seconds: what was due shortly before a stop is held, too.
const ROUNDING: DurationMs = DurationMs::from_secs(1);

/// How many pauses a lane remembers. What was held in an earlier one and is not lifted yet goes earlier
/// than it might.
const REMEMBERED: usize = 8;

/// A time for which a run stood still, as one lane of it sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// What was due before this is held, and goes later.
    pub before: TimeMs,
    /// By so much: behind what was due later and is still in the queue.
    pub by: DurationMs,
}

/// The pauses of one lane, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pauses(Vec<Pause>);

impl Pauses {
    /// When goes what was due at `due_at` and was held in them.
    pub fn moved(&self, due_at: TimeMs) -> TimeMs {
        self.0.iter().fold(due_at, |at, pause| if at < pause.before { at.plus(pause.by) } else { at })
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one from `stopped` to `now`; `next_at` is when the lane's next release was due. Answers when it
    /// is due now: behind all that is held.
    pub(super) fn add(&mut self, stopped: TimeMs, now: TimeMs, next_at: TimeMs) -> TimeMs {
        let by = next_at.max(now).since(stopped).plus(ROUNDING);
        self.0.push(Pause { before: now.plus(UNHEARD), by });
        self.0.drain(..self.0.len().saturating_sub(REMEMBERED));
        let unheard = next_at.since(now).min(UNHEARD);
        let behind = next_at.plus(now.since(stopped)).plus(ROUNDING).plus(unheard);
        // What is released from now on must not be taken for what was held: it goes when it is due.
        behind.max(now.plus(UNHEARD))
    }
}

/// A run that goes on after a stop, as whoever lifts what it held must know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumed {
    run: OrderId,
    tenant: Option<TenantId>,
    lanes: BTreeMap<DestinationName, Pauses>,
}

impl Resumed {
    /// Of a run with pauses; none where nothing is to be moved. `tenant` is whose it is.
    pub fn of(id: &OrderId, tenant: Option<&TenantId>, run: &Run) -> Option<Self> {
        let paused = run.lanes.iter().filter(|(_, lane)| !lane.pauses.is_empty());
        let lanes: BTreeMap<_, _> = paused.map(|(name, lane)| (name.clone(), lane.pauses.clone())).collect();
        (!lanes.is_empty()).then(|| Self { run: id.clone(), tenant: tenant.cloned(), lanes })
    }

    /// When goes what this run had released and a stop held; none where it is not this run's.
    pub fn goes_at(&self, record: &Record) -> Option<TimeMs> {
        let is_its = record.redrive_run.as_deref() == Some(self.run.as_str())
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == record.delivery.tenant);
        let pauses = self.lanes.get(&record.delivery.destination).filter(|_| is_its)?;
        Some(pauses.moved(record.due_at))
    }
}
