//! The configuration: the document in S3, a pointer to it in the ledger's table.
//!
//! A document lies under the digest of its text and never changes; the pointer says which one is in
//! force. A process holds what it read for at most ten seconds. A pointer that cannot be read or a
//! document that cannot be used changes nothing: what was in force stays, until a person mended it.

use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::primitives::ByteStream;
use thiserror::Error;
use tokio::sync::Mutex;
use waybill_domain::identity::ConfigRevision;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::Config;
use waybill_service::config_file::{self, ConfigFault, Rules};
use waybill_service::ports::{Clock, PortError};

use crate::clients::Clients;
use crate::fault::{Fault, LEDGER, of_sdk};
use crate::range::text;
use crate::table::{self, CONFIG, CURRENT};

/// How long a process holds a configuration before it looks at the pointer again.
pub const HOLD: DurationMs = DurationMs::from_secs(10);

/// Which revision a pointer names.
const REVISION: &str = "revision";
/// The name of the document in the bucket.
const DOCUMENT: &str = "document";
/// When it was put in force.
const APPLIED_AT: &str = "applied_at";

/// Why there is no configuration to work with.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// None was ever applied.
    #[error("no configuration was applied yet")]
    None,
    /// The stores cannot be asked.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The document has faults.
    #[error("the configuration {revision} has faults: {}", list(faults))]
    Faulty {
        /// Which one.
        revision: String,
        /// What is wrong.
        faults: Vec<ConfigFault>,
    },
}

/// Where configurations are kept.
#[derive(Debug, Clone)]
pub struct ConfigStore {
    clients: Clients,
    table: String,
    bucket: String,
}

impl ConfigStore {
    /// In this table and this bucket.
    pub fn new(clients: Clients, table: impl Into<String>, bucket: impl Into<String>) -> Self {
        Self { clients, table: table.into(), bucket: bucket.into() }
    }

    /// Checks a document, stores it, and puts it in force. Answers its revision.
    pub async fn apply(
        &self,
        document: &str,
        rules: Rules,
        now: TimeMs,
    ) -> Result<ConfigRevision, ConfigError> {
        let config = config_file::parse(document, rules)
            .map_err(|faults| ConfigError::Faulty { revision: "that was given".to_owned(), faults })?;
        let name = format!("config/{}.toml", config.revision);
        let body = ByteStream::from(document.as_bytes().to_vec());
        let putting = self.clients.s3.put_object().bucket(&self.bucket).key(&name).body(body);
        putting.send().await.map_err(|error| of_sdk(LEDGER, error))?;
        // The history first: what was in force can always be told.
        let history = format!("REVISION#{}#{}", table::digits(now), config.revision);
        for sort in [history.as_str(), CURRENT] {
            self.clients
                .dynamo
                .put_item()
                .table_name(&self.table)
                .item(table::PK, AttributeValue::S(CONFIG.to_owned()))
                .item(table::SK, AttributeValue::S(sort.to_owned()))
                .item(REVISION, AttributeValue::S(config.revision.to_string()))
                .item(DOCUMENT, AttributeValue::S(name.clone()))
                .item(APPLIED_AT, AttributeValue::S(now.to_string()))
                .send()
                .await
                .map_err(|error| of_sdk(LEDGER, error))?;
        }
        Ok(config.revision)
    }

    /// The pointer: which revision is in force, and the name of its document.
    async fn current(&self) -> Result<Pointer, ConfigError> {
        let read = self
            .clients
            .dynamo
            .get_item()
            .table_name(&self.table)
            .key(table::PK, AttributeValue::S(CONFIG.to_owned()))
            .key(table::SK, AttributeValue::S(CURRENT.to_owned()))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| of_sdk(LEDGER, error))?;
        let item = read.item.ok_or(ConfigError::None)?;
        Ok(Pointer {
            revision: text(&item, REVISION)?.to_owned(),
            document: text(&item, DOCUMENT)?.to_owned(),
            // Whoever applies writes it; what cannot be read is not known.
            applied_at: text(&item, APPLIED_AT).ok().and_then(|at| TimeMs::parse(APPLIED_AT, at).ok()),
        })
    }

    async fn document(&self, pointer: &Pointer) -> Result<String, ConfigError> {
        let getting = self.clients.s3.get_object().bucket(&self.bucket).key(&pointer.document);
        let object = getting.send().await.map_err(|error| of_sdk(LEDGER, error))?;
        let bytes =
            object.body.collect().await.map_err(|error| {
                Fault::Passing(format!("the configuration broke off: {error}")).at(LEDGER)
            })?;
        let text = String::from_utf8(bytes.to_vec());
        Ok(text.map_err(|_| Fault::Refused("the configuration is not UTF-8".to_owned()).at(LEDGER))?)
    }
}

struct Pointer {
    revision: String,
    document: String,
    applied_at: Option<TimeMs>,
}

/// The configuration that is in force, as far as this process knows.
#[derive(Debug)]
pub struct ConfigSource<C> {
    store: ConfigStore,
    rules: Rules,
    clock: C,
    held: Mutex<Option<Held>>,
}

#[derive(Debug)]
struct Held {
    config: Arc<Config>,
    until: TimeMs,
}

impl<C: Clock> ConfigSource<C> {
    /// Read from this store, by these rules.
    pub fn new(store: ConfigStore, rules: Rules, clock: C) -> Self {
        Self { store, rules, clock, held: Mutex::default() }
    }

    /// The configuration in force, or the one that was before if this one cannot be had.
    pub async fn current(&self) -> Result<Arc<Config>, ConfigError> {
        let mut held = self.held.lock().await;
        let now = self.clock.now();
        if let Some(held) = held.as_ref().filter(|held| now < held.until) {
            return Ok(held.config.clone());
        }
        let before = held.take().map(|held| held.config);
        let config = match (self.read(before.as_deref()).await, before) {
            (Ok(Some(read)), _) => Arc::new(read),
            (Ok(None), Some(before)) => before,
            (Err(error), Some(before)) => {
                let revision = before.revision.as_str();
                tracing::error!(%error, revision, "the configuration cannot be read: this one stays in force");
                before
            }
            (Err(error), None) => return Err(error),
            (Ok(None), None) => return Err(ConfigError::None),
        };
        *held = Some(Held { config: config.clone(), until: now.plus(HOLD) });
        Ok(config)
    }

    /// Reads what is in force; `None` if that is what was there before.
    async fn read(&self, before: Option<&Config>) -> Result<Option<Config>, ConfigError> {
        let pointer = self.store.current().await?;
        if before.is_some_and(|before| before.revision.as_str() == pointer.revision) {
            return Ok(None);
        }
        let document = self.store.document(&pointer).await?;
        match config_file::parse(&document, self.rules) {
            Ok(config) => Ok(Some(Config { applied_at: pointer.applied_at, ..config })),
            Err(faults) => Err(ConfigError::Faulty { revision: pointer.revision, faults }),
        }
    }
}

fn list(faults: &[ConfigFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
