//! What no emulator does: a write that is made and whose answer is lost, a service that throttles,
//! refuses, falls silent. Against a stub endpoint of our own, at the level of HTTP.

#![allow(clippy::unwrap_used, reason = "a panic here is a red test")]

mod batches;
mod faults;
mod own_writes;
mod stub;
mod transactions;
mod wire;
