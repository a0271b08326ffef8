//! The configuration in force, with the holds in force: read from the stores, and held for a moment.
//!
//! A revision that cannot be read or used changes nothing: what was in force stays, until a person
//! mended it. Without any, nothing is sent: nobody knows what is held.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;
use tokio::sync::Mutex;
use waybill_domain::hold::HoldRule;
use waybill_domain::time::{DurationMs, TimeMs};

use crate::acts::all_open;
use crate::config::Config;
use crate::config_file::{self, ConfigFault, Rules};
use crate::office::{Office, Revision, Revisions};
use crate::ports::{Clock, PortError};

/// The longest time for which a process may hold what it read: a hold or a stop bites within it.
pub const LONGEST_HOLD: DurationMs = DurationMs::from_secs(10);

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

fn list(faults: &[ConfigFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What a process makes of a configuration for itself.
type Adjust = Box<dyn Fn(&mut Config) + Send + Sync>;

/// The configuration in force, as far as this process knows.
pub struct ConfigSource<S, C> {
    store: S,
    rules: Rules,
    clock: C,
    hold: DurationMs,
    adjust: Option<Adjust>,
    held: Mutex<Option<Held>>,
}

impl<S, C> fmt::Debug for ConfigSource<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigSource").field("rules", &self.rules).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Held {
    /// Which one it is.
    number: u64,
    config: Arc<Config>,
    until: TimeMs,
}

impl<S: Office + Revisions, C: Clock> ConfigSource<S, C> {
    /// Read from this store by these rules; what was read is held for `hold`, at most
    /// [`LONGEST_HOLD`].
    pub fn new(store: S, rules: Rules, clock: C, hold: DurationMs) -> Self {
        Self { store, rules, clock, hold: hold.min(LONGEST_HOLD), adjust: None, held: Mutex::default() }
    }

    /// The same, with what this process makes of every configuration that it reads.
    pub fn adjusting(self, adjust: impl Fn(&mut Config) + Send + Sync + 'static) -> Self {
        Self { adjust: Some(Box::new(adjust)), ..self }
    }

    /// The configuration in force, or the one that was before if this one cannot be had.
    pub async fn current(&self) -> Result<Arc<Config>, ConfigError> {
        let mut held = self.held.lock().await;
        let now = self.clock.now();
        if let Some(held) = held.as_ref().filter(|held| now < held.until) {
            return Ok(held.config.clone());
        }
        let until = now.plus(self.hold);
        let next = match (self.read(held.as_ref()).await, held.take()) {
            (Ok((number, config)), _) => Held { number, config, until },
            (Err(error), Some(before)) => {
                let revision = before.config.revision.as_str();
                tracing::error!(%error, revision, "the configuration cannot be read: this one stays in force");
                Held { until, ..before }
            }
            (Err(error), None) => return Err(error),
        };
        let config = next.config.clone();
        *held = Some(next);
        Ok(config)
    }

    async fn read(&self, before: Option<&Held>) -> Result<(u64, Arc<Config>), ConfigError> {
        let revision = self.store.in_force().await?.ok_or(ConfigError::None)?;
        let holds = self.holds().await?;
        if let Some(before) = before.filter(|before| before.number == revision.number) {
            if before.config.holds == holds {
                return Ok((before.number, before.config.clone()));
            }
            return Ok((before.number, Arc::new(Config { holds, ..Config::clone(&before.config) })));
        }
        let mut config = self.parsed(&revision).await?;
        config.holds = holds;
        if let Some(adjust) = &self.adjust {
            adjust(&mut config);
        }
        Ok((revision.number, Arc::new(config)))
    }

    async fn holds(&self) -> Result<Vec<HoldRule>, PortError> {
        Ok(all_open(&self.store).await?.iter().filter_map(|order| order.hold_rule()).collect())
    }

    async fn parsed(&self, revision: &Revision) -> Result<Config, ConfigError> {
        let name = revision.revision.to_string();
        let document = self.store.document(&revision.revision).await?.ok_or_else(|| {
            let cause = format!("the configuration {name} is in force, and its document is missing").into();
            PortError::NeedsPerson { port: "ledger", cause }
        })?;
        let mut config = config_file::parse(&document, self.rules)
            .map_err(|faults| ConfigError::Faulty { revision: name, faults })?;
        config.applied_at = Some(revision.signed.at);
        for schedule in &mut config.schedules {
            schedule.since = revision.schedules.get(&schedule.name).copied();
        }
        Ok(config)
    }
}
