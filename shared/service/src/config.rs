//! The configuration as the use cases see it: checked, immutable, with a revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use waybill_domain::destination::{Destination, EventPattern, SecretRef};
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{ConfigRevision, DestinationName, EventType, TenantId};
use waybill_domain::repair::LookRules;
use waybill_domain::source::Source;
use waybill_domain::time::DurationMs;

/// One revision of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Which one. Every attempt records it.
    pub revision: ConfigRevision,
    /// The recipients.
    pub destinations: BTreeMap<DestinationName, Arc<Destination>>,
    /// Who may publish, by name.
    pub producers: BTreeMap<String, Producer>,
    /// Whose webhooks come in, by name.
    pub sources: BTreeMap<String, Source>,
    /// Rules by event type; the first that matches counts.
    pub event_types: Vec<(EventPattern, EventTypeRules)>,
    /// Settings that are neither a policy's nor a destination's.
    pub system: System,
    /// The holds in force.
    pub holds: Vec<HoldRule>,
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
}

impl Default for System {
    fn default() -> Self {
        Self { stale_after: DurationMs::from_secs(300), rescue_window: DurationMs::from_secs(600) }
    }
}

impl Config {
    /// The destination of this name, if it serves the tenant.
    pub fn destination(&self, name: &DestinationName, tenant: &TenantId) -> Option<&Arc<Destination>> {
        self.destinations.get(name).filter(|destination| destination.serves(tenant))
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

    /// When open deliveries are looked at, with a queue of this window.
    pub fn look_rules(&self, queue_window: DurationMs) -> LookRules {
        LookRules {
            queue_window,
            stale_after: self.system.stale_after,
            rescue_window: self.system.rescue_window,
        }
    }
}
