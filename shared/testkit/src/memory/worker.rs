//! A worker on the memory backend.

use waybill_service::desk::Desk;
use waybill_service::ports::{Dice, Ports};

use super::{MemoryLedger, MemoryQueue, QueueRules};
use crate::clock::VirtualClock;
use crate::scripted::ScriptedRecipient;

/// The ports of a worker whose other sides are all in memory.
pub type MemoryWorker<D> = Ports<MemoryLedger, MemoryQueue, ScriptedRecipient<VirtualClock>, VirtualClock, D>;

/// One with an empty ledger, an empty queue and a recipient without a script, on this clock.
pub fn worker<D: Dice>(clock: &VirtualClock, dice: D) -> MemoryWorker<D> {
    Ports {
        ledger: MemoryLedger::default(),
        queue: MemoryQueue::new(clock, QueueRules::default()),
        recipient: ScriptedRecipient::new(clock),
        clock: clock.clone(),
        dice,
        desk: Desk::default(),
    }
}
