//! Waybill's use cases over ports: publish (and ingest, its door over HTTP), consume, reconcile, and
//! schedules.
//!
//! The order `load → admit → claim → send → settle → hand off → acknowledge` is written once, in
//! [`consume`]; every other path uses its steps. What is decided is decided by `waybill_domain`;
//! what is done is done through the ports of [`ports`]; nothing here knows SQLite, HTTP or AWS.

pub mod ports;
pub mod config;
pub mod config_file;
pub mod event;
pub mod publish;
pub mod refusal;
pub mod authorize;
pub mod ingest;
pub mod payload_schema;
mod digest;
mod notes;
mod steps;
mod look_up;
pub mod consume;
pub mod reconcile;
pub mod schedule;
