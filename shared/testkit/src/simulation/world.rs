//! Who is there, and what they run on: one ledger, one queue, one recipient, one clock; and use
//! cases as actors that are stepped by hand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::destination::{Destination, EventPattern, OnAmbiguous};
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{ConfigRevision, DeliveryKey, DestinationName, EventType, TenantId};
use waybill_domain::policy::{Policy, PolicyTerms};
use waybill_domain::time::DurationMs;
use waybill_service::config::{Config, System};

use crate::clock::{SkewedClock, VirtualClock};
use crate::memory::{MemoryLedger, MemoryOffice, MemoryQueue, QueueRules};
use crate::scripted::ScriptedRecipient;

use super::in_force::InForce;
use super::sabotage::Sabotage;

/// The tenant of a delivery, where nothing else is said.
pub const TENANT: &str = "acme";

/// Somebody else, who shares destinations with it.
pub const NEIGHBOUR: &str = "globex";

/// What everybody shares.
#[derive(Debug, Clone)]
pub struct World {
    /// The true time.
    pub clock: VirtualClock,
    /// The truth about deliveries.
    pub ledger: MemoryLedger,
    /// The wake-ups.
    pub queue: MemoryQueue,
    /// What operators order, and the history of the configuration.
    pub office: MemoryOffice,
    /// The other side.
    pub recipient: ScriptedRecipient<VirtualClock>,
    /// How long a received message is hidden.
    pub visibility: DurationMs,
    /// Which rule is broken, if one is.
    pub sabotage: Option<Sabotage>,
    config: Arc<Mutex<Arc<Config>>>,
    in_force: InForce,
    /// What somebody sees who read the configuration a moment ago.
    pinned: Option<Arc<Config>>,
    /// Whether whoever begins is of the next version.
    pub(super) is_next: bool,
}

impl World {
    /// A world without deliveries.
    pub fn new(rules: QueueRules, destinations: Vec<Destination>, sabotage: Option<Sabotage>) -> Self {
        let clock = VirtualClock::default();
        let dropped = match sabotage {
            Some(Sabotage::Drops(clause)) => Some(clause),
            _ => None,
        };
        Self {
            ledger: MemoryLedger::without(dropped),
            office: MemoryOffice::without(dropped),
            queue: MemoryQueue::new(&clock, rules),
            recipient: ScriptedRecipient::new(&clock),
            // 6 × the function's timeout of 60 s, as the plan of the infrastructure checks it.
            visibility: DurationMs::from_secs(360),
            sabotage,
            config: Arc::new(Mutex::new(Arc::new(config(destinations)))),
            in_force: InForce::default(),
            pinned: None,
            is_next: false,
            clock,
        }
    }

    /// The configuration as it stands, with every hold in force; or as whoever uses this world saw it.
    pub fn config(&self) -> Arc<Config> {
        match &self.pinned {
            Some(pinned) => pinned.clone(),
            None => self.in_force.read(&self.office, &self.slot()),
        }
    }

    /// The same world as seen by somebody who read the configuration a moment ago.
    pub fn seeing(&self, config: Arc<Config>) -> Self {
        Self { pinned: Some(config), ..self.clone() }
    }

    /// The same world for actors of the next version.
    pub fn of_the_next_version(&self) -> Self {
        Self { is_next: true, ..self.clone() }
    }

    /// Changes the configuration for whoever begins from now on.
    pub fn change_config(&self, change: impl FnOnce(&mut Config)) {
        let mut slot = self.slot();
        let mut config = Config::clone(&slot);
        change(&mut config);
        *slot = Arc::new(config);
    }

    /// Puts these holds in force, and no others.
    pub fn hold(&self, holds: Vec<HoldRule>) {
        self.change_config(|config| config.holds = holds);
    }

    /// A machine's clock that is right.
    pub fn right_clock(&self) -> SkewedClock {
        SkewedClock::of(&self.clock, 0)
    }

    /// Where the items of a delivery of [`TENANT`] live.
    pub fn key(&self, event_id: &str, destination: &str) -> DeliveryKey {
        self.key_of(&TenantId::parse(TENANT).expect("a tenant"), event_id, destination)
    }

    /// Where the items of a delivery of anybody live.
    pub fn key_of(&self, tenant: &TenantId, event_id: &str, destination: &str) -> DeliveryKey {
        let event_id = waybill_domain::identity::EventId::parse(event_id).expect("an event ID");
        let destination = DestinationName::parse(destination).expect("a destination");
        let delivery_id = waybill_domain::identity::DeliveryId::derive(tenant, &event_id, &destination);
        DeliveryKey { tenant: tenant.clone(), delivery_id }
    }

    fn slot(&self) -> MutexGuard<'_, Arc<Config>> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A destination of [`TENANT`] with a timeout of 15 s.
pub fn destination(name: &str, terms: PolicyTerms) -> Destination {
    Destination {
        name: DestinationName::parse(name).expect("a destination"),
        tenants: vec![TenantId::parse(TENANT).expect("a tenant")],
        owner: None,
        url: RecipientUrl::parse("url", "https://recipient.example/hooks", Locality::PublicOnly)
            .expect("a public URL"),
        secrets: Vec::new(),
        headers: Vec::new(),
        event_types: vec![EventPattern::parse("*").expect("a pattern")],
        policy: Policy::new(terms).expect("a policy"),
        timeout: DurationMs::from_secs(15),
        budget: None,
        suspension: None,
        on_ambiguous: OnAmbiguous::Retry,
        status_url: None,
        statuses: BTreeMap::new(),
        keep_result: false,
    }
}

/// The type of the events of a history: of even or odd kind, so that a quarantine can meet some.
pub fn event_type(is_odd: bool) -> EventType {
    EventType::parse(if is_odd { "odd.recorded" } else { "even.recorded" }).expect("a type")
}

fn config(destinations: Vec<Destination>) -> Config {
    Config {
        measured: Default::default(),
        revision: ConfigRevision::parse("cfg-1").expect("a revision"),
        destinations: destinations.into_iter().map(|d| (d.name.clone(), Arc::new(d))).collect(),
        policies: BTreeMap::new(),
        schemas: BTreeMap::new(),
        schedules: Vec::new(),
        applied_at: None,
        producers: BTreeMap::new(),
        sources: BTreeMap::new(),
        event_types: Vec::new(),
        system: System::default(),
        operators: BTreeMap::new(),
        holds: Vec::new(),
        eased: BTreeMap::new(),
        resumed: Vec::new(),
    }
}
