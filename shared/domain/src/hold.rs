//! The hold: a delivery that is right, but must not go now.
//!
//! A held delivery costs no attempt, no message and no polling; it keeps its state and its due
//! time, and its deadline goes on. It leaves the open index and comes back there when lifted.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::delivery::Record;
use crate::destination::EventPattern;
use crate::identity::{DestinationName, TenantId};
use crate::time::TimeMs;

/// Why deliveries are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// A person paused the destination or the tenant.
    Paused,
    /// A person keeps back a class of payloads.
    Quarantine,
    /// A person holds everything (a bad deployment, a rollback).
    Gate,
    /// Automation keeps back what its destination could only refuse until a person mended it.
    Suspended,
    /// The redrive run that released it was stopped, or halted itself.
    RunStopped,
    /// The destination's concurrency or rate is used up.
    Budget,
}

impl HoldReason {
    /// Every reason.
    pub const ALL: [HoldReason; 6] = [
        HoldReason::Paused,
        HoldReason::Quarantine,
        HoldReason::Gate,
        HoldReason::Suspended,
        HoldReason::RunStopped,
        HoldReason::Budget,
    ];

    /// The reason as it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            HoldReason::Paused => "paused",
            HoldReason::Quarantine => "quarantine",
            HoldReason::Gate => "gate",
            HoldReason::Suspended => "suspended",
            HoldReason::RunStopped => "run_stopped",
            HoldReason::Budget => "budget",
        }
    }
}

/// What a record keeps of the hold on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Why.
    pub reason: HoldReason,
    /// Since when.
    pub since: TimeMs,
}

/// Which deliveries a hold keeps back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldRule {
    /// All of a destination.
    Destination(DestinationName),
    /// All of a tenant.
    Tenant(TenantId),
    /// Those of some event types, of one payload version or any, of one tenant or any.
    Type {
        /// The types.
        types: EventPattern,
        /// The payload version, where only one is meant.
        payload_version: Option<u32>,
        /// The tenant, where only one is meant.
        tenant: Option<TenantId>,
    },
    /// Everything.
    All,
    /// All of a destination that automation suspended.
    Suspended(DestinationName),
    /// What the rule keeps back of one tenant's: whoever may hold for that tenant alone holds no other's.
    Within {
        /// The tenant.
        tenant: TenantId,
        /// The rule.
        rule: Box<HoldRule>,
    },
    /// What the rule keeps back but for these destinations, to which its eased hold lets go: what is for any
    /// other, also for one that is configured no more, stays. Worked out by whoever reads orders; never written.
    Elsewhere {
        /// The rule.
        rule: Box<HoldRule>,
        /// The destinations.
        than: Vec<DestinationName>,
    },
    /// Whatever this redrive run released last, of its own tenant where it has one: another's run may have
    /// been given the same name.
    Run {
        /// Which run.
        run: String,
        /// Whose it is; of all tenants where absent.
        tenant: Option<TenantId>,
    },
    /// A rule of a newer version, as it is written. Nobody here knows what it keeps back: everything that its
    /// book is about, until it is lifted or a worker that can read it is there again.
    #[serde(untagged)]
    Newer(Value),
}

impl HoldRule {
    /// The reason that a record held by this rule shows.
    pub const fn reason(&self) -> HoldReason {
        match self {
            HoldRule::Destination(_) | HoldRule::Tenant(_) => HoldReason::Paused,
            HoldRule::Type { .. } => HoldReason::Quarantine,
            HoldRule::All | HoldRule::Newer(_) => HoldReason::Gate,
            HoldRule::Suspended(_) => HoldReason::Suspended,
            HoldRule::Run { .. } => HoldReason::RunStopped,
            HoldRule::Within { rule, .. } | HoldRule::Elsewhere { rule, .. } => rule.reason(),
        }
    }

    /// Whether it keeps the delivery of `record` back.
    pub fn matches(&self, record: &Record) -> bool {
        let delivery = &record.delivery;
        match self {
            HoldRule::Destination(destination) | HoldRule::Suspended(destination) => {
                delivery.destination == *destination
            }
            HoldRule::Tenant(tenant) => delivery.tenant == *tenant,
            HoldRule::Type { types, payload_version, tenant } => {
                types.matches(&delivery.event_type)
                    && payload_version.is_none_or(|version| delivery.payload.version == Some(version))
                    && tenant.as_ref().is_none_or(|tenant| delivery.tenant == *tenant)
            }
            HoldRule::All | HoldRule::Newer(_) => true,
            HoldRule::Within { tenant, rule } => delivery.tenant == *tenant && rule.matches(record),
            HoldRule::Elsewhere { rule, than } => {
                !than.contains(&delivery.destination) && rule.matches(record)
            }
            HoldRule::Run { run, tenant } => {
                record.redrive_run.as_ref() == Some(run)
                    && tenant.as_ref().is_none_or(|tenant| delivery.tenant == *tenant)
            }
        }
    }
}

/// How much of a destination a rule keeps back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Nothing.
    Nothing,
    /// Of some tenants, of some types: not surely all.
    Part,
    /// Whatever goes there.
    Whole,
}

impl HoldRule {
    /// How much it keeps back of a destination that serves these tenants.
    pub fn share_of(&self, destination: &DestinationName, tenants: &[TenantId]) -> Share {
        let of_tenant = |tenant: &TenantId, share: Share| match (tenants, share) {
            _ if !tenants.contains(tenant) => Share::Nothing,
            ([_], share) => share,
            (_, Share::Nothing) => Share::Nothing,
            _ => Share::Part,
        };
        match self {
            HoldRule::Destination(name) | HoldRule::Suspended(name) if name != destination => Share::Nothing,
            HoldRule::Destination(_) | HoldRule::Suspended(_) | HoldRule::All | HoldRule::Newer(_) => {
                Share::Whole
            }
            HoldRule::Elsewhere { than, .. } if than.contains(destination) => Share::Nothing,
            HoldRule::Elsewhere { rule, .. } => rule.share_of(destination, tenants),
            HoldRule::Tenant(tenant) => of_tenant(tenant, Share::Whole),
            HoldRule::Within { tenant, rule } => of_tenant(tenant, rule.share_of(destination, tenants)),
            HoldRule::Type { tenant: Some(tenant), .. } => of_tenant(tenant, Share::Part),
            HoldRule::Type { tenant: None, .. } | HoldRule::Run { .. } => Share::Part,
        }
    }

    /// What it keeps back of this destination's, or more where that cannot be said.
    #[must_use]
    pub fn at(&self, destination: &DestinationName) -> HoldRule {
        match self {
            HoldRule::Tenant(tenant) => HoldRule::Within {
                tenant: tenant.clone(),
                rule: Box::new(HoldRule::Destination(destination.clone())),
            },
            HoldRule::All | HoldRule::Newer(_) => HoldRule::Destination(destination.clone()),
            HoldRule::Within { tenant, rule } => {
                HoldRule::Within { tenant: tenant.clone(), rule: Box::new(rule.at(destination)) }
            }
            rule => rule.clone(),
        }
    }
}

/// The reason for which the delivery of `record` is to be held now, if there is one.
pub fn matching(rules: &[HoldRule], record: &Record) -> Option<HoldReason> {
    rules.iter().find(|rule| rule.matches(record)).map(HoldRule::reason)
}

/// Whether a hold surely keeps everything of a destination.
pub fn keeps_all(rules: &[HoldRule], destination: &DestinationName) -> bool {
    rules.iter().any(|rule| match rule {
        HoldRule::All | HoldRule::Newer(_) => true,
        HoldRule::Destination(name) | HoldRule::Suspended(name) => name == destination,
        HoldRule::Elsewhere { rule, than } => {
            !than.contains(destination) && keeps_all(std::slice::from_ref(rule), destination)
        }
        HoldRule::Tenant(_) | HoldRule::Type { .. } | HoldRule::Run { .. } | HoldRule::Within { .. } => false,
    })
}
