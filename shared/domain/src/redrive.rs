//! Redrive: releasing dead letters as a controlled change of production.
//!
//! A [`Selection`] says which dead letters are meant; [`judge`] says of each what a run may do with
//! it; a [`Run`] releases them at its rate, lane by lane (one for each destination), and halts itself
//! when most of what it released fails again. What was released is never taken back: a stopped run
//! holds it.

mod pause;
mod run;

use serde::{Deserialize, Serialize};

use crate::authority::Book;
use crate::delivery::Record;
use crate::destination::{Destination, EventPattern};
use crate::ending::DeadLetterReason;
use crate::identity::{DeliveryId, DestinationName, EventId, TenantId};
use crate::time::{DurationMs, TimeMs};

pub use pause::{Pause, Pauses, Resumed, UNHEARD};
pub use run::{
    InHand, Lane, NotOurs, OUTCOMES, ReleaseRate, Run, Standing, Tally, WATCHED, Watched, outcome_of,
};

/// Which dead letters are meant. Absent fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// Of this tenant; across all tenants where absent.
    pub tenant: Option<TenantId>,
    /// To this destination.
    pub destination: Option<DestinationName>,
    /// That ended for this reason.
    pub reason: Option<DeadLetterReason>,
    /// Of these event types.
    pub event_type: Option<EventPattern>,
    /// That ended at this time or later.
    #[serde(default, with = "crate::time::rfc3339::option")]
    pub since: Option<TimeMs>,
    /// That ended before this time; a plan sets it to its own time at the latest.
    #[serde(default, with = "crate::time::rfc3339::option")]
    pub until: Option<TimeMs>,
    /// Only these deliveries, where any are named.
    pub deliveries: Vec<DeliveryId>,
    /// Only these events, where any are named.
    pub events: Vec<EventId>,
    /// Only events whose ID begins like this, such as a tenant and a business date.
    pub event_prefix: Option<String>,
}

impl Selection {
    /// Whose matter it is.
    pub fn book(&self) -> Book {
        Book::from(self.tenant.clone())
    }

    /// Whether it means the dead letter of `record`.
    pub fn matches(&self, record: &Record) -> bool {
        let (delivery, ended_at) = (&record.delivery, record.ended_at);
        let Some(reason) = record.dead_letter_reason() else { return false };
        self.tenant.as_ref().is_none_or(|tenant| *tenant == delivery.tenant)
            && self.destination.as_ref().is_none_or(|destination| *destination == delivery.destination)
            && self.reason.is_none_or(|wanted| wanted == reason)
            && self.event_type.as_ref().is_none_or(|types| types.matches(&delivery.event_type))
            && self.since.is_none_or(|since| ended_at >= Some(since))
            && self.until.is_none_or(|until| ended_at < Some(until))
            && (self.deliveries.is_empty() || self.deliveries.contains(&delivery.id))
            && (self.events.is_empty() || self.events.contains(&delivery.event_id))
            && self.event_prefix.as_ref().is_none_or(|p| delivery.event_id.as_str().starts_with(p.as_str()))
    }
}

/// What a reviewer took upon themselves, each with the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reviews {
    /// Permanent failures may go although nothing was changed.
    pub permanent: Option<String>,
    /// What the recipient may have applied already may be sent again.
    pub ambiguous: Option<String>,
    /// Deliveries may be released more often than the limit says.
    pub beyond_limit: Option<String>,
}

/// What a run may do with one dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Release it.
    Release,
    /// Its deadline has passed: it becomes expired, and is not sent.
    Expire,
    /// It stays a dead letter.
    Blocked(Block),
}

/// Why a dead letter is not released, and what would release it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Only a person can mend what failed, and the destination's configuration is as it was.
    Permanent,
    /// Its destination's schema refused it: nobody sent it, so no change of the destination tells.
    PayloadInvalid,
    /// The recipient may have applied it.
    Ambiguous,
    /// It was released as often as the limit allows.
    RedrivesUsedUp,
    /// Its destination is not configured, or does not serve its tenant.
    DestinationRemoved,
}

impl Block {
    /// The block as it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Block::Permanent => "permanent",
            Block::PayloadInvalid => "payload_invalid",
            Block::Ambiguous => "ambiguous",
            Block::RedrivesUsedUp => "redrives_used_up",
            Block::DestinationRemoved => "destination_removed",
        }
    }

    /// What would release it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Block::Permanent => {
                "change the destination's url, secrets, headers or statuses, or, if it was mended elsewhere (at the \
                 recipient, or the value behind a secret's reference), say --permanent-reviewed \"why\""
            }
            Block::PayloadInvalid => {
                "correct the schema, so that it takes the payload, then say --permanent-reviewed \"why\""
            }
            Block::Ambiguous => {
                "ask the recipient whether it was applied; then resolve it, or say --ambiguous-reviewed \"why\""
            }
            Block::RedrivesUsedUp => "say --beyond-limit \"why\"",
            Block::DestinationRemoved => "configure the destination for this tenant again",
        }
    }
}

/// What dead letters are judged by.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'a> {
    /// What was taken upon oneself.
    pub reviews: &'a Reviews,
    /// How often a delivery may be released.
    pub max_redrives: u32,
    /// The wall clock.
    pub now: TimeMs,
}

/// Judges one dead letter; `destination` is its own, if it is configured and serves its tenant.
pub fn judge(record: &Record, destination: Option<&Destination>, bench: Bench<'_>) -> Fate {
    let Bench { reviews, max_redrives, now } = bench;
    let minimum_window = destination.map_or(DurationMs::ZERO, |d| d.policy.minimum_window);
    if record.delivery.deadline.is_some_and(|at| now >= at || now > at.minus(minimum_window)) {
        return Fate::Expire;
    }
    let Some(destination) = destination else { return Fate::Blocked(Block::DestinationRemoved) };
    if record.redrives >= max_redrives && reviews.beyond_limit.is_none() {
        return Fate::Blocked(Block::RedrivesUsedUp);
    }
    match record.dead_letter_reason() {
        Some(DeadLetterReason::Permanent(_)) if reviews.permanent.is_none() => {
            let then = record.last_failure.as_ref().and_then(|last| last.destination.as_deref());
            match then == Some(destination.fingerprint().as_str()) {
                true => Fate::Blocked(Block::Permanent),
                false => Fate::Release,
            }
        }
        // Nobody sent it, so no attempt tells of a configuration: whoever mended the schema says so.
        Some(DeadLetterReason::PayloadInvalid) if reviews.permanent.is_none() => {
            Fate::Blocked(Block::PayloadInvalid)
        }
        Some(DeadLetterReason::AmbiguousOutcome) if reviews.ambiguous.is_none() => {
            Fate::Blocked(Block::Ambiguous)
        }
        _ => Fate::Release,
    }
}
