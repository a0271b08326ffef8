//! Waybill's ledger, office and queue on one SQLite file.
//!
//! What is answered is on disk: a write is answered after the commit that holds it, and a commit
//! is synced (`synchronous = FULL`). Writes of many callers share one commit, each undone alone if
//! it fails. Readers see every answered write. Other processes may use the same file meanwhile.
//! Nothing here blocks an async thread: SQLite lives on threads of its own, which end with the
//! last handle. The time is the clock's that was handed over, and nothing here knows another.
//!
//! It keeps the promises of `waybill_service::ports` as the AWS backend does, and sits the same
//! exam (`tests/conformance`). What it adds is for the command line and for tests:
//! [`EmbeddedStore::dead_letter_messages`], [`EmbeddedStore::move_back`],
//! [`EmbeddedStore::check_write`] and [`EmbeddedStore::arrivals`].
//!
//! Order of reading: `schema.sql`, [`EmbeddedStore`], then the threads (`writer`, `readers`), the
//! ports on them (`ledger`, `budgets`, `catalogue`, `office`, `revisions`, `queue`, `inbox` with `turns`, `dead_letter_box`)
//! and at the edge `dlq`.

mod budgets;
mod catalogue;
mod cursor;
mod dead_letter_box;
mod delivery;
mod dlq;
mod draw;
mod fault;
mod health;
mod inbox;
mod ledger;
mod office;
mod queue;
mod readers;
mod revisions;
mod rows;
mod schema;
mod store;
#[cfg(test)]
mod tests;
mod turns;
mod writer;

pub use dlq::{DeadMessage, MOVED_BY, REDRIVE_POLICY};
pub use inbox::MAX_RECEIVES;
pub use queue::WINDOW;
pub use schema::{OpenError, SCHEMA_VERSION};
pub use store::EmbeddedStore;
