//! The decisions of Waybill, as pure functions of (record, wake-up, configuration, now, chance).
//!
//! Nothing here knows the time, draws lots, reads the environment or reaches the
//! network: `now` and the drawn jitter are arguments, effects are values that the
//! caller carries out. `clippy.toml` beside this crate holds that. What is legal is
//! decided here once, and every path (consumer, reconciler, publisher, command line)
//! asks here.
//!
//! Order of reading: [`time`], [`identity`], [`outcome`], [`policy`], [`destination`]
//! (with [`static_header`]),
//! [`trace`], [`delivery`] (the record, with [`newer`]), [`ending`], [`transition`], [`envelope`], then the decisions
//! [`admit`], [`settle`], [`handoff`], [`repair`], [`hold`], [`budget`] (with [`suspension`]), [`look_up`], [`schedule`] (with
//! [`event_template`]), what operators order
//! [`authority`], [`audit`], [`order`], [`redrive`], and at the edge
//! [`retry_after`], [`signature`], [`address`], and for what comes in [`verify`], [`mod@pointer`], [`source`]; for a
//! recipient that is tried out, [`probe`]; and what an
//! operator reckons with, [`capacity`].

pub mod fault;
pub mod time;
pub mod identity;
pub mod outcome;
pub mod policy;
pub mod destination;
pub mod static_header;
pub mod trace;
pub mod newer;
pub mod delivery;
pub mod ending;
pub mod transition;
pub mod attempt;
pub mod envelope;
pub mod admit;
pub mod settle;
pub mod handoff;
pub mod repair;
mod placeholder;
pub mod look_up;
pub mod hold;
pub mod budget;
pub mod suspension;
pub mod authority;
pub mod audit;
pub mod order;
pub mod redrive;
pub mod schedule;
pub mod event_template;
pub mod retry_after;
pub mod signature;
pub mod address;
pub mod verify;
pub mod pointer;
pub mod source;
pub mod probe;
pub mod capacity;
