//! What operators do, on the virtual clock and the memory backend: redrive runs, holds, endings, the
//! audit, revisions; and the DLQ kept true.

mod audit;
mod crashes;
mod dying;
mod endings;
mod holds;
mod judging;
mod publishing;
mod redrive;
mod revisions;
mod schedules;
mod sweep;
mod world;
