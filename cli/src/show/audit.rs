//! Entries of the audit.

use serde_json::{Value, json};
use waybill_domain::audit::{Act, Entry};

use super::escape::escaped;
use super::or_dash;
use super::table::table;

/// Entries, one row each. JSON has their details and their chain.
pub(crate) fn of_entries(entries: &[Entry]) -> String {
    let header = ["AT", "BOOK", "WHO", "ACT", "SUBJECT", "WHY"];
    let rows = entries.iter().map(|entry| {
        [
            entry.at.to_string(),
            format!("{} {}", entry.book, entry.seq),
            escaped(&entry.who),
            act(entry),
            escaped(&entry.subject),
            or_dash(entry.why.as_deref().map(escaped)),
        ]
    });
    table(header, rows)
}

/// What was done; of a hold that was only eased, to how much.
fn act(entry: &Entry) -> String {
    match (entry.act, entry.details["concurrency"].as_u64()) {
        (Act::HoldLifted, Some(number)) => format!("{} to {number} at once", entry.act),
        _ => entry.act.to_string(),
    }
}

/// One entry, with everything that its hash covers.
pub(crate) fn of_entry(entry: &Entry) -> Value {
    json!({
        "id": entry.id,
        "book": entry.book.as_str(),
        "seq": entry.seq,
        "at": entry.at.to_string(),
        "who": entry.who,
        "act": entry.act.as_str(),
        "subject": entry.subject,
        "why": entry.why,
        "details": entry.details,
        "previous": entry.previous,
        "hash": entry.hash,
    })
}
