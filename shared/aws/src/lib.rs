//! Waybill on AWS: the ledger in one DynamoDB table, wake-ups in SQS, large payloads in S3, secrets
//! in SSM and Secrets Manager, the configuration behind a pointer in the ledger.
//!
//! Passes the exam that every backend sits. No type of an SDK crosses a port; only [`clients`] and
//! the constructors know them. Order of reading: [`clients`], [`table`] (keys and indexes), `record`
//! (a record as an item), [`ledger`], `budgets`, `looks`, `catalogue`, [`queue`], [`batch`], [`secrets`], [`office`]
//! (orders, audit), `configuration`, [`Caller`], [`Place`], [`examine()`] (how all that is set); for rehearsals and tests: [`polling`], [`trial`].

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
pub mod batch;
pub mod polling;
pub mod secrets;
pub mod office;
mod office_items;
mod configuration;
mod caller;
mod place;
mod examine;
pub mod trial;

pub use caller::Caller;
pub use clients::Clients;
pub use examine::examine;
pub use fault::denied;
pub use ledger::DynamoLedger;
pub use office::AwsOffice;
pub use payloads::S3Payloads;
pub use place::{CONSUMER_TIMEOUT_S, NoTimeout, NotSet, Place, batch_size, consumer_runs, ends_at};
pub use queue::SqsQueue;
pub use secrets::AwsSecrets;
