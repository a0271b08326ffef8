//! A real machine: its wall clock, its source of randomness, and the log on its standard error.
//!
//! What everything else takes as a port or never sees; the command line and the functions share it.

mod clock;
mod dice;
#[cfg(feature = "emf")]
pub mod emf;
pub mod log;

pub use clock::SystemClock;
pub use dice::SystemDice;
