//! `[policies.NAME]`: retry rules under a name. One named `default` always exists.

use std::collections::BTreeMap;

use waybill_domain::fault::InvalidField;
use waybill_domain::identity::PolicyName;
use waybill_domain::policy::{ATTEMPTS_RULE, Backoff, FACTOR_RULE, HORIZON_RULE, Policy, PolicyTerms};
use waybill_domain::time::DurationMs;

use super::reader::{Entry, Section};
use super::reference::{Key, Kind, Table};

/// The policy of destinations that name none.
pub(super) const DEFAULT: &str = "default";

pub(super) const POLICY_RULE: &str = "one of [policies.*]";
const BASE_RULE: &str = "not longer than max_delay";
const MAX_RULE: &str = "not shorter than base_delay";

pub(super) const TABLE: Table = Table {
    path: "policies.NAME",
    says: "Retry rules by name. The one named \"default\" always exists, and counts for destinations that name none.",
    keys: &[
        Key::new("max_attempts", Kind::Whole, "how many requests are sent before automation ends")
            .default("7")
            .rule(ATTEMPTS_RULE),
        Key::new(
            "base_delay",
            Kind::Duration,
            "full jitter: after attempt 1 the next one comes within this",
        )
        .default("\"1s\"")
        .rule(BASE_RULE),
        Key::new("factor", Kind::Number, "by how much that grows with each attempt")
            .default("2")
            .rule(FACTOR_RULE),
        Key::new("max_delay", Kind::Duration, "beyond which it does not grow").default("\"15m\"").rule(MAX_RULE),
        Key::new(
            "horizon",
            Kind::Duration,
            "automation ends this long after the first queueing, not_before, or a release; then a person decides",
        )
        .default("\"24h\"")
        .rule(HORIZON_RULE),
        Key::new(
            "minimum_window",
            Kind::Duration,
            "the least time before a deadline in which an attempt is still started",
        )
        .default("\"2s\""),
    ],
    later: &[],
};

/// Policies by name. One that is written wrongly stands there as the default, so that the
/// destinations which name it are not reported beside it.
pub(super) type Policies = BTreeMap<String, Policy>;

pub(super) fn read(root: &Section<'_, '_>) -> Policies {
    let mut policies = Policies::from([(DEFAULT.to_owned(), Policy::default())]);
    for entry in root.tables("policies") {
        let name = entry.parsed_name(|name| PolicyName::parse(name));
        let policy = entry.as_section(&TABLE).and_then(|section| read_one(&section));
        if name.is_some() {
            policies.insert(entry.name().to_owned(), policy.unwrap_or_default());
        }
    }
    policies
}

fn read_one(section: &Section<'_, '_>) -> Option<Policy> {
    let mut terms = PolicyTerms::default();
    let durations = [
        ("base_delay", &mut terms.backoff.base),
        ("max_delay", &mut terms.backoff.max),
        ("horizon", &mut terms.horizon),
        ("minimum_window", &mut terms.minimum_window),
    ];
    let mut sound = true;
    for (key, term) in durations {
        sound &= section.set(key, term, |entry| entry.parsed(DurationMs::parse));
    }
    sound &= section.set("max_attempts", &mut terms.max_attempts, Entry::as_u32);
    sound &= section.set("factor", &mut terms.backoff.factor, Entry::as_f64);
    if !sound {
        return None;
    }
    let policy = Policy::new(terms).map_err(|invalid| section.refuse(invalid)).ok()?;
    check_order(section, &terms.backoff).then_some(policy)
}

/// A cap below the first ceiling makes every delay the cap's: sound arithmetic, and surely not what the
/// writer meant. Reported at the key that is written, where the other one is the default.
fn check_order(section: &Section<'_, '_>, backoff: &Backoff) -> bool {
    let Backoff { base, max, .. } = *backoff;
    if max >= base {
        return true;
    }
    section.refuse(match section.get("max_delay") {
        Some(_) => InvalidField::new("max_delay", format!("is {max}"), format!("{MAX_RULE}, {base}")),
        None => {
            let rule = format!("{BASE_RULE}, by default {max}");
            InvalidField::new("base_delay", format!("is {base}"), rule)
        }
    });
    false
}

/// The policies as deliveries name theirs.
pub(super) fn by_name(policies: Policies) -> BTreeMap<PolicyName, Policy> {
    policies.into_iter().filter_map(|(name, policy)| Some((PolicyName::parse(name).ok()?, policy))).collect()
}

/// The policy that a destination or a schedule names.
pub(super) fn named(entry: &Entry<'_, '_>, policies: &Policies) -> Option<Policy> {
    let name = entry.as_text()?;
    let found = policies.get(name).copied();
    if found.is_none() {
        let known = policies.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        entry.refuse(format!("no policy is named {name:?}"), format!("{POLICY_RULE}: {known}"));
    }
    found
}
