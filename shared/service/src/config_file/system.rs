//! `[system]`: settings that are neither a policy's nor a destination's, each with its default.

use waybill_domain::fault::InvalidField;
use waybill_domain::time::DurationMs;

use super::reader::{Entry, Keys};
use crate::config::System;

const KEYS: Keys = Keys { built: &["stale_after", "rescue_window", "max_redrives"], later: &["retain_days"] };

/// Below this the reconciler would wake deliveries that are merely being worked on.
const SHORTEST: DurationMs = DurationMs::from_secs(1);

pub(super) fn read(entry: &Entry<'_, '_>) -> Option<System> {
    let section = entry.as_section(&KEYS)?;
    let mut system = System::default();
    section.set("stale_after", &mut system.stale_after, |entry| entry.parsed(span));
    section.set("rescue_window", &mut system.rescue_window, |entry| entry.parsed(span));
    section.set("max_redrives", &mut system.max_redrives, Entry::as_u32);
    Some(system)
}

fn span(field: &str, text: &str) -> Result<DurationMs, InvalidField> {
    let span = DurationMs::parse(field, text)?;
    if span < SHORTEST {
        return Err(InvalidField::new(field, format!("is {span}"), format!("{SHORTEST} or longer")));
    }
    Ok(span)
}
