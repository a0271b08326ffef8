//! What operators do, on the virtual clock and the memory backend: redrive runs, the audit, revisions.

mod audit;
mod dying;
mod judging;
mod redrive;
mod revisions;
mod world;
