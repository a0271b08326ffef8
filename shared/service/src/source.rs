//! The configuration in force, with the holds in force: read from the stores, and held for a moment.
//!
//! A revision that cannot be read or used changes nothing: what was in force stays, until a person
//! mended it. Without any, nothing is sent: nobody knows what is held.

use std::fmt;
use std::sync::Arc;

use futures::lock::Mutex;
use thiserror::Error;
use waybill_domain::time::{DurationMs, TimeMs};

use crate::acts::{all_open, is_within_its_book};
use crate::config::Config;
use crate::config_file::{self, ConfigFault, Rules};
use crate::easing::Said;
use crate::office::{Office, Revision, Revisions};
use crate::ports::{Clock, PortError};
use crate::schedule::history::dated;

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

/// What a look at it found.
#[derive(Debug, Clone)]
pub struct Look {
    /// The configuration in force.
    pub config: Arc<Config>,
    /// How often the holds, or how far they are eased, have changed since this process first looked.
    /// Whoever finds the same count as before has missed nothing: not even a hold that was placed and
    /// lifted meanwhile.
    pub changes_of_holds: u64,
}

#[derive(Debug)]
struct Held {
    /// Which one it is.
    number: u64,
    look: Look,
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
        self.look().await.map(|look| look.config)
    }

    /// The same, and whether the holds were others meanwhile.
    pub async fn look(&self) -> Result<Look, ConfigError> {
        let mut held = self.held.lock().await;
        let now = self.clock.now();
        if let Some(held) = held.as_ref().filter(|held| now < held.until) {
            return Ok(held.look.clone());
        }
        let until = now.plus(self.hold);
        let next = match (self.read(held.as_ref()).await, held.take()) {
            (Ok((number, look)), _) => Held { number, look, until },
            (Err(error), Some(before)) => {
                stays(&before, &error);
                Held { until, ..before }
            }
            (Err(error), None) => return Err(error),
        };
        let look = next.look.clone();
        *held = Some(next);
        Ok(look)
    }

    async fn read(&self, before: Option<&Held>) -> Result<(u64, Look), ConfigError> {
        let revision = self.store.in_force().await?.ok_or(ConfigError::None)?;
        let open = all_open(&self.store).await?;
        let (number, config) = match before.filter(|before| before.number == revision.number) {
            Some(before) => (before.number, before.look.config.clone()),
            None => match (self.parsed(&revision).await, before) {
                (Ok(mut config), _) => {
                    if let Some(adjust) = &self.adjust {
                        adjust(&mut config);
                    }
                    (revision.number, Arc::new(config))
                }
                // The holds bite all the same.
                (Err(error), Some(before)) => {
                    stays(before, &error);
                    (before.number, before.look.config.clone())
                }
                (Err(error), None) => return Err(error),
            },
        };
        let believed = open.iter().filter(|order| is_within_its_book(order));
        let Said { holds, eased, resumed } = Said::by(believed, &config);
        let known = before.map(|before| &before.look.config);
        let is_change = known.is_some_and(|known| known.holds != holds || known.eased != eased);
        let changes_of_holds = before.map_or(0, |before| before.look.changes_of_holds) + u64::from(is_change);
        let is_same = config.holds == holds && config.eased == eased && config.resumed == resumed;
        let config = match is_same {
            true => config,
            false => Arc::new(Config { holds, eased, resumed, ..Config::clone(&config) }),
        };
        Ok((number, Look { config, changes_of_holds }))
    }

    async fn parsed(&self, revision: &Revision) -> Result<Config, ConfigError> {
        let name = revision.revision.to_string();
        let document = self.store.document(&revision.revision).await?.ok_or_else(|| {
            let cause = format!("the configuration {name} is in force, and its document is missing").into();
            PortError::NeedsPerson { port: "ledger", cause }
        })?;
        let config = config_file::parse(&document, self.rules)
            .map_err(|faults| ConfigError::Faulty { revision: name, faults })?;
        Ok(dated(config, revision))
    }
}

fn stays(before: &Held, error: &ConfigError) {
    let revision = before.look.config.revision.as_str();
    tracing::error!(%error, revision, "the configuration cannot be read: this one stays in force");
}
