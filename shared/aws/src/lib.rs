//! Waybill on AWS: the ledger in one DynamoDB table, wake-ups in SQS, large payloads in S3, secrets
//! in SSM and Secrets Manager, the configuration behind a pointer in the ledger.
//!
//! Passes the exam that every backend sits. No type of an SDK crosses a port; only [`clients`] and
//! the constructors know them. Order of reading: [`clients`], [`table`] (keys and indexes), `record`
//! (a record as an item), [`ledger`], `budgets`, `looks`, `catalogue`, [`queue`], [`secrets`], [`configuration`], [`Place`].

pub mod clients;
mod fault;
pub mod table;
mod record;
mod range;
mod registry;
pub mod payloads;
mod ahead;
pub mod ledger;
mod budgets;
mod looks;
mod catalogue;
pub mod queue;
pub mod secrets;
pub mod configuration;
mod place;

pub use clients::Clients;
pub use configuration::ConfigSource;
pub use ledger::DynamoLedger;
pub use payloads::S3Payloads;
pub use place::{NotSet, Place, ends_at};
pub use queue::SqsQueue;
pub use secrets::AwsSecrets;
