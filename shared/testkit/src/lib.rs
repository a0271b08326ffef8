//! What tests of Waybill stand on: time and chance that repeat, other sides that do as they are told,
//! and exams that every backend sits.
//!
//! Order of reading: [`clock`] and [`dice`]; [`memory`] (a ledger and a queue that fake truly) and
//! [`conformance`] (the exam that they and every other backend sit); [`scripted`] (a recipient in
//! virtual time) and [`server`] (one on real sockets); [`faults`] (a use case, step by step, with a
//! fault between any two), [`next_version`] (one that is not there yet) and [`simulation`] (whole histories
//! from one seed); [`originals`] (what a store with much history is cloned from).

pub mod clock;
pub mod dice;
pub mod memory;
pub mod conformance;
pub mod scripted;
pub mod server;
pub mod faults;
pub mod next_version;
pub mod simulation;
pub mod originals;
