//! The recipient over HTTP, against real sockets: what is sent, what is seen, and what is never done.
//!
//! The numbers in the names of tests are those of the list of known faults (`cases.md`). Times are
//! short and real; nothing asserts that something was fast, only that it ended as it should.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod setting;
mod statuses;
mod answers;
mod waits;
mod transport;
mod names;
mod encrypted;
mod signing;
mod look_up;
mod window;
mod privacy;
mod static_headers;
mod traces;
mod probe;
mod guide;
mod zoo;
