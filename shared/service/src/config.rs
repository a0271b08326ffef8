//! The configuration as the use cases see it: checked, immutable, with a revision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use waybill_domain::authority::Authority;
use waybill_domain::budget::Budget;
use waybill_domain::delivery::Delivery;
use waybill_domain::destination::{Destination, EventPattern, SecretRef};
use waybill_domain::event_template::{self, EventIdTemplate};
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{ConfigRevision, DestinationName, EventType, PolicyName, TenantId};
use waybill_domain::order::Order;
use waybill_domain::policy::Policy;
use waybill_domain::redrive::Resumed;
use waybill_domain::repair::LookRules;
use waybill_domain::schedule::{BusinessDay, Timing, Window};
use waybill_domain::source::Source;
use waybill_domain::time::{DurationMs, TimeMs};

use crate::easing::Said;
use crate::event::Event;
use crate::payload_schema::PayloadSchema;

/// One revision of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Which one. Every attempt records it.
    pub revision: ConfigRevision,
    /// The recipients.
    pub destinations: BTreeMap<DestinationName, Arc<Destination>>,
    /// Retry rules by name, for deliveries that have some of their own.
    pub policies: BTreeMap<PolicyName, Policy>,
    /// Which payloads a destination takes, where it says so.
    pub schemas: BTreeMap<DestinationName, Arc<PayloadSchema>>,
    /// The destinations that metrics name; all others share one label.
    pub measured: BTreeSet<DestinationName>,
    /// Who may publish, by name.
    pub producers: BTreeMap<String, Producer>,
    /// Whose webhooks come in, by name.
    pub sources: BTreeMap<String, Source>,
    /// Rules by event type; the first that matches counts.
    pub event_types: Vec<(EventPattern, EventTypeRules)>,
    /// What is published by the calendar, in the order of their names.
    pub schedules: Vec<Schedule>,
    /// When this revision was applied, as far as whoever read it knows: a schedule starts with its first
    /// window after that, and older windows are owed only behind one that the ledger has (the schedule was in
    /// force by then). `None`: nobody knows, and every window within `catch_up` is owed.
    pub applied_at: Option<TimeMs>,
    /// Settings that are neither a policy's nor a destination's.
    pub system: System,
    /// Who may operate, and on what; empty where nobody is restricted.
    pub operators: BTreeMap<String, Authority>,
    /// The holds in force. They come from orders, not from the file.
    pub holds: Vec<HoldRule>,
    /// Budgets that stand instead of destinations' own, while the holds on these are eased; likewise.
    pub eased: BTreeMap<DestinationName, Budget>,
    /// Redrive runs that go on after a stop; likewise.
    pub resumed: Vec<Resumed>,
}

/// Who may publish for which tenants.
#[derive(Debug, Clone, PartialEq)]
pub struct Producer {
    /// For these tenants.
    pub tenants: Vec<TenantId>,
    /// Bearer tokens, by reference.
    pub tokens: Vec<SecretRef>,
    /// What verifies Standard Webhooks signatures of its requests, by reference. One of the two
    /// lists has something in it.
    pub secrets: Vec<SecretRef>,
}

/// What is published for every closed window of a calendar.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Its name in the configuration.
    pub name: String,
    /// When it fires.
    pub timing: Timing,
    /// One delivery for each of these and each window.
    pub tenants: Vec<TenantId>,
    /// To whom. It serves every one of the tenants.
    pub destination: DestinationName,
    /// As what.
    pub event_type: EventType,
    /// Under which event ID.
    pub event_id: EventIdTemplate,
    /// Under which retry rules; its destination's where it names none. They are those of this name at the
    /// time that they are asked for.
    pub policy: Option<PolicyName>,
    /// The payload, with `{schedule}`, `{tenant}` and `{window}` in its texts to be filled in.
    pub payload: serde_json::Value,
    /// How long ago a missed window may have been fired for.
    pub catch_up: DurationMs,
    /// Since when it is in force for a tenant without a gap and without another event ID or destination:
    /// what fired before is not owed. Empty where only the configuration as a whole is known to have been
    /// applied.
    pub since: BTreeMap<TenantId, TimeMs>,
    /// The event IDs that it had before for a tenant: what is owed from then is owed under these.
    pub former: BTreeMap<TenantId, Vec<FormerIds>>,
}

/// Event IDs that a schedule had for a time.
#[derive(Debug, Clone, PartialEq)]
pub struct FormerIds {
    /// Their template.
    pub event_id: EventIdTemplate,
    /// What fired after this, ...
    pub since: TimeMs,
    /// ... and not after this, may be owed under them.
    pub until: TimeMs,
}

impl FormerIds {
    /// Whether they were the schedule's when it fired for this window.
    pub fn cover(&self, window: &Window) -> bool {
        self.since < window.fires_at && window.fires_at <= self.until
    }
}

impl Schedule {
    /// The event of one tenant and business day: the same bytes each time.
    pub fn event(&self, tenant: &TenantId, day: BusinessDay) -> Event {
        let fill = |text: &str| event_template::fill(text, &self.name, tenant.as_str(), &day.to_string());
        Event {
            event_id: self.event_id.fill(tenant, day),
            tenant: tenant.clone(),
            event_type: self.event_type.clone(),
            destination: Some(self.destination.clone()),
            scope: None,
            deadline: None,
            not_before: None,
            policy: self.policy.clone(),
            payload_version: None,
            content_type: "application/json".to_owned(),
            payload: filled(&self.payload, &fill).to_string().into(),
            trace: None,
        }
    }
}

fn filled(value: &serde_json::Value, fill: &impl Fn(&str) -> String) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) => Value::String(fill(text)),
        Value::Array(items) => items.iter().map(|item| filled(item, fill)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), filled(field, fill))).collect()
        }
        other => other.clone(),
    }
}

/// What an event type asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventTypeRules {
    /// No deadline, no send.
    pub require_deadline: bool,
}

/// `[system]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct System {
    /// How long past its due time a delivery lies before the reconciler rescues it.
    pub stale_after: DurationMs,
    /// How long before its deadline a delivery is woken in any case.
    pub rescue_window: DurationMs,
    /// How often a dead letter may be released.
    pub max_redrives: u32,
}

impl Default for System {
    fn default() -> Self {
        Self {
            stale_after: DurationMs::from_secs(300),
            rescue_window: DurationMs::from_secs(600),
            max_redrives: 3,
        }
    }
}

impl Config {
    /// The same under what these open orders say.
    pub fn under<'a>(self, open: impl IntoIterator<Item = &'a Order>) -> Self {
        let Said { holds, eased, resumed } = Said::by(open, &self);
        Self { holds, eased, resumed, ..self }
    }

    /// What a destination may be asked to bear now: its own budget, or less while a hold on it is eased.
    pub fn budget_of<'a>(&'a self, destination: &'a Destination) -> Option<&'a Budget> {
        self.eased.get(&destination.name).or(destination.budget.as_ref())
    }

    /// The destination of this name, if it serves the tenant.
    pub fn destination(&self, name: &DestinationName, tenant: &TenantId) -> Option<&Arc<Destination>> {
        self.destinations.get(name).filter(|destination| destination.serves(tenant))
    }

    /// The destination of a delivery as it counts for that delivery: under the delivery's own retry rules,
    /// where it has some and they are still configured.
    pub fn destination_of(&self, delivery: &Delivery) -> Option<Arc<Destination>> {
        let destination = self.destination(&delivery.destination, &delivery.tenant)?;
        let own = delivery.policy.as_ref().and_then(|name| self.policies.get(name));
        Some(own.map_or_else(|| destination.clone(), |policy| Arc::new(destination.under(*policy))))
    }

    /// Every destination of the tenant that subscribes to the type, by name.
    pub fn subscribers(&self, tenant: &TenantId, event_type: &EventType) -> Vec<&Arc<Destination>> {
        self.destinations.values().filter(|d| d.serves(tenant) && d.subscribes_to(event_type)).collect()
    }

    /// The rules of an event type.
    pub fn rules_for(&self, event_type: &EventType) -> EventTypeRules {
        let found = self.event_types.iter().find(|(pattern, _)| pattern.matches(event_type));
        found.map(|(_, rules)| *rules).unwrap_or_default()
    }

    /// When the schedule fired that published a delivery, as far as the schedules of this revision tell;
    /// `None` for what no schedule published.
    pub fn fired_at(&self, delivery: &Delivery, now: TimeMs) -> Option<TimeMs> {
        let is_of = |schedule: &&Schedule| {
            schedule.destination == delivery.destination
                && schedule.event_type == delivery.event_type
                && schedule.tenants.contains(&delivery.tenant)
        };
        self.schedules.iter().filter(is_of).find_map(|schedule| {
            // It fired before it was published, by as much as is caught up.
            let back = now.since(delivery.first_queued_at).plus(schedule.catch_up);
            let windows = schedule.timing.closed_windows(back, now);
            let its =
                |window: &&Window| schedule.event_id.fill(&delivery.tenant, window.day) == delivery.event_id;
            windows.iter().find(its).map(|window| window.fires_at)
        })
    }

    /// When open deliveries are looked at, with a queue of this window.
    pub fn look_rules(&self, queue_window: DurationMs) -> LookRules {
        LookRules {
            queue_window,
            stale_after: self.system.stale_after,
            rescue_window: self.system.rescue_window,
        }
    }
}
