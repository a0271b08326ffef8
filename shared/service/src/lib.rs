//! Waybill's use cases over ports: publish (and ingest, its door over HTTP), consume, reconcile, and
//! schedules.
//!
//! The order `load → admit → claim → send → settle → hand off → acknowledge` is written once, in
//! [`consume`]; every other path uses its steps. What operators do goes over [`acts`] into [`office`], and is
//! carried out in the reconciler's [`round`]. What is decided is decided by `waybill_domain`;
//! what is done is done through the ports of [`ports`]; nothing here knows SQLite, HTTP or AWS.

pub mod ports;
pub mod config;
pub mod config_file;
pub mod event;
pub mod examination;
pub mod publish;
pub mod refusal;
pub mod authorize;
pub mod ingest;
pub mod payload_schema;
mod digest;
mod notes;
pub mod instruments;
mod steps;
pub mod desk;
mod look_up;
pub mod consume;
mod release;
pub mod reconcile;
pub mod office;
pub mod acts;
pub mod operators;
pub mod holds;
pub mod easing;
mod suspensions;
pub mod held;
pub mod endings;
pub mod revisions;
pub mod source;
pub mod redrive;
pub mod sweep;
pub mod round;
pub mod schedule;
pub mod survey;
