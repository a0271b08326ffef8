//! Tests against a local AWS; `make test-aws` starts one. Without the feature `aws-local` nothing
//! of them is built. What they share: a table, a bucket and queues of each test's own.

#![allow(clippy::unwrap_used, reason = "a panic here is a red test")]

#[cfg(feature = "aws-local")]
pub mod place;
