//! The audit: who did what, when and why, chained so that a missing or altered entry shows.
//!
//! There is one book for each tenant, and one (`*`) for what concerns more than one. An entry's hash
//! covers everything that it says and the hash of the entry before it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::authority::Book;
use crate::fault::InvalidField;
use crate::identity::ulid;
use crate::time::TimeMs;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// A redrive run was started from a plan.
    RedriveStarted,
    /// A run was stopped.
    RedriveStopped,
    /// A stopped, halted or sampled run goes on.
    RedriveResumed,
    /// A run halted itself: most of its outcomes failed again.
    RedriveHalted,
    /// A hold was placed.
    HoldAdded,
    /// A hold was lifted.
    HoldLifted,
    /// Automation suspended a destination.
    Suspended,
    /// A suspension ended.
    SuspensionLifted,
    /// A configuration was put in force.
    ConfigApplied,
    /// An earlier configuration was put in force again.
    ConfigRolledBack,
    /// A dead letter was closed: nothing will be done.
    Closed,
    /// A dead letter was resolved: its effect is known to stand.
    Resolved,
    /// A dead letter that was to be ended was none any more: nothing was ended.
    NothingEnded,
    /// An act was refused: its operator is not authorised for it.
    Refused,
}

impl Act {
    /// The act as it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Act::RedriveStarted => "redrive_started",
            Act::RedriveStopped => "redrive_stopped",
            Act::RedriveResumed => "redrive_resumed",
            Act::RedriveHalted => "redrive_halted",
            Act::HoldAdded => "hold_added",
            Act::HoldLifted => "hold_lifted",
            Act::Suspended => "suspended",
            Act::SuspensionLifted => "suspension_lifted",
            Act::ConfigApplied => "config_applied",
            Act::ConfigRolledBack => "config_rolled_back",
            Act::Closed => "closed",
            Act::Resolved => "resolved",
            Act::NothingEnded => "nothing_ended",
            Act::Refused => "refused",
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Who acts when no person does.
pub const AUTOMATION: &str = "automation";

/// Reads who acts: 1 to 256 bytes of UTF-8 without control characters, and not `automation`, in whatever
/// case: a reader of the audit must not take the one for the other.
pub fn who(text: &str) -> Result<String, InvalidField> {
    let text = sentence("operator", text, 256)?;
    if text.eq_ignore_ascii_case(AUTOMATION) {
        return Err(InvalidField::new("operator", "is automation's own name", "a person's or a role's name"));
    }
    Ok(text)
}

/// Reads why something is done: 1 to 1,000 bytes of UTF-8 without control characters.
pub fn why(text: &str) -> Result<String, InvalidField> {
    sentence("why", text, 1000)
}

fn sentence(field: &str, text: &str, longest: usize) -> Result<String, InvalidField> {
    let rule = || format!("1 to {longest} bytes of UTF-8 without control characters, and not only spaces");
    let text = text.trim();
    if text.is_empty() {
        return Err(InvalidField::new(field, "is empty", rule()));
    }
    if text.len() > longest {
        return Err(InvalidField::new(field, format!("has {} bytes", text.len()), rule()));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(InvalidField::new(field, format!("has {c:?}"), rule())),
        None => Ok(text.to_owned()),
    }
}

/// What an entry will say, before it has its place in a book.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Whose matter it is.
    pub book: Book,
    /// When.
    pub at: TimeMs,
    /// Who: an operator's name, or [`AUTOMATION`].
    pub who: String,
    /// What was done.
    pub act: Act,
    /// To what: a run, a hold, a revision, a delivery.
    pub subject: String,
    /// Why, in the operator's words.
    pub why: Option<String>,
    /// What else belongs to it: a selection, counts, a diff. Never a payload, a header or a secret.
    pub details: Value,
}

/// An entry in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its own identifier: `aud_` and a ULID.
    pub id: String,
    /// Whose book.
    pub book: Book,
    /// Its place in the book, from 1 on without gaps.
    pub seq: u64,
    /// When.
    #[serde(with = "crate::time::rfc3339")]
    pub at: TimeMs,
    /// Who.
    pub who: String,
    /// What was done.
    pub act: Act,
    /// To what.
    pub subject: String,
    /// Why.
    pub why: Option<String>,
    /// What else belongs to it.
    pub details: Value,
    /// The hash of the entry before it; [`NOTHING_BEFORE`] for the first.
    pub previous: String,
    /// SHA-256 over all of the above, in lower-case hexadecimal.
    pub hash: String,
}

/// What the first entry of a book follows.
pub const NOTHING_BEFORE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

impl Entry {
    /// The entry that follows `head` in its book. `chance` makes its identifier its own.
    pub fn after(head: Option<&Entry>, draft: Draft, chance: &str) -> Self {
        let Draft { book, at, who, act, subject, why, details } = draft;
        let mut entry = Self {
            id: ulid("aud", at, chance),
            book,
            seq: head.map_or(1, |head| head.seq + 1),
            at,
            who,
            act,
            subject,
            why,
            details,
            previous: head.map_or_else(|| NOTHING_BEFORE.to_owned(), |head| head.hash.clone()),
            hash: String::new(),
        };
        entry.hash = entry.digest();
        entry
    }

    /// SHA-256 over everything but the hash itself, as canonical JSON (keys in order).
    fn digest(&self) -> String {
        let mut said = serde_json::to_value(self).expect("an entry has only string keys");
        if let Some(fields) = said.as_object_mut() {
            fields.remove("hash");
        }
        let text = canonical(said).to_string();
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The same JSON with the keys of every object in order: whether `serde_json` keeps them as they came
/// is up to features that any dependency may switch on.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<String, Value> =
                fields.into_iter().map(|(key, value)| (key, canonical(value))).collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(canonical).collect()),
        other => other,
    }
}

/// What is wrong with a book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Whose book.
    pub book: Book,
    /// At which place.
    pub seq: u64,
    /// What.
    pub fault: Fault,
}

/// How a book shows that somebody was at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The entry of this place is missing.
    Missing,
    /// The entry does not say what it said when it was written.
    Altered,
    /// The entry does not follow the one before it.
    NotChained,
    /// Entries after this one are missing: the book's head says that there were more.
    CutOff,
    /// The book's head is missing, or stands at another entry than the last.
    HeadMoved,
}

impl Fault {
    /// The fault in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Fault::Missing => "this entry is missing",
            Fault::Altered => "this entry was altered",
            Fault::NotChained => "this entry does not follow the one before it",
            Fault::CutOff => "the entries after this one are missing",
            Fault::HeadMoved => "the book's head does not stand at its last entry",
        }
    }
}

/// Reads a book from its first entry on, and says where it is broken.
#[derive(Debug, Clone)]
pub struct Verification {
    book: Book,
    last: Option<(u64, String)>,
    broken: Vec<Broken>,
}

impl Verification {
    /// Of this book.
    pub fn of(book: Book) -> Self {
        Self { book, last: None, broken: Vec::new() }
    }

    /// Reads the next entry.
    pub fn read(&mut self, entry: &Entry) {
        let (seq, previous) = self.last.as_ref().map_or((0, NOTHING_BEFORE), |(seq, hash)| (*seq, hash));
        if entry.seq != seq + 1 {
            self.note(seq + 1, Fault::Missing);
        } else if entry.previous != previous {
            self.note(entry.seq, Fault::NotChained);
        }
        if entry.digest() != entry.hash {
            self.note(entry.seq, Fault::Altered);
        }
        self.last = Some((entry.seq, entry.hash.clone()));
    }

    /// Compares the end with the book's head, and answers everything that was found. Whoever reads a book
    /// while it is written to reads the head again, and the entries up to it.
    pub fn finish(mut self, head: Option<&Entry>) -> Vec<Broken> {
        let (seq, hash) = self.last.clone().unwrap_or((0, NOTHING_BEFORE.to_owned()));
        match head {
            None if seq > 0 => self.note(seq, Fault::HeadMoved),
            Some(head) if head.digest() != head.hash => self.note(head.seq, Fault::Altered),
            Some(head) if head.seq > seq => self.note(seq, Fault::CutOff),
            // The hash covers the place.
            Some(head) if head.hash != hash => self.note(seq, Fault::HeadMoved),
            None | Some(_) => {}
        }
        self.broken
    }

    fn note(&mut self, seq: u64, fault: Fault) {
        self.broken.push(Broken { book: self.book.clone(), seq, fault });
    }
}
