//! The specification as tables: rows read by one `check` each. Names are sentences.

mod admission;
mod arrows;
mod budgets;
mod build;
mod capacity;
mod cases;
mod deadlines;
mod description;
mod envelopes;
mod events;
mod examinations;
mod instruments;
mod look_ups;
mod schedules;
mod signatures;
mod sources;
mod suspensions;
mod traces;
mod transitions;
mod vectors;
mod vendors;
mod versions;
mod zones;
