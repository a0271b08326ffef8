//! Every interleaving of two workers, one reconciler and one operator over one delivery, with bounded
//! faults: breadth-first, through the real functions of `domain`.
//!
//! What is decided (admit, settle, hold, lift, end, release, repair, hand-off) is decided by `domain`, of
//! real records; only the order of the steps, which `service` writes as futures, is written here once
//! more, because a future cannot be copied. The simulator runs the futures themselves.
//!
//! Order of reading: [`state`] (what there is) and [`ground`] (what never changes), [`store`] (one conditional
//! write), [`worker`] and [`attempt`], [`others`],
//! [`laws`] (what must hold), [`search`], and the bounds that are searched: [`scopes`].

#![allow(clippy::unwrap_used, reason = "a panic here is a red test")]
#![allow(clippy::print_stdout, reason = "what a search covered is shown with --nocapture")]

mod state;
mod ground;
mod store;
mod worker;
mod attempt;
mod others;
mod laws;
mod search;
mod scopes;
