//! A ledger and a queue in memory that fake truly: what the real ones do badly, they do too.
//!
//! They sit the same conformance suites as every other backend. Beyond the ports, a test can see
//! everything that was written (journals) and do what an operator's worst night does: deliver a
//! message twice, lose it, move it natively, bring a deleted one back.

mod budgets;
mod catalogue;
mod clauses;
mod events;
mod ledger;
mod listing;
mod message;
mod office;
mod queue;
mod rows;
mod worker;

pub use clauses::Clause;
pub use events::{Buried, QueueEvent, QueueRules};
pub use ledger::{MemoryLedger, Write};
pub use office::{MemoryOffice, OrderWrite};
pub use queue::MemoryQueue;
pub use worker::{MemoryWorker, worker};
