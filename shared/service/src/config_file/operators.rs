//! `[operators.NAME]`: who may operate, and for which tenants; `"*"` is across tenants.

use waybill_domain::audit;
use waybill_domain::authority::Authority;

use super::destination_keys::TENANTS_RULE;
use super::destinations::tenants;
use super::reader::Entry;
use super::reference::{Key, Kind, Table};

pub(super) const TABLE: Table = Table {
    path: "operators.NAME",
    says: "Who may operate with the command line, and for which tenants. NAME is a person's or a role's, up to 256 \
           bytes.",
    keys: &[Key::new(
        "tenants",
        Kind::List,
        "on what they may act; [\"*\"] is across tenants, and only such an operator may change the configuration",
    )
    .required()
    .rule(TENANTS_RULE)],
    later: &[],
};

const ACROSS: &str = "*";

pub(super) fn read(entry: &Entry<'_, '_>) -> Option<(String, Authority)> {
    let name = entry.parsed_name(audit::who);
    let section = entry.as_section(&TABLE)?;
    let is_across = |items: &[Entry<'_, '_>]| items.len() == 1 && items[0].as_text() == Some(ACROSS);
    // What is no list is found fault with once.
    let listed = section.get("tenants").map(|entry| entry.as_list());
    let authority = match listed {
        Some(None) => None,
        Some(Some(items)) if is_across(&items) => Some(Authority::Across),
        _ => tenants(&section).map(Authority::Tenants),
    };
    Some((name?, authority?))
}
