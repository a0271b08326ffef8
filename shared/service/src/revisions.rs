//! Putting configurations in force: checked as a whole, with a diff, who and why; and back again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::json;
use thiserror::Error;
use waybill_domain::audit::{Act, Draft, Entry};
use waybill_domain::authority::Book;
use waybill_domain::identity::ConfigRevision;
use waybill_domain::order::Signed;

use crate::acts::{ActError, Desk, noted};
use crate::config_file::{self, ConfigFault, Rules};
use crate::office::{Entered, Office, Revision, Revisions};
use crate::ports::{Clock, Dice, PortError};
use crate::schedule::history;

/// Why a configuration was not put in force.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// It has faults; every one is listed.
    #[error("the configuration has {} faults", .0.len())]
    Faulty(Vec<ConfigFault>),
    /// As for every act.
    #[error(transparent)]
    Act(#[from] ActError),
}

impl From<PortError> for ApplyError {
    fn from(error: PortError) -> Self {
        ApplyError::Act(error.into())
    }
}

/// A configuration that was put in force, or was already.
#[derive(Debug, Clone, PartialEq)]
pub struct Installed {
    /// Its place in the history.
    pub revision: Revision,
    /// What it changed.
    pub diff: Vec<Difference>,
    /// Whether it was in force already: nothing was changed then.
    pub already: bool,
}

/// One setting that differs. Values as TOML; of URLs, what may be logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Its dotted key.
    pub key: String,
    /// What it was; `None` where it was not there.
    pub before: Option<String>,
    /// What it is; `None` where it is gone.
    pub after: Option<String>,
}

impl<O: Office + Revisions, C: Clock, D: Dice> Desk<'_, O, C, D> {
    /// Puts a configuration in force.
    pub async fn apply(
        &self,
        document: &str,
        rules: Rules,
        by: &str,
        why: &str,
    ) -> Result<Installed, ApplyError> {
        self.install(document, rules, by, why, Act::ConfigApplied).await
    }

    /// Puts an earlier configuration in force again.
    pub async fn roll_back(
        &self,
        to: &ConfigRevision,
        rules: Rules,
        by: &str,
        why: &str,
    ) -> Result<Installed, ApplyError> {
        let document = self.office.document(to).await?;
        let unknown =
            || ActError::Unknown(format!("there is no configuration {to}; config history lists them"));
        let document = document.ok_or_else(unknown)?;
        self.install(&document, rules, by, why, Act::ConfigRolledBack).await
    }

    async fn install(
        &self,
        document: &str,
        rules: Rules,
        by: &str,
        why: &str,
        act: Act,
    ) -> Result<Installed, ApplyError> {
        let config = config_file::parse(document, rules).map_err(ApplyError::Faulty)?;
        loop {
            let before = self.office.in_force().await?;
            let old = match &before {
                Some(before) => self.office.document(&before.revision).await?.unwrap_or_default(),
                None => String::new(),
            };
            let diff = differences(&old, document);
            if let Some(revision) = before.clone().filter(|before| before.revision == config.revision) {
                return Ok(Installed { revision, diff, already: true });
            }
            let signed = self.sign(by, why);
            let since = history::of(document, &old, before.as_ref(), signed.at);
            let revision = Revision {
                number: before.as_ref().map_or(1, |before| before.number + 1),
                revision: config.revision.clone(),
                schedules: since.since,
                former: since.former,
                signed,
            };
            let draft = draft(&revision, before.as_ref(), act, &diff);
            let head = self.office.head(&Book::Across).await?;
            let entry = Entry::after(head.as_ref(), draft, self.dice.token().as_str());
            match self.office.install(&revision, document, &entry).await? {
                Entered::Landed => {
                    noted(&entry);
                    return Ok(Installed { revision, diff, already: false });
                }
                Entered::HeadMoved | Entered::Overtaken => {}
            }
        }
    }
}

fn draft(revision: &Revision, before: Option<&Revision>, act: Act, diff: &[Difference]) -> Draft {
    let Signed { by, at, why } = revision.signed.clone();
    Draft {
        book: Book::Across,
        at,
        who: by,
        act,
        subject: revision.revision.to_string(),
        why: Some(why),
        details: json!({
            "number": revision.number,
            "replaces": before.map(|before| &before.revision),
            // An audit entry is one item; what a diff leaves out, the stored documents tell.
            "diff": &diff[..diff.len().min(MOST_IN_AUDIT)],
            "differences": diff.len(),
        }),
    }
}

/// How many differences an audit entry lists.
const MOST_IN_AUDIT: usize = 100;

/// Setting by setting, what differs between two documents. What cannot be read has no settings.
pub fn differences(before: &str, after: &str) -> Vec<Difference> {
    let (before, after) = (settings(before), settings(after));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    differing
        .map(|key| Difference {
            key: key.clone(),
            before: before.get(key).map(|value| said(key, value)),
            after: after.get(key).map(|value| said(key, value)),
        })
        .collect()
}

fn settings(document: &str) -> BTreeMap<String, toml::Value> {
    let mut found = BTreeMap::new();
    if let Ok(table) = document.parse::<toml::Table>() {
        flatten("", &toml::Value::Table(table), &mut found);
    }
    found
}

fn flatten(prefix: &str, value: &toml::Value, into: &mut BTreeMap<String, toml::Value>) {
    match value {
        toml::Value::Table(table) if !table.is_empty() || prefix.is_empty() => {
            for (key, value) in table {
                let is_bare =
                    !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
                let key = if is_bare { key.clone() } else { format!("{key:?}") };
                let path = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
                flatten(&path, value, into);
            }
        }
        value => {
            into.insert(prefix.to_owned(), value.clone());
        }
    }
}

/// A value as it may be shown and kept: the query of a URL may hold a secret, a payload is nobody's to read,
/// and of what is long it counts that it differs.
fn said(key: &str, value: &toml::Value) -> String {
    let text = match value {
        toml::Value::String(text) if key.ends_with("url") => match text.split_once('?') {
            Some((shown, _)) => format!("{shown:?} and a query"),
            None => format!("{text:?}"),
        },
        value => value.to_string(),
    };
    match text.len() > LONGEST_SHOWN || key.split('.').any(|part| part == "payload") {
        true => format!("{} bytes, sha256 {}", text.len(), crate::digest::sha256_hex(text.as_bytes())),
        false => text,
    }
}

/// The longest text that a diff shows as it is.
const LONGEST_SHOWN: usize = 200;
