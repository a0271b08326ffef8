//! (to be written)


pub mod clock;
pub mod conformance;

pub mod dice;
pub mod memory;
pub mod scripted;
