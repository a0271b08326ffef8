//! The configuration file: TOML in, a checked [`Config`] out, or every fault at once.
//!
//! Nothing is accepted in silence: a key that nobody knows is a fault (with the key that was
//! probably meant), and so is a key that the design names and this version does not build. Each
//! fault names its line, its dotted key, what is wrong and what is allowed; no fault repeats a
//! value that could be a secret.
//!
//! Order of reading: [`files`] (one text out of several), [`fault`] and `syntax` (a file that is not TOML), then `reader` (a table, key by key), then one file per kind of
//! table: `policies`, `destinations`, `producers`, `event_types`, `schedules`, `system`.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::DeTable;
use waybill_domain::address::Locality;
use waybill_domain::destination::Destination;
use waybill_domain::identity::ConfigRevision;

use crate::config::Config;
use crate::digest::sha256_hex;

pub mod fault;
pub mod files;

mod destinations;
mod event_types;
mod json;
mod nearest;
mod policies;
mod producers;
mod schedules;
mod reader;
mod syntax;
mod system;

pub use fault::ConfigFault;
pub use files::bundle;

use fault::Faults;
use reader::{Keys, Section};

const KEYS: Keys = Keys {
    built: &["policies", "producers", "event_types", "destinations", "system", "schedules", "files"],
    later: &["sources", "operators"],
};

/// What a configuration may say depends on where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Whether recipients on this machine and plain HTTP are taken.
    pub locality: Locality,
    /// Which references to secrets can be resolved there.
    pub secrets: SecretStores,
}

/// The stores of secrets that a backend can ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecretStores {
    /// The environment alone: `env:`.
    #[default]
    Environment,
    /// Those of AWS too: `ssm:` and `secretsmanager:`.
    Aws,
}

/// The rules of the embedded backend.
impl From<Locality> for Rules {
    fn from(locality: Locality) -> Self {
        Self { locality, secrets: SecretStores::Environment }
    }
}

/// Reads and checks a whole configuration. The revision is derived from the text: the same text,
/// the same revision.
pub fn parse(text: &str, rules: impl Into<Rules>) -> Result<Config, Vec<ConfigFault>> {
    let rules = rules.into();
    let faults = Faults::new(text);
    let (root, broken) = DeTable::parse_recoverable(text);
    if !broken.is_empty() {
        syntax::report(text, &broken, &faults);
        // What a broken file seems to say would only add faults that are none.
        return Err(faults.into_list());
    }
    let config = read(&Section::root(root.get_ref(), &faults, &KEYS), &revision(text), rules);
    match (faults.into_list(), config) {
        (none, Some(config)) if none.is_empty() => Ok(config),
        (faults, _) => Err(faults),
    }
}

/// Reads every table, so that every fault is found; what it returns counts only if there is none.
fn read(root: &Section<'_, '_>, revision: &str, rules: Rules) -> Option<Config> {
    let policies = policies::read(root);
    let files = files::Files::of(root);
    let mut schemas = BTreeMap::new();
    let mut destinations: BTreeMap<_, Arc<Destination>> = BTreeMap::new();
    for entry in root.tables("destinations") {
        let schema = destinations::schema(&entry, &files);
        if let Some(destination) = destinations::read(&entry, &policies, rules) {
            schemas.extend(schema.map(|schema| (destination.name.clone(), Arc::new(schema))));
            destinations.insert(destination.name.clone(), Arc::new(destination));
        }
    }
    files.refuse_unused();
    if !root.has_entries("destinations") {
        // Also what a truncated file looks like: with no destinations, every open delivery would
        // be dead-lettered as `destination_removed`.
        root.missing("destinations", "at least one [destinations.NAME]");
    }
    let producers = root.tables("producers");
    let producers = producers.iter().filter_map(|entry| producers::read(entry, rules)).collect();
    let event_types = event_types::read(root);
    let system = root.get("system").as_ref().and_then(system::read).unwrap_or_default();
    let schedules = schedules::read(root, &destinations, &event_types);
    let revision = ConfigRevision::parse(revision).ok()?;
    Some(Config {
        revision,
        destinations,
        schemas,
        producers,
        event_types,
        schedules,
        applied_at: None,
        system,
        holds: Vec::new(),
    })
}

/// `file-` and the first twelve hexadecimal digits of the text's SHA-256.
fn revision(text: &str) -> String {
    let mut digits = sha256_hex(text.as_bytes());
    digits.truncate(12);
    format!("file-{digits}")
}
