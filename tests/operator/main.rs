//! What operators do, on the virtual clock and the memory backend: redrive runs, holds, endings, the
//! audit, revisions; and the DLQ kept true.

mod audit;
mod crashes;
mod easing;
mod easing_crashes;
mod endings;
mod gauges;
mod holds;
#[path = "../logged.rs"]
mod logged;
#[path = "../measured.rs"]
mod measured;
mod pace;
mod plans;
mod publishing;
mod redrive;
mod relapse;
mod revisions;
mod rounds;
mod slots;
mod suspended;
mod suspension_crashes;
mod suspension_ends;
mod suspension_relapses;
mod suspensions;
mod schedules;
mod sweep;
mod world;
