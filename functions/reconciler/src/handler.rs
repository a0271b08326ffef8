//! One round for each trigger, whatever the trigger says: the ledger knows what is due.
//!
//! It ends before the function does; what is left is the next tick's. Answers what it did, for
//! whoever invokes it by hand.

use serde::Serialize;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::Config;
use waybill_service::office::Office;
use waybill_service::ports::{Catalogue, Clock, Dice, Ledger, PortResult, Queue};
use waybill_service::reconcile::{TickLimits, TickReport};
use waybill_service::round::Round;
use waybill_service::sweep::DeadLetterBox;

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
}

/// One round.
pub(crate) async fn handle<L: Ledger + Catalogue, Q: Queue + DeadLetterBox, O: Office, C: Clock, D: Dice>(
    round: &Round<'_, L, Q, O, C, D>,
    config: &Config,
    ends_at: TimeMs,
) -> PortResult<Done> {
    let now = round.clock.now();
    let half = DurationMs::from_ms(ends_at.since(now).as_ms() / 2);
    let until = ends_at.minus(half.min(TO_END));
    let limits = TickLimits { until: Some(until), ..TickLimits::default() };
    let TickReport { looked_at, woken, ended, told, lifted, held, failed, more, .. } =
        round.run(config, limits).await?;
    Ok(Done { looked_at, woken, ended, told, lifted, held, failed, more })
}

#[cfg(test)]
mod tests;
