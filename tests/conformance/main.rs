//! Every backend sits the same exam (`waybill_testkit::conformance`), and the embedded one has
//! promises of its own: one file, many writers, kill -9.

#![allow(clippy::unwrap_used, reason = "a panic here is a red test")]

mod embedded;
mod exam_is_complete;
mod memory;
mod one_file;
mod survives_kill;
