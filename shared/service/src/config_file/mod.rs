//! The configuration file: TOML in, a checked [`Config`] out, or every fault at once.
//!
//! Nothing is accepted in silence: a key that nobody knows is a fault (with the key that was
//! probably meant), and so is a key that the design names and this version does not build. Each
//! fault names its line, its dotted key, what is wrong and what is allowed; no fault repeats a
//! value that could be a secret.
//!
//! Order of reading: [`files`] (one text out of several), [`fault`] and `syntax` (a file that is not TOML), then [`mod@reference`] (what can be written) and `reader` (a table, key by key), then one file per kind of
//! table: `policies`, `destinations` (with `destination_keys` and `suspending`), `producers`, `operators`, `sources` (with `schemes`), `event_types`, `schedules`, `system`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toml::de::DeTable;
use waybill_domain::address::Locality;
use waybill_domain::destination::Destination;
use waybill_domain::identity::ConfigRevision;
use waybill_domain::time::DurationMs;

use crate::config::Config;
use crate::digest::sha256_hex;

pub mod fault;
pub mod files;
pub mod reference;

mod destination_keys;
mod destinations;
mod event_types;
mod json;
mod nearest;
mod operators;
mod policies;
mod producers;
mod schedules;
mod reader;
mod schemes;
mod sources;
mod suspending;
mod syntax;
mod system;

pub use fault::ConfigFault;
pub use files::{bundle, parse_with_files};
pub use nearest::nearest;
pub use reference::reference;

use fault::Faults;
use reader::{Entry, Section};
use reference::{Key, Kind, Table};
use sources::Destinations;

const DESTINATIONS_RULE: &str = "at least one [destinations.NAME]";

const TABLE: Table = Table {
    path: "",
    says: "Tables, and in all of them but [system] and [files] one table for each name.",
    keys: &[
        Key::new("policies", Kind::Table, "retry rules by name"),
        Key::new("producers", Kind::Table, "who may publish over HTTP"),
        Key::new("sources", Kind::Table, "whose webhooks come in"),
        Key::new("event_types", Kind::Table, "what event types ask for"),
        Key::new("destinations", Kind::Table, "the recipients").required().rule(DESTINATIONS_RULE),
        Key::new("operators", Kind::Table, "who may operate; without any, nobody is restricted"),
        Key::new("system", Kind::Table, "what is neither a policy's nor a destination's"),
        Key::new("schedules", Kind::Table, "what is published by the calendar"),
        Key::new(
            "files",
            Kind::Table,
            "the files that the configuration names, within it: `waybill config bundle` writes it, nobody by hand",
        ),
    ],
    later: &[],
};

/// What a configuration may say depends on where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Whether recipients on this machine and plain HTTP are taken.
    pub locality: Locality,
    /// Which references to secrets can be resolved there.
    pub secrets: SecretStores,
    /// How long a worker runs there before it is ended, if it is: what a destination's timeout must
    /// fit into. `None` for a configuration that is in force already: what would be refused now must
    /// not keep its other destinations from being served.
    pub worker_runs: Option<DurationMs>,
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
        Self { locality, secrets: SecretStores::Environment, worker_runs: None }
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
    let config = read(&Section::root(root.get_ref(), &faults, &TABLE), &revision(text), rules);
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
    let mut measured = BTreeSet::new();
    let mut destinations: BTreeMap<_, Arc<Destination>> = BTreeMap::new();
    let written = root.tables("destinations");
    for entry in &written {
        let schema = destinations::schema(entry, &files);
        let is_measured = destinations::is_measured(entry);
        if let Some(destination) = destinations::read(entry, &policies, rules) {
            measured.extend(is_measured.then(|| destination.name.clone()));
            schemas.extend(schema.map(|schema| (destination.name.clone(), Arc::new(schema))));
            destinations.insert(destination.name.clone(), Arc::new(destination));
        }
    }
    files.refuse_unused();
    if !root.has_entries("destinations") {
        // Also what a truncated file looks like: with no destinations, every open delivery would
        // be dead-lettered as `destination_removed`.
        root.missing("destinations", DESTINATIONS_RULE);
    }
    let producers = root.tables("producers");
    let producers = producers.iter().filter_map(|entry| producers::read(entry, rules)).collect();
    let known = Destinations { written: written.iter().map(Entry::name).collect(), read: &destinations };
    let sources = root.tables("sources");
    let sources = sources.iter().filter_map(|entry| sources::read(entry, &known, rules)).collect();
    let operators = root.tables("operators").iter().filter_map(operators::read).collect();
    let event_types = event_types::read(root);
    let system = root.get("system").as_ref().and_then(system::read).unwrap_or_default();
    let schedules = schedules::read(root, &known, &policies, &event_types);
    let revision = ConfigRevision::parse(revision).ok()?;
    Some(Config {
        revision,
        destinations,
        policies: policies::by_name(policies),
        schemas,
        measured,
        producers,
        sources,
        event_types,
        schedules,
        operators,
        applied_at: None,
        system,
        holds: Vec::new(),
        eased: BTreeMap::new(),
        resumed: Vec::new(),
    })
}

/// `file-` and the first twelve hexadecimal digits of the text's SHA-256.
fn revision(text: &str) -> String {
    let mut digits = sha256_hex(text.as_bytes());
    digits.truncate(12);
    format!("file-{digits}")
}
