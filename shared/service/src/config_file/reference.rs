//! What the file may say, as data: every kind of table with its keys. The tables are read by what is
//! written here (`reader`), and `docs/CONFIGURATION.md` is generated from it.

use super::{
    destination_keys, event_types, operators, policies, producers, schedules, schemes, sources, system,
};

/// Every kind of table, in the order in which a newcomer meets them.
pub fn reference() -> [&'static Table; 10] {
    [
        &super::TABLE,
        &destination_keys::TABLE,
        &policies::TABLE,
        &producers::TABLE,
        &sources::TABLE,
        &schemes::TABLE,
        &event_types::TABLE,
        &schedules::TABLE,
        &operators::TABLE,
        &system::TABLE,
    ]
}

/// A kind of table.
#[derive(Debug)]
pub struct Table {
    /// Its header, such as `destinations.NAME`; empty for the file itself.
    pub path: &'static str,
    /// What it is for, in a sentence.
    pub says: &'static str,
    /// The keys that can be written.
    pub keys: &'static [Key],
    /// Those that a later version will take, and this one refuses by name.
    pub later: &'static [&'static str],
}

impl Table {
    /// The names of the keys that can be written.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }
}

/// A key that can be written.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What stands behind the `=`.
    pub kind: Kind,
    /// What counts where it is not written.
    pub unwritten: Unwritten,
    /// What is allowed beyond the kind: the very words with which a fault's rule begins.
    pub rule: Option<&'static str>,
    /// What it does, in a few words.
    pub says: &'static str,
}

/// What counts where a key is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwritten {
    /// Nothing of it.
    Nothing,
    /// This value, as TOML.
    Default(&'static str),
    /// The file is refused.
    Refused,
}

impl Key {
    /// A key that may be left out, and then is nothing.
    pub(super) const fn new(name: &'static str, kind: Kind, says: &'static str) -> Self {
        Self { name, kind, unwritten: Unwritten::Nothing, rule: None, says }
    }

    /// The same, but it must be written.
    pub(super) const fn required(self) -> Self {
        Self { unwritten: Unwritten::Refused, ..self }
    }

    /// The same, but left out it is this, as TOML.
    pub(super) const fn default(self, toml: &'static str) -> Self {
        Self { unwritten: Unwritten::Default(toml), ..self }
    }

    /// The same with what is allowed.
    pub(super) const fn rule(self, rule: &'static str) -> Self {
        Self { rule: Some(rule), ..self }
    }
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A text that is a span of time.
    Duration,
    /// True or false.
    Truth,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// A list of texts.
    List,
    /// A table.
    Table,
    /// Whatever JSON has.
    Any,
}

impl Kind {
    /// What a value of another kind should have been, as a fault says it.
    pub const fn wanted(self) -> &'static str {
        match self {
            Self::Text | Self::Duration => "a text in quotes",
            Self::Truth => "true or false",
            Self::Whole => "a whole number",
            Self::Number => "a number",
            Self::List => "a list in square brackets",
            Self::Table => "a table",
            Self::Any => "any value that JSON has",
        }
    }
}
