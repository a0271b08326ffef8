//! Configurations that were in force, and what each changed.

use serde_json::{Value, json};
use waybill_service::office::Revision;
use waybill_service::revisions::{Difference, Installed};

use super::escape::escaped;
use super::orders::signed;
use super::table::table;

/// One revision in a line.
pub(crate) fn in_words(revision: &Revision) -> String {
    let by = &revision.signed;
    let Revision { number, revision, .. } = revision;
    format!(
        "revision {revision}, number {number}, applied {} by {}: {}",
        by.at,
        escaped(&by.by),
        escaped(&by.why)
    )
}

/// Those that were in force, one row each.
pub(crate) fn of_history(revisions: &[Revision]) -> String {
    let header = ["NUMBER", "REVISION", "APPLIED", "BY", "WHY"];
    let rows = revisions.iter().map(|revision| {
        [
            revision.number.to_string(),
            revision.revision.to_string(),
            revision.signed.at.to_string(),
            escaped(&revision.signed.by),
            escaped(&revision.signed.why),
        ]
    });
    table(header, rows)
}

/// One revision for programs.
pub(crate) fn of_revision(revision: &Revision) -> Value {
    json!({
        "number": revision.number,
        "config_revision": revision.revision.as_str(),
        "applied": signed(&revision.signed),
    })
}

/// One revision with what it says.
pub(crate) fn of_document(revision: &Revision, document: &str) -> Value {
    let mut facts = of_revision(revision);
    facts["document"] = document.into();
    facts
}

/// Setting by setting: what goes, and what comes in its place.
pub(crate) fn of_differences(diff: &[Difference]) -> String {
    let mut lines = Vec::new();
    for Difference { key, before, after } in diff {
        let key = escaped(key);
        lines.extend(before.as_ref().map(|value| format!("- {key} = {}", escaped(value))));
        lines.extend(after.as_ref().map(|value| format!("+ {key} = {}", escaped(value))));
    }
    lines.join("\n")
}

/// What was put in force.
pub(crate) fn installed_in_words(installed: &Installed) -> String {
    let Installed { revision, diff, already } = installed;
    match already {
        true => format!("in force already: {}", in_words(revision)),
        false if diff.is_empty() => format!("in force: {}", in_words(revision)),
        false => format!("{}\nin force: {}", of_differences(diff), in_words(revision)),
    }
}

/// The same for programs.
pub(crate) fn of_installed(installed: &Installed) -> Value {
    let mut facts = of_revision(&installed.revision);
    facts["already"] = installed.already.into();
    facts["diff"] = json!(installed.diff);
    facts
}
