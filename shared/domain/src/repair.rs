//! What the reconciler does about a record that it looks at, and when it looks again.
//!
//! The order matters: first `look_at` moves forward by compare-and-set ([`Record::looked`]), then
//! anything is sent, so that two reconcilers, or the next minute's, never wake one delivery twice.

use crate::delivery::{Record, RecordData};
use crate::ending::Ending;
use crate::hold::HoldRule;
use crate::time::{DurationMs, TimeMs};

/// When open deliveries are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookRules {
    /// The longest delay that the queue can hold.
    pub queue_window: DurationMs,
    /// How long past its due time a delivery may lie before a rescue; doubles with each look.
    pub stale_after: DurationMs,
    /// How long before its deadline a delivery is woken in any case.
    pub rescue_window: DurationMs,
}

impl LookRules {
    /// What is waited before the next look, after `looks` without progress.
    pub fn patience(&self, looks: u32) -> DurationMs {
        self.stale_after.times(1 << looks.min(16))
    }
}

/// When `record` is to be looked at next, always after `now`; `None` if never.
pub(crate) fn next_look(record: &RecordData, rules: &LookRules, now: TimeMs) -> Option<TimeMs> {
    let patience = rules.patience(record.looks);
    if !record.state.is_open() {
        // The DLQ is to be told. What it was told, or what succeeded, is looked at no more: see the transitions.
        return Some(now.plus(patience));
    }
    if record.hold.is_some() {
        return None;
    }
    let parked_until = record.due_at.minus(rules.queue_window);
    let overdue = record.due_at.max(now).plus(patience);
    let usual = if parked_until > now { parked_until } else { overdue };
    let limit_at = record.delivery.deadline.map_or(record.horizon_at, |at| at.min(record.horizon_at));
    let rescue = limit_at.minus(rules.rescue_window);
    let urgent = [rescue, limit_at].into_iter().find(|at| *at > now).unwrap_or(usual);
    Some(usual.min(urgent))
}

/// What to do about an open or untold delivery whose look is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Its look is not due: somebody else moved it.
    NotDue,
    /// An attempt is being made; nothing is expired under a live claim.
    Working,
    /// Send a wake-up: parked and coming due, stale, near its deadline, or with a lapsed claim
    /// (which the woken copy settles).
    Wake,
    /// It must not be sent any more.
    End(Ending),
    /// It ended, and the DLQ was not told.
    TellDlq,
}

/// Decides the repair of one record. `minimum_window` is its destination's.
pub fn repair(record: &Record, minimum_window: DurationMs, now: TimeMs) -> Repair {
    if record.look_at.is_none_or(|at| at > now) {
        return Repair::NotDue;
    }
    if !record.state.is_open() {
        return Repair::TellDlq;
    }
    match &record.claim {
        Some(claim) if claim.is_live(now) => return Repair::Working,
        Some(_) => return Repair::Wake,
        None => {}
    }
    match past_limit(record, minimum_window, now) {
        Some(ending) => Repair::End(ending),
        None => Repair::Wake,
    }
}

/// What to do about a held delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldRepair {
    /// Its hold still matches.
    Stay,
    /// No hold matches any more: a lift, or one that raced with the admission.
    Lift,
    /// It must not be sent any more.
    End(Ending),
}

/// Decides the repair of one held record.
pub fn repair_held(
    record: &Record,
    holds: &[HoldRule],
    minimum_window: DurationMs,
    now: TimeMs,
) -> HeldRepair {
    if !record.state.is_open() || record.hold.is_none() {
        return HeldRepair::Stay;
    }
    if let Some(ending) = past_limit(record, minimum_window, now) {
        return HeldRepair::End(ending);
    }
    match crate::hold::matching(holds, record) {
        Some(_) => HeldRepair::Stay,
        None => HeldRepair::Lift,
    }
}

/// How the delivery ends now, if its limit has come or less than `minimum_window` is left.
pub(crate) fn past_limit(record: &Record, minimum_window: DurationMs, now: TimeMs) -> Option<Ending> {
    let limit = record.limit(now);
    (now >= limit.at || now > limit.at.minus(minimum_window)).then_some(limit.ending)
}
