//! The protocol under a scheduler that crashes, freezes, repeats and loses: known traces and single
//! moments step by step, then seeded histories, then rules broken on purpose.

#![allow(clippy::unwrap_used, reason = "a panic here is a red test")]
#![allow(clippy::print_stdout, reason = "what a run covered is shown with --nocapture")]

mod scene;
mod traces;
mod moments;
mod crowd;
mod histories;
mod saboteurs;
mod versions;
// Minutes each: `make planted`, `make reliability`.
#[cfg(feature = "long")]
mod planted;
#[cfg(feature = "long")]
mod reliability;
