//! `[producers.NAME]`: who may publish over HTTP, for which tenants, with which bearer tokens.

use waybill_domain::identity::DestinationName;

use super::Rules;
use super::destinations::{secret, tenants};
use super::reader::{Entry, Keys};
use crate::config::Producer;

const KEYS: Keys = Keys { built: &["tenants", "tokens"], later: &[] };

const TOKENS_RULE: &str = "at least one reference such as \"env:BILLING_TOKEN\", two while rotating";

pub(super) fn read(entry: &Entry<'_, '_>, rules: Rules) -> Option<(String, Producer)> {
    // Producers and destinations are named by the same rule.
    let name = entry.parsed_name(|name| DestinationName::parse(name).map_err(|i| i.of("producer")));
    let section = entry.as_section(&KEYS)?;
    let tenants = tenants(&section);
    let tokens = section
        .require("tokens", TOKENS_RULE)
        .and_then(|entry| entry.parsed_list(1, 2, TOKENS_RULE, |item| secret(item, rules)));
    Some((name?.as_str().to_owned(), Producer { tenants: tenants?, tokens: tokens? }))
}
