//! (to be written)


pub mod clock;

pub mod dice;
pub mod memory;
pub mod scripted;
