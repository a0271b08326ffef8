//! The AWS backend sits the exam that the others sit, at the endpoint that `AWS_ENDPOINT_URL` names.

#![allow(clippy::unwrap_used, reason = "a panic here is a red test")]

mod ledger;
mod office;
mod queue;
mod stores;
