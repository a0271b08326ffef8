//! `[event_types."PATTERN"]`: what an event type asks for. The first pattern that matches counts,
//! in the order of the file; one that can never be the first is a fault, because a rule such as
//! "no deadline, no send" must not be lost to the order of lines.

use waybill_domain::destination::EventPattern;

use super::reader::Section;
use super::reference::{Key, Kind, Table};
use crate::config::EventTypeRules;

pub(super) const TABLE: Table = Table {
    path: "event_types.\"PATTERN\"",
    says: "What an event type asks for. A final * stands for anything; the first pattern that matches counts.",
    keys: &[Key::new(
        "require_deadline",
        Kind::Truth,
        "no deadline, no send: an event without one is refused at publish",
    )
    .default("false")],
    later: &[],
};

pub(super) fn read(root: &Section<'_, '_>) -> Vec<(EventPattern, EventTypeRules)> {
    let mut rules = Vec::new();
    let mut before: Vec<&str> = Vec::new();
    for entry in root.tables("event_types") {
        let pattern = entry.parsed_name(EventPattern::parse);
        if let Some(first) = before.iter().find(|first| covers(first, entry.name())) {
            let fault = format!("is never reached: everything it matches is matched by {first:?} before it");
            entry.refuse(fault, "the narrower pattern first");
        }
        before.push(entry.name());
        let Some(section) = entry.as_section(&TABLE) else { continue };
        let asked = section.get("require_deadline").map(|entry| entry.as_bool().unwrap_or_default());
        let read = EventTypeRules { require_deadline: asked.unwrap_or_default() };
        rules.extend(pattern.map(|pattern| (pattern, read)));
    }
    rules
}

/// Whether `wide` matches everything that `narrow` matches. (TOML has no key twice.)
fn covers(wide: &str, narrow: &str) -> bool {
    wide.strip_suffix('*').is_some_and(|prefix| narrow.trim_end_matches('*').starts_with(prefix))
}
