//! The configuration file: TOML in, a checked [`Config`] out, or every fault at once.
//!
//! Nothing is accepted in silence: a key that nobody knows is a fault (with the key that was
//! probably meant), and so is a key that the design names and this version does not build. Each
//! fault names its line, its dotted key, what is wrong and what is allowed; no fault repeats a
//! value that could be a secret.
//!
//! Order of reading: [`fault`] and `syntax` (a file that is not TOML), then `reader` (a table, key by key), then one file per kind of
//! table: `policies`, `destinations`, `producers`, `event_types`, `system`.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::DeTable;
use waybill_domain::address::Locality;
use waybill_domain::destination::Destination;
use waybill_domain::identity::ConfigRevision;

use crate::config::Config;
use crate::digest::sha256_hex;

pub mod fault;

mod destinations;
mod event_types;
mod nearest;
mod policies;
mod producers;
mod reader;
mod syntax;
mod system;

pub use fault::ConfigFault;

use fault::Faults;
use reader::{Keys, Section};

const KEYS: Keys = Keys {
    built: &["policies", "producers", "event_types", "destinations", "system"],
    later: &["sources", "schedules", "operators"],
};

/// Reads and checks a whole configuration. `locality` says whether recipients on this machine and
/// plain HTTP are taken. The revision is derived from the text: the same text, the same revision.
pub fn parse(text: &str, locality: Locality) -> Result<Config, Vec<ConfigFault>> {
    let faults = Faults::new(text);
    let (root, broken) = DeTable::parse_recoverable(text);
    if !broken.is_empty() {
        syntax::report(text, &broken, &faults);
        // What a broken file seems to say would only add faults that are none.
        return Err(faults.into_list());
    }
    let config = read(&Section::root(root.get_ref(), &faults, &KEYS), &revision(text), locality);
    match (faults.into_list(), config) {
        (none, Some(config)) if none.is_empty() => Ok(config),
        (faults, _) => Err(faults),
    }
}

/// Reads every table, so that every fault is found; what it returns counts only if there is none.
fn read(root: &Section<'_, '_>, revision: &str, locality: Locality) -> Option<Config> {
    let policies = policies::read(root);
    let mut destinations: BTreeMap<_, Arc<Destination>> = BTreeMap::new();
    for entry in root.tables("destinations") {
        if let Some(destination) = destinations::read(&entry, &policies, locality) {
            destinations.insert(destination.name.clone(), Arc::new(destination));
        }
    }
    if !root.has_entries("destinations") {
        // Also what a truncated file looks like: with no destinations, every open delivery would
        // be dead-lettered as `destination_removed`.
        root.missing("destinations", "at least one [destinations.NAME]");
    }
    let producers = root.tables("producers").iter().filter_map(producers::read).collect();
    let event_types = event_types::read(root);
    let system = root.get("system").as_ref().and_then(system::read).unwrap_or_default();
    let revision = ConfigRevision::parse(revision).ok()?;
    Some(Config { revision, destinations, producers, event_types, system, holds: Vec::new() })
}

/// `file-` and the first twelve hexadecimal digits of the text's SHA-256.
fn revision(text: &str) -> String {
    let mut digits = sha256_hex(text.as_bytes());
    digits.truncate(12);
    format!("file-{digits}")
}
