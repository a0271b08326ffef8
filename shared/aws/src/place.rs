//! Where a function works, from its environment: `WAYBILL_TABLE`, `WAYBILL_QUEUE_URL`,
//! `WAYBILL_DLQ_URL`, `WAYBILL_BUCKET`.
//!
//! `WAYBILL_ALLOW_LOCAL=1` lets recipients on this machine and plain HTTP count as outside. It is
//! honoured only while `AWS_ENDPOINT_URL` itself points to this machine: on AWS it means nothing.

use std::env;

use thiserror::Error;
use waybill_domain::address::Locality;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config_file::{Rules, SecretStores};
use waybill_service::ports::Clock;
use waybill_service::source::{ConfigSource, LONGEST_HOLD};

use crate::clients::Clients;
use crate::ledger::DynamoLedger;
use crate::office::AwsOffice;
use crate::payloads::S3Payloads;
use crate::queue::SqsQueue;

/// A table, two queues and a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    table: String,
    queue_url: String,
    dlq_url: String,
    bucket: String,
    locality: Locality,
}

/// A variable of the environment that must be set.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0} is not set: it says where Waybill's table, queues and bucket are")]
pub struct NotSet(&'static str);

impl Place {
    /// As the environment of this process says.
    pub fn from_environment() -> Result<Self, NotSet> {
        Self::from(|name| env::var(name).ok())
    }

    fn from(variable: impl Fn(&str) -> Option<String>) -> Result<Self, NotSet> {
        let set = |name| variable(name).filter(|value| !value.is_empty()).ok_or(NotSet(name));
        let asks_for_local = variable("WAYBILL_ALLOW_LOCAL").is_some_and(|value| value == "1");
        let is_local = variable("AWS_ENDPOINT_URL").is_some_and(|endpoint| is_on_this_machine(&endpoint));
        if asks_for_local && !is_local {
            tracing::warn!("WAYBILL_ALLOW_LOCAL is not honoured: AWS_ENDPOINT_URL is not on this machine");
        }
        Ok(Self {
            table: set("WAYBILL_TABLE")?,
            queue_url: set("WAYBILL_QUEUE_URL")?,
            dlq_url: set("WAYBILL_DLQ_URL")?,
            bucket: set("WAYBILL_BUCKET")?,
            locality: if asks_for_local && is_local { Locality::AllowLocal } else { Locality::PublicOnly },
        })
    }

    /// The table's name.
    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    /// Where wake-ups go.
    pub(crate) fn queue_url(&self) -> &str {
        &self.queue_url
    }

    /// Where dead letters go.
    pub(crate) fn dlq_url(&self) -> &str {
        &self.dlq_url
    }

    /// The bucket's name.
    pub(crate) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Whether this machine counts as outside.
    pub fn locality(&self) -> Locality {
        self.locality
    }

    /// The ledger.
    pub fn ledger(&self, clients: &Clients) -> DynamoLedger {
        let big = S3Payloads::new(clients.s3.clone(), &self.bucket);
        DynamoLedger::new(clients.dynamo.clone(), &self.table, big)
    }

    /// The queue.
    pub fn queue(&self, clients: &Clients) -> SqsQueue {
        SqsQueue::new(clients.sqs.clone(), &self.queue_url, &self.dlq_url)
    }

    /// Orders, audit and configurations.
    pub fn office(&self, clients: &Clients) -> AwsOffice {
        AwsOffice::new(clients.clone(), &self.table, &self.bucket)
    }

    /// The configuration in force.
    pub fn configuration<C: Clock>(&self, clients: &Clients, clock: C) -> ConfigSource<AwsOffice, C> {
        ConfigSource::new(self.office(clients), self.rules(), clock, LONGEST_HOLD)
    }

    /// What a configuration that is in force may say here. [`consumer_runs`] is for those that are not
    /// yet.
    pub fn rules(&self) -> Rules {
        Rules { locality: self.locality, secrets: SecretStores::Aws, worker_runs: None }
    }
}

/// How long the consumer function runs, as `consumer_timeout_s` of the Terraform says it.
pub const CONSUMER_TIMEOUT_S: &str = "WAYBILL_CONSUMER_TIMEOUT_S";

/// What the Terraform gives the consumer unless it is told otherwise.
const CONSUMER_RUNS: DurationMs = DurationMs::from_secs(60);

/// A variable of the environment that says something else than it should.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{CONSUMER_TIMEOUT_S} is {0:?}: a whole number of seconds from 1 to 900")]
pub struct NoTimeout(String);

/// How long the consumer runs before Lambda ends it: what a destination's timeout must fit into.
pub fn consumer_runs() -> Result<DurationMs, NoTimeout> {
    runs(env::var(CONSUMER_TIMEOUT_S).ok())
}

fn runs(said: Option<String>) -> Result<DurationMs, NoTimeout> {
    let Some(said) = said.filter(|said| !said.is_empty()) else { return Ok(CONSUMER_RUNS) };
    let seconds = said.parse().ok().filter(|seconds| (1..=900).contains(seconds));
    seconds.map(DurationMs::from_secs).ok_or(NoTimeout(said))
}

/// How many messages the consumer gets at once, as `batch_size` of the Terraform says it.
const BATCH_SIZE: &str = "WAYBILL_BATCH_SIZE";

/// The most messages of one invocation of the consumer; 10 where nobody says so. It measures, and bounds
/// nothing.
pub fn batch_size() -> usize {
    let said = env::var(BATCH_SIZE).ok().and_then(|said| said.parse().ok());
    said.filter(|size| *size > 0).unwrap_or(10)
}

/// When a function ends, from the milliseconds that the runtime tells.
pub fn ends_at(deadline_ms: u64) -> TimeMs {
    TimeMs::from_unix_ms(i64::try_from(deadline_ms).unwrap_or(i64::MAX))
}

/// Whether an endpoint's host is a loopback address or `localhost`.
fn is_on_this_machine(endpoint: &str) -> bool {
    let Some((_, rest)) = endpoint.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // Whatever stands before an @ is no host.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(allow: &str, endpoint: &str) -> Result<Place, NotSet> {
        Place::from(|name| match name {
            "WAYBILL_ALLOW_LOCAL" => Some(allow.to_owned()),
            "AWS_ENDPOINT_URL" => Some(endpoint.to_owned()),
            other => Some(other.to_lowercase()),
        })
    }

    #[test]
    fn local_recipients_are_allowed_only_beside_a_local_endpoint() {
        let rows = [
            ("1", "http://127.0.0.1:4566", Locality::AllowLocal),
            ("1", "http://localhost:4566/", Locality::AllowLocal),
            ("1", "http://[::1]:4566", Locality::AllowLocal),
            ("0", "http://127.0.0.1:4566", Locality::PublicOnly),
            ("1", "", Locality::PublicOnly),
            ("1", "https://dynamodb.eu-central-1.amazonaws.com", Locality::PublicOnly),
            ("1", "https://127.0.0.1.example.com", Locality::PublicOnly),
            ("1", "https://127.0.0.1@example.com", Locality::PublicOnly),
            ("1", "https://example.com/127.0.0.1", Locality::PublicOnly),
        ];
        for (allow, endpoint, expected) in rows {
            assert_eq!(place(allow, endpoint).unwrap().locality(), expected, "{allow} {endpoint}");
        }
    }

    #[test]
    fn the_consumer_runs_for_as_long_as_it_is_said_and_otherwise_for_a_minute() {
        let said = |said: &str| runs(Some(said.to_owned()));
        assert_eq!((runs(None), said("")), (Ok(CONSUMER_RUNS), Ok(CONSUMER_RUNS)));
        assert_eq!(said("5"), Ok(DurationMs::from_secs(5)));
        for odd in ["0", "901", "60s", "-1", "1.5"] {
            assert_eq!(said(odd), Err(NoTimeout(odd.to_owned())));
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let missing = Place::from(|name| (name != "WAYBILL_DLQ_URL").then(|| "x".to_owned()));
        assert_eq!(missing, Err(NotSet("WAYBILL_DLQ_URL")));
    }
}
