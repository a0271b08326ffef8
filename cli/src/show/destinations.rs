//! Destinations: who is asked, where requests go, what is held and what is dead.

use std::sync::Arc;

use serde_json::{Value, json};
use waybill_domain::destination::{Destination, OnAmbiguous};
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::order::{Hold, Order, OrderBody};
use waybill_service::ports::DeadLetterGroup;

use super::config::{list, span};
use super::escape::escaped;
use super::orders::{eased_in_words, of_hold, rule_in_words};
use super::standing::{self, Standing};
use super::table::table;
use super::{counted, facts::of_group, or_dash};

/// A destination as far as its reader may know it.
pub(crate) struct Seen {
    /// What the configuration says.
    pub(crate) destination: Arc<Destination>,
    /// The tenants that it serves, and whose matters the reader may know of.
    pub(crate) tenants: Vec<TenantId>,
    /// The holds in force that keep something of it back.
    pub(crate) holds: Vec<Order>,
    /// These tenants' dead letters.
    pub(crate) dead: Vec<DeadLetterGroup>,
    /// How it stands, where the reader may know.
    pub(crate) standing: Option<Standing>,
}

impl Seen {
    fn dead_letters(&self) -> u64 {
        self.dead.iter().map(|group| group.count).sum()
    }

    fn each_hold(&self) -> impl Iterator<Item = (&Order, &Hold)> {
        self.holds.iter().filter_map(|order| match &order.body {
            OrderBody::Hold(hold) => Some((order, hold)),
            _ => None,
        })
    }
}

/// Whether a hold may keep something of this destination and these tenants back.
pub(crate) fn touches(rule: &HoldRule, destination: &DestinationName, tenants: &[TenantId]) -> bool {
    match rule {
        HoldRule::Destination(name) | HoldRule::Suspended(name) => name == destination,
        HoldRule::Tenant(tenant) | HoldRule::Type { tenant: Some(tenant), .. } => tenants.contains(tenant),
        HoldRule::Type { tenant: None, .. } | HoldRule::All | HoldRule::Newer(_) => true,
        HoldRule::Within { tenant, rule } => tenants.contains(tenant) && touches(rule, destination, tenants),
        HoldRule::Elsewhere { rule, than } => {
            !than.contains(destination) && touches(rule, destination, tenants)
        }
        HoldRule::Run { .. } => false,
    }
}

/// Destinations, one row each.
pub(crate) fn of_all(all: &[Seen]) -> String {
    let header = ["DESTINATION", "TENANTS", "OWNER", "TO", "AT ONCE", "HOLDS", "WAITING", "DEAD LETTERS"];
    let rows = all.iter().map(|seen| {
        let held: Vec<&str> = seen.each_hold().map(|(_, hold)| hold.rule.reason().as_str()).collect();
        [
            seen.destination.name.to_string(),
            list(&seen.tenants),
            or_dash(seen.destination.owner.as_deref().map(escaped)),
            seen.destination.url.origin(),
            or_dash(seen.standing.as_ref().and_then(Standing::at_once)),
            if held.is_empty() { "-".to_owned() } else { held.join(", ") },
            or_dash(seen.standing.as_ref().map(Standing::held)),
            seen.dead_letters().to_string(),
        ]
    });
    table(header, rows)
}

/// One destination for people.
pub(crate) fn of_one(seen: &Seen) -> String {
    let destination = &seen.destination;
    let policy = &destination.policy;
    let mut lines = vec![
        destination.name.to_string(),
        format!("  tenants       {}", list(&seen.tenants)),
        format!("  owner         {}", or_dash(destination.owner.as_deref().map(escaped))),
        format!("  to            {}", destination.url.origin()),
        format!(
            "  subscribes    {}",
            or_dash(Some(list(&destination.event_types)).filter(|types| !types.is_empty()))
        ),
        format!(
            "  policy        {} within {}, from {} by {} up to {} apart, {} each; not within {} before a deadline",
            counted(policy.max_attempts, "attempt"),
            span(policy.horizon),
            span(policy.backoff.base),
            policy.backoff.factor,
            span(policy.backoff.max),
            span(destination.timeout),
            span(policy.minimum_window),
        ),
        format!("  ambiguous     {}", on_ambiguous(destination)),
    ];
    lines.extend(seen.standing.iter().flat_map(|standing| standing.lines(destination)));
    for (order, hold) in seen.each_hold() {
        let (rule, placed) = (rule_in_words(&hold.rule), &hold.placed);
        let (by, why) = (escaped(&placed.by), escaped(&placed.why));
        lines.push(format!("  held          {rule}, since {} by {by}: {why} ({})", placed.at, order.id));
        lines.extend(hold.eased.as_ref().map(|eased| format!("                {}", eased_in_words(eased))));
    }
    if seen.holds.is_empty() {
        lines.push("  held          no".to_owned());
    }
    lines.push(format!("  dead letters  {}", seen.dead_letters()));
    for group in &seen.dead {
        lines.push(format!(
            "    {} of {}: {}, the oldest of {}",
            group.count, group.tenant, group.reason, group.oldest_ended_at
        ));
    }
    lines.join("\n")
}

/// One destination for programs.
pub(crate) fn facts(seen: &Seen) -> Value {
    let destination = &seen.destination;
    let policy = &destination.policy;
    let facts = json!({
        "destination": destination.name.as_str(),
        "tenants": seen.tenants.iter().map(|tenant| tenant.as_str()).collect::<Vec<_>>(),
        "owner": destination.owner,
        "origin": destination.url.origin(),
        "event_types": destination.event_types.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "policy": {
            "max_attempts": policy.max_attempts,
            "base_delay_ms": policy.backoff.base.as_ms(),
            "factor": policy.backoff.factor,
            "max_delay_ms": policy.backoff.max.as_ms(),
            "horizon_ms": policy.horizon.as_ms(),
            "minimum_window_ms": policy.minimum_window.as_ms(),
        },
        "timeout_ms": destination.timeout.as_ms(),
        "on_ambiguous": on_ambiguous(destination),
        "holds": seen.each_hold().map(|(order, hold)| of_hold(order, hold)).collect::<Vec<_>>(),
        "dead_letters": seen.dead_letters(),
        "dead_letter_groups": seen.dead.iter().map(of_group).collect::<Vec<_>>(),
    });
    match facts {
        Value::Object(facts) => standing::added_to(facts, seen.standing.as_ref(), destination),
        facts => facts,
    }
}

fn on_ambiguous(destination: &Destination) -> &'static str {
    match destination.on_ambiguous {
        OnAmbiguous::Retry => "retry",
        OnAmbiguous::Query => "query",
        OnAmbiguous::Hold => "hold",
    }
}
