//! (to be written)

pub mod server;

pub mod clock;
pub mod conformance;

pub mod dice;
pub mod memory;
pub mod scripted;
