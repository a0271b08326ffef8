//! One tick for each trigger, whatever the trigger says: the ledger knows what is due.
//!
//! It ends before the function does; what is left is the next tick's. Answers what it did, for
//! whoever invokes it by hand.

use serde::Serialize;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::Config;
use waybill_service::ports::{Clock, Dice, Ledger, PortResult, Queue};
use waybill_service::reconcile::{Reconciler, TickLimits, TickReport};
use waybill_service::schedule::{Learned, ScheduleLimits, Scheduler};

/// What is kept of the function's time, but never more than half of it: a step that was begun must
/// end, whatever its calls take.
const TO_END: DurationMs = DurationMs::from_secs(10);

/// What a tick did.
#[derive(Debug, Serialize)]
pub(crate) struct Done {
    looked_at: usize,
    woken: usize,
    ended: usize,
    told: usize,
    lifted: usize,
    held: usize,
    failed: usize,
    more: bool,
    /// Windows of schedules that were published, refused ones included.
    scheduled: usize,
}

/// One tick.
pub(crate) async fn handle<L: Ledger, Q: Queue, C: Clock, D: Dice>(
    reconciler: &Reconciler<'_, L, Q, C, D>,
    config: &Config,
    learned: &Learned,
    ends_at: TimeMs,
) -> PortResult<Done> {
    let now = reconciler.clock.now();
    let half = DurationMs::from_ms(ends_at.since(now).as_ms() / 2);
    let until = ends_at.minus(half.min(TO_END));
    // Schedules first, with half of the time at most: they owe little, and what is due repairs itself later.
    let Reconciler { ledger, queue, clock, .. } = *reconciler;
    let to_schedule = now.plus(DurationMs::from_ms(until.since(now).as_ms() / 2));
    let limits = ScheduleLimits { until: Some(to_schedule), ..ScheduleLimits::default() };
    let windows = Scheduler { ledger, queue, clock }.tick(config, learned, limits).await;
    let limits = TickLimits { until: Some(until), ..TickLimits::default() };
    let TickReport { looked_at, woken, ended, told, lifted, held, failed, more, .. } =
        reconciler.tick(config, limits).await?;
    let (failed, more) = (failed + windows.failed, more || windows.more);
    let scheduled = windows.published + windows.refused;
    Ok(Done { looked_at, woken, ended, told, lifted, held, failed, more, scheduled })
}

#[cfg(test)]
mod tests;
