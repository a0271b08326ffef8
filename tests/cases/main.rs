//! `cases.md`: faults that others had, each a test found by its number (`cargo test c01`).
//!
//! These run the real use cases over the memory backend on a virtual clock. Rows that are decided
//! by `domain` alone stand in `specification`, those of the wire in `recipient`, those of the store
//! in `conformance`.

mod budget_costs;
mod budgets;
mod capacity;
mod crew;
mod duplicates;
mod easing;
mod held;
mod hours;
mod ledger;
mod lines;
#[path = "../logged.rs"]
mod logged;
mod look_ups;
mod losses;
#[path = "../measured.rs"]
mod measured;
mod metrics;
mod publishing;
mod retried;
mod schedules;
mod schemas;
mod site;
mod shed;
mod slots;
mod ticks;
mod timing;
mod turns;
mod world;
