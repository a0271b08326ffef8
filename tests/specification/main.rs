//! The specification as tables: rows read by one `check` each. Names are sentences. Built with `domain` alone,
//! so that whoever changes a decision sees in seconds what it breaks.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails, and says where")]

mod addresses;
mod admission;
mod authorities;
mod books;
mod budgets;
mod build;
mod capacity;
mod deadlines;
mod destinations;
mod easing;
mod edges;
mod envelopes;
mod fates;
mod headers;
mod holds;
mod look_ups;
mod measured;
mod names;
mod orders;
mod paces;
mod pauses;
mod probes;
mod repairs;
mod run_pages;
mod runs;
mod schedules;
mod selections;
mod signatures;
mod sources;
mod suspension_ends;
mod suspension_probes;
mod suspension_steps;
mod suspensions;
mod times;
mod traces;
mod transitions;
mod vectors;
mod vendors;
mod versions;
mod zones;
