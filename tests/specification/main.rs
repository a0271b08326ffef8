//! The specification as tables: rows read by one `check` each. Names are sentences.

mod admission;
mod arrows;
mod build;
mod deadlines;
mod envelopes;
mod events;
mod look_ups;
mod schedules;
mod transitions;
mod vectors;
mod zones;
