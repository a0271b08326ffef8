//! Holds, and the ends that persons gave to dead letters.

use serde_json::{Map, Value, json};
use waybill_domain::hold::HoldRule;
use waybill_domain::order::{CameTo, Decision, Eased, EndingOrder, Hold, Order, Signed};

use super::escape::escaped;
use super::or_dash;
use super::table::table;

/// Who signed something, when and why.
pub(crate) fn signed(signed: &Signed) -> Value {
    json!({ "by": signed.by, "at": signed.at.to_string(), "why": signed.why })
}

/// What a hold keeps back, in words.
pub(crate) fn rule_in_words(rule: &HoldRule) -> String {
    match rule {
        HoldRule::Destination(name) => format!("destination {name}"),
        HoldRule::Tenant(tenant) => format!("tenant {tenant}"),
        HoldRule::Type { types, payload_version, tenant } => {
            let version = payload_version.map_or_else(String::new, |v| format!(" with payload version {v}"));
            let of = tenant.as_ref().map_or_else(String::new, |tenant| format!(" of tenant {tenant}"));
            format!("type {types}{version}{of}")
        }
        HoldRule::All => "everything".to_owned(),
        HoldRule::Newer(_) => "everything of its book: its rule is a newer version's".to_owned(),
        HoldRule::Suspended(name) => format!("destination {name}, suspended by automation"),
        HoldRule::Within { tenant, rule } => format!("{} for tenant {tenant} alone", rule_in_words(rule)),
        HoldRule::Elsewhere { rule, .. } => format!("{} but for where it is eased", rule_in_words(rule)),
        HoldRule::Run { run, .. } => format!("what {run} released"),
    }
}

/// What a hold keeps back, since when, by whom and why, in a sentence.
pub(crate) fn holds_back(order: &Order, hold: &Hold) -> String {
    let Signed { by, at, why } = &hold.placed;
    let (rule, by, why) = (rule_in_words(&hold.rule), escaped(by), escaped(why));
    let until = match &hold.eased {
        Some(eased) => format!("waits for its turn, {} at once to each destination", eased.concurrency),
        None => "waits until it is lifted".to_owned(),
    };
    format!("{} keeps back {rule} since {at}, by {by}: {why}; what is released {until}", order.id)
}

/// How far a hold is eased, since when, by whom and why.
pub(crate) fn eased_in_words(eased: &Eased) -> String {
    let Signed { by, at, why } = &eased.signed;
    format!("eased to {} at once, {at} by {}: {}", eased.concurrency, escaped(by), escaped(why))
}

/// How many deliveries holds keep back.
pub(crate) struct HeldCounts {
    /// Of each hold.
    pub(crate) of: Vec<u64>,
    /// Whether all that is held was counted.
    pub(crate) are_all: bool,
}

/// Holds, one row each; with what they keep back, where that was counted.
pub(crate) fn of_holds(holds: &[(&Order, &Hold)], counts: Option<&HeldCounts>) -> String {
    let header = ["HOLD", "KEEPS BACK", "HELD", "REASON", "SINCE", "BY", "WHY", "LIFTED OR EASED"];
    let rows = holds.iter().enumerate().map(|(n, (order, hold))| {
        let count = counts.and_then(|counts| Some((counts.of.get(n)?, counts.are_all)));
        let held = count.filter(|_| hold.lifted.is_none()).map(|(count, are_all)| match are_all {
            true => count.to_string(),
            false => format!("{count} or more"),
        });
        let lifted = hold.lifted.as_ref();
        let lifted =
            lifted.map(|by| format!("lifted {} by {}: {}", by.at, escaped(&by.by), escaped(&by.why)));
        let lifted = lifted.or_else(|| hold.eased.as_ref().map(eased_in_words));
        [
            order.id.to_string(),
            rule_in_words(&hold.rule),
            or_dash(held),
            hold.rule.reason().as_str().to_owned(),
            hold.placed.at.to_string(),
            escaped(&hold.placed.by),
            escaped(&hold.placed.why),
            or_dash(lifted),
        ]
    });
    table(header, rows)
}

/// One hold.
pub(crate) fn of_hold(order: &Order, hold: &Hold) -> Map<String, Value> {
    let rule = match &hold.rule {
        HoldRule::Destination(name) | HoldRule::Suspended(name) => json!({ "destination": name.as_str() }),
        HoldRule::Tenant(tenant) => json!({ "tenant": tenant.as_str() }),
        HoldRule::Type { types, payload_version, tenant } => json!({
            "type": types.to_string(),
            "payload_version": payload_version,
            "tenant": tenant.as_ref().map(|tenant| tenant.as_str()),
        }),
        HoldRule::All => json!("all"),
        HoldRule::Newer(rule) => json!({ "newer": rule }),
        HoldRule::Within { tenant, .. } => json!({ "tenant": tenant.as_str() }),
        // Of no order: what an eased hold goes on to keep is worked out from its rule.
        HoldRule::Elsewhere { .. } => Value::Null,
        HoldRule::Run { run, .. } => json!({ "run": run }),
    };
    let facts = json!({
        "hold": order.id.as_str(),
        "book": order.book.as_str(),
        "keeps_back": rule,
        "reason": hold.rule.reason().as_str(),
        "placed": signed(&hold.placed),
        "eased": hold.eased.as_ref().map(|eased| json!({
            "concurrency": eased.concurrency,
            "by": eased.signed.by,
            "at": eased.signed.at.to_string(),
            "why": eased.signed.why,
        })),
        "lifted": hold.lifted.as_ref().map(signed),
    });
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}

/// What became of an order to end a dead letter.
pub(crate) fn of_ending(order: &Order, ending: &EndingOrder, already: bool) -> Value {
    json!({
        "order": order.id.as_str(),
        "delivery_id": ending.delivery.delivery_id.as_str(),
        "tenant": ending.delivery.tenant.as_str(),
        "decision": match ending.decision {
            Decision::Close => "close",
            Decision::Resolve => "resolve",
        },
        "ordered": signed(&ending.signed),
        "already": already,
        "came_to": ending.came_to.map(|came_to| match came_to {
            CameTo::Done => "done",
            CameTo::NoDeadLetter => "no_dead_letter",
        }),
    })
}

/// The same in a sentence.
pub(crate) fn ending_in_words(order: &Order, ending: &EndingOrder, already: bool) -> String {
    let id = &ending.delivery.delivery_id;
    let done = match ending.decision {
        Decision::Close => "closed",
        Decision::Resolve => "resolved",
    };
    let Signed { by, at, why } = &ending.signed;
    let before = match already {
        true => format!(" already, by {} at {at}: {}", escaped(by), escaped(why)),
        false => String::new(),
    };
    match ending.came_to {
        Some(CameTo::Done) => format!("{id}: {done}{before}"),
        Some(CameTo::NoDeadLetter) => format!("{id}: is no dead letter any more: nothing was done"),
        None => format!("{id}: to be {done} by the reconciler ({}){before}", order.id),
    }
}
