//! `[system]`: settings that are neither a policy's nor a destination's, each with its default.

use waybill_domain::fault::InvalidField;
use waybill_domain::time::DurationMs;

use super::reader::Entry;
use super::reference::{Key, Kind, Table};
use crate::config::System;

/// Below this the reconciler would wake deliveries that are merely being worked on.
const SHORTEST: DurationMs = DurationMs::from_secs(1);
const SPAN_RULE: &str = "1s or longer";

pub(super) const TABLE: Table = Table {
    path: "system",
    says: "Settings that are neither a policy's nor a destination's.",
    keys: &[
        Key::new(
            "stale_after",
            Kind::Duration,
            "how long past its due time a delivery lies before the reconciler rescues it",
        )
        .default("\"5m\"")
        .rule(SPAN_RULE),
        Key::new(
            "rescue_window",
            Kind::Duration,
            "how long before its deadline a delivery is woken in any case",
        )
        .default("\"10m\"")
        .rule(SPAN_RULE),
        Key::new(
            "max_redrives",
            Kind::Whole,
            "how often a dead letter is released before a reviewer has to say why",
        )
        .default("3"),
    ],
    later: &["retain_days"],
};

pub(super) fn read(entry: &Entry<'_, '_>) -> Option<System> {
    let section = entry.as_section(&TABLE)?;
    let mut system = System::default();
    section.set("stale_after", &mut system.stale_after, |entry| entry.parsed(span));
    section.set("rescue_window", &mut system.rescue_window, |entry| entry.parsed(span));
    section.set("max_redrives", &mut system.max_redrives, Entry::as_u32);
    Some(system)
}

fn span(field: &str, text: &str) -> Result<DurationMs, InvalidField> {
    let span = DurationMs::parse(field, text)?;
    if span < SHORTEST {
        return Err(InvalidField::new(field, format!("is {span}"), SPAN_RULE));
    }
    Ok(span)
}
