//! `[operators.NAME]`: who may operate, and for which tenants; `"*"` is across tenants.

use waybill_domain::audit;
use waybill_domain::authority::Authority;

use super::destinations::tenants;
use super::reader::{Entry, Keys};

const KEYS: Keys = Keys { built: &["tenants"], later: &[] };

const ACROSS: &str = "*";

pub(super) fn read(entry: &Entry<'_, '_>) -> Option<(String, Authority)> {
    let name = entry.parsed_name(audit::who);
    let section = entry.as_section(&KEYS)?;
    let listed = section.get("tenants").and_then(|entry| entry.as_list());
    let is_across = |item: &Entry<'_, '_>| item.as_text() == Some(ACROSS);
    let authority = match listed {
        Some(items) if items.len() == 1 && is_across(&items[0]) => Some(Authority::Across),
        _ => tenants(&section).map(Authority::Tenants),
    };
    Some((name?, authority?))
}
