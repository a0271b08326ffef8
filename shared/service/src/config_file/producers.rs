//! `[producers.NAME]`: who may publish over HTTP, for which tenants, with which bearer tokens or
//! Standard Webhooks signatures.

use waybill_domain::destination::SecretRef;
use waybill_domain::identity::DestinationName;

use super::Rules;
use super::destination_keys::TENANTS_RULE;
use super::destinations::{secret, tenants};
use super::reader::Entry;
use super::reference::{Key, Kind, Table};
use crate::config::Producer;

const TOKENS_RULE: &str = "at least one reference such as \"env:BILLING_TOKEN\", two while rotating";

const SECRETS_RULE: &str = "at least one reference such as \"env:BILLING_SECRET\", two while rotating";

pub(super) const TABLE: Table = Table {
    path: "producers.NAME",
    says: "Who may publish over HTTP. It has tokens, or secrets, or both.",
    keys: &[
        Key::new("tenants", Kind::List, "for whom it may publish").required().rule(TENANTS_RULE),
        Key::new("tokens", Kind::List, "its bearer tokens").rule(TOKENS_RULE),
        Key::new("secrets", Kind::List, "verify its signatures (Standard Webhooks)").rule(SECRETS_RULE),
    ],
    later: &[],
};

pub(super) fn read(entry: &Entry<'_, '_>, rules: Rules) -> Option<(String, Producer)> {
    // Producers and destinations are named by the same rule.
    let name = entry.parsed_name(|name| DestinationName::parse(name).map_err(|i| i.of("producer")));
    let section = entry.as_section(&TABLE)?;
    let tenants = tenants(&section);
    let (mut tokens, mut signing) = (Vec::new(), Vec::new());
    let sound = [
        section.set("tokens", &mut tokens, |entry| references(entry, TOKENS_RULE, rules)),
        section.set("secrets", &mut signing, |entry| references(entry, SECRETS_RULE, rules)),
    ];
    if section.get("tokens").is_none() && section.get("secrets").is_none() {
        section.missing("tokens", "tokens, or secrets that verify its signatures");
        return None;
    }
    let producer = Producer { tenants: tenants?, tokens, secrets: signing };
    (!sound.contains(&false)).then_some((name?.as_str().to_owned(), producer))
}

fn references(entry: &Entry<'_, '_>, rule: &str, rules: Rules) -> Option<Vec<SecretRef>> {
    entry.parsed_list(1, 2, rule, |item| secret(item, rules))
}
