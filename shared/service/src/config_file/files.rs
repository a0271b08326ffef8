//! `[files]`: the files that a configuration names, within it, so that a revision is one text.
//!
//! Whoever reads a configuration from a folder bundles it first; everybody else sees the bundled text.

use std::borrow::Borrow as _;
use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};
use waybill_domain::fault::InvalidField;

use super::fault::{ConfigFault, Faults};
use super::reader::{Entry, Section, join};
use super::{Rules, parse};
use crate::config::Config;
use crate::payload_schema::PayloadSchema;

/// The largest file that is taken: 256 KiB.
const LARGEST: usize = 256 * 1024;

const HEAD: &str = "# What the files named above say, added by the bundling.\n[files]\n";

pub(super) const NAME_RULE: &str = "the path of a file beside the configuration, such as \"schemas/payment.json\": \
                         relative, with /, without .. or control characters, at most 256 bytes";

/// The configuration with every file that it names in a `[files]` table at its end. A text that has
/// one already, or names no file, stays as it is. `read_file` takes the name as it is written and says
/// why it cannot be read.
///
/// A text that is not TOML stays as it is too: [`parse`] says what is wrong with it.
pub fn bundle(
    text: &str,
    read_file: impl Fn(&str) -> Result<String, String>,
) -> Result<String, Vec<ConfigFault>> {
    match gathered(text, read_file) {
        (bundled, none) if none.is_empty() => Ok(bundled),
        (_, faults) => Err(faults),
    }
}

/// Reads and checks a configuration with the files that it names: what is wrong with one of these is a
/// fault beside every other.
pub fn parse_with_files(
    text: &str,
    read_file: impl Fn(&str) -> Result<String, String>,
    rules: impl Into<Rules>,
) -> Result<Config, Vec<ConfigFault>> {
    let (bundled, mut faults) = gathered(text, read_file);
    match parse(&bundled, rules) {
        Ok(config) if faults.is_empty() => Ok(config),
        Ok(_) => Err(faults),
        Err(others) => {
            // That a file which cannot be read is not in the bundle follows from it.
            let is_new = |other: &ConfigFault| faults.iter().all(|known| known.key != other.key);
            let others: Vec<ConfigFault> = others.into_iter().filter(is_new).collect();
            faults.extend(others);
            faults.sort_by_key(|fault| fault.line);
            Err(faults)
        }
    }
}

/// The bundle of what can be read, and what is wrong with the rest.
fn gathered(text: &str, read_file: impl Fn(&str) -> Result<String, String>) -> (String, Vec<ConfigFault>) {
    let (root, broken) = DeTable::parse_recoverable(text);
    let root = root.get_ref();
    if !broken.is_empty() || root.contains_key("files") {
        return (text.to_owned(), Vec::new());
    }
    let faults = Faults::new(text);
    let mut read: BTreeMap<&str, String> = BTreeMap::new();
    for (key, at, name) in named(root) {
        if read.contains_key(name) {
            continue;
        }
        let file = check_name(&key, name)
            .map_err(|invalid| (invalid.fault, invalid.rule))
            .and_then(|()| read_file(name).map_err(|why| (format!("{name:?}: {why}"), NAME_RULE.to_owned())))
            .and_then(|file| match file.len() {
                0..=LARGEST => Ok(file),
                length => Err((format!("{name:?} has {length} bytes"), format!("at most {LARGEST}"))),
            });
        match file {
            Ok(file) => drop(read.insert(name, file)),
            Err((fault, rule)) => faults.add(at, &key, fault, rule),
        }
    }
    let faults = faults.into_list();
    if read.is_empty() {
        return (text.to_owned(), faults);
    }
    let entries = read.iter().map(|(name, file)| format!("{} = {}\n", quoted(name), literal(file)));
    let gap = if text.ends_with('\n') || text.is_empty() { "\n" } else { "\n\n" };
    (format!("{text}{gap}{HEAD}{}", entries.collect::<String>()), faults)
}

/// Every file that is named: by which key, at which place.
fn named<'f>(root: &'f DeTable<'_>) -> Vec<(String, usize, &'f str)> {
    let table = |value: &'f DeValue<'_>| match value {
        DeValue::Table(table) => Some(table),
        _ => None,
    };
    let Some(destinations) = root.get("destinations").and_then(|value| table(value.get_ref())) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (name, destination) in destinations {
        let entry = table(destination.get_ref()).and_then(|section| section.get_key_value("schema"));
        if let Some((key, value)) = entry
            && let DeValue::String(file) = value.get_ref()
        {
            let name: &str = name.get_ref().borrow();
            let path = join(&join("destinations", name), "schema");
            found.push((path, key.span().start, file.as_ref()));
        }
    }
    found.sort_by_key(|(_, at, _)| *at);
    found
}

fn check_name(field: &str, name: &str) -> Result<(), InvalidField> {
    let sound = (1..=256).contains(&name.len())
        && !name.chars().any(|c| c.is_control() || c == '\\' || c == ':')
        && name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if sound { Ok(()) } else { Err(InvalidField::new(field, "is not such a name", NAME_RULE)) }
}

/// As a literal, so that a file stands in the bundle as it stands on disk; with escapes where TOML has
/// no literal for it.
fn literal(file: &str) -> String {
    let plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if file.contains("'''") || file.ends_with('\'') || !file.chars().all(plain) {
        return quoted(file);
    }
    // The first line break behind the quotes is no part of the text.
    format!("'''\n{file}'''")
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The files of a bundled text, and which of them somebody named.
pub(super) struct Files<'f, 't> {
    entries: Vec<Entry<'f, 't>>,
    used: std::cell::RefCell<Vec<bool>>,
}

impl<'f, 't> Files<'f, 't> {
    pub(super) fn of(root: &Section<'f, 't>) -> Self {
        let entries = root.tables("files");
        let used = vec![false; entries.len()].into();
        Self { entries, used }
    }

    /// The schema that a destination names.
    pub(super) fn schema(&self, named: &Entry<'_, '_>) -> Option<PayloadSchema> {
        let name = named.parsed(|field, text| check_name(field, text).map(|()| text.to_owned()))?;
        let Some(at) = self.entries.iter().position(|entry| entry.name() == name) else {
            named.refuse(
                format!("{name:?} is not in [files]"),
                "a file that is bundled with the configuration",
            );
            return None;
        };
        self.used.borrow_mut()[at] = true;
        let text = self.entries[at].as_text()?;
        PayloadSchema::parse(&name, text)
            .map_err(|fault| {
                named.refuse(format!("{name:?} {fault}"), "a JSON Schema that refers only to itself")
            })
            .ok()
    }

    /// Reports what nobody named.
    pub(super) fn refuse_unused(&self) {
        for (entry, used) in self.entries.iter().zip(self.used.borrow().iter()) {
            if !used {
                entry.refuse("is named by no destination", "only files that a schema key names");
            }
        }
    }
}
