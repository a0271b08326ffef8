//! A plan: which dead letters are meant, and what a run would do with each. It writes nothing, touches
//! no message, and is a file: a run is only ever started from one.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use waybill_domain::audit;
use waybill_domain::delivery::Record;
use waybill_domain::destination::Destination;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::fault::InvalidField;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{ConfigRevision, DestinationName, TenantId};
use waybill_domain::order::OrderId;
use waybill_domain::outcome::Applied;
use waybill_domain::redrive::{Bench, Block, Fate, Reviews, Selection, judge};
use waybill_domain::time::TimeMs;

use crate::config::Config;
use crate::ports::{Catalogue, Cursor, DeadLetterFilter, PortResult};

/// How many deliveries or events one plan may name.
const MOST_NAMED: usize = 500;
/// How many groups of destination, reason and fate one run may have.
const MOST_GROUPS: usize = 500;
/// How many dead letters a plan may count in all: more than a ledger holds, and exact in every reader of JSON.
const MOST_COUNTED: u64 = (1 << 53) - 1;

/// How many dead letters are read at once.
pub(super) const PAGE: usize = 100;

/// What a run would do, as of `made_at`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The run that it becomes. The same plan started twice is one run.
    pub run: OrderId,
    /// When it was made. Later dead letters are not in it.
    #[serde(with = "waybill_domain::time::rfc3339")]
    pub made_at: TimeMs,
    /// By whom.
    pub made_by: String,
    /// Under which configuration.
    pub config_revision: ConfigRevision,
    /// Which dead letters are meant; `until` is at most `made_at`.
    pub selection: Selection,
    /// What was taken upon oneself.
    pub reviews: Reviews,
    /// What it counted, by destination, then reason, then fate.
    pub groups: Vec<Group>,
}

/// Dead letters of one destination and reason that share a fate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// To whom.
    pub destination: DestinationName,
    /// Why automation ended.
    pub reason: DeadLetterReason,
    /// What a run would do with them.
    pub fate: Fate,
    /// How many; at least 1.
    pub count: u64,
    /// How many of them the recipient may have applied already: their last attempt ended so that nobody
    /// knows. Only its own deduplication then keeps the effect single.
    #[serde(default)]
    pub perhaps_applied: u64,
}

impl Plan {
    /// Whether it is one that [`plan`] can have made by `now`: a file may have been edited since.
    pub fn check(&self, now: TimeMs) -> Result<(), InvalidField> {
        if !self.run.as_str().starts_with("rdr_") {
            return Err(InvalidField::new("run", "is not the ID of a run", "rdr_ and 26 digits"));
        }
        if self.made_at > now {
            return Err(InvalidField::new("made_at", "is in the future", "the time when the plan was made"));
        }
        let rule = "at most made_at: what ended later is in no plan";
        match self.selection.until {
            Some(until) if until <= self.made_at => {}
            Some(_) => return Err(InvalidField::new("selection.until", "is after made_at", rule)),
            None => return Err(InvalidField::new("selection.until", "is missing", rule)),
        }
        // A run and its entry in the audit are an item each, of 400 KB at most on DynamoDB.
        let Selection { deliveries, events, .. } = &self.selection;
        let most = format!("at most {MOST_NAMED}; make several plans");
        for (field, count) in [("deliveries", deliveries.len()), ("events", events.len())] {
            if count > MOST_NAMED {
                return Err(InvalidField::new(format!("selection.{field}"), format!("names {count}"), most));
            }
        }
        if self.groups.len() > MOST_GROUPS {
            let rule = format!("at most {MOST_GROUPS}; select a destination or a reason");
            return Err(InvalidField::new("groups", format!("there are {}", self.groups.len()), rule));
        }
        for group in &self.groups {
            if group.count == 0 || group.perhaps_applied > group.count {
                let fault = format!("counts {}, {} perhaps applied", group.count, group.perhaps_applied);
                return Err(InvalidField::new(
                    "groups",
                    fault,
                    "at least 1, and no fewer than perhaps_applied",
                ));
            }
        }
        let counted = self.count(|_| true);
        if counted > MOST_COUNTED {
            return Err(InvalidField::new("groups", format!("count {counted}"), "at most 2^53 - 1 in all"));
        }
        let Reviews { permanent, ambiguous, beyond_limit } = &self.reviews;
        let reviews = [("permanent", permanent), ("ambiguous", ambiguous), ("beyond_limit", beyond_limit)];
        for (name, review) in reviews {
            if let Some(text) = review {
                audit::why(text).map_err(|invalid| invalid.of(format!("reviews.{name}")))?;
            }
        }
        Ok(())
    }

    /// How many share a fate.
    pub fn count(&self, fate: impl Fn(Fate) -> bool) -> u64 {
        self.groups
            .iter()
            .filter(|group| fate(group.fate))
            .map(|group| group.count)
            .fold(0, u64::saturating_add)
    }

    /// How many a run would release.
    pub fn releasable(&self) -> u64 {
        self.count(|fate| fate == Fate::Release)
    }

    /// What blocks how many.
    pub fn blocks(&self) -> BTreeMap<Block, u64> {
        let mut found = BTreeMap::new();
        for group in &self.groups {
            if let Fate::Blocked(block) = group.fate {
                *found.entry(block).or_default() += group.count;
            }
        }
        found
    }

    /// Whether a hold keeps something back that a run of it would release.
    pub fn is_touched_by(&self, rule: &HoldRule) -> bool {
        let Selection { tenant, event_type, .. } = &self.selection;
        let is_its = |of: &TenantId| tenant.as_ref().is_none_or(|tenant| tenant == of);
        match rule {
            HoldRule::Destination(name) | HoldRule::Suspended(name) => {
                let mut released = self.groups.iter().filter(|group| group.fate == Fate::Release);
                released.any(|group| group.destination == *name)
            }
            HoldRule::Tenant(of) => is_its(of),
            HoldRule::Type { types, tenant: of, .. } => {
                of.as_ref().is_none_or(is_its) && event_type.as_ref().is_none_or(|wanted| types.meets(wanted))
            }
            HoldRule::All | HoldRule::Newer(_) => true,
            HoldRule::Within { tenant, rule } => is_its(tenant) && self.is_touched_by(rule),
            HoldRule::Elsewhere { rule, .. } => self.is_touched_by(rule),
            HoldRule::Run { .. } => false,
        }
    }

    /// The destinations that a run has anything to do at.
    pub fn destinations(&self) -> impl Iterator<Item = &DestinationName> {
        self.groups.iter().map(|group| &group.destination)
    }
}

/// Whose plan is made, and how.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The identifier of the run that it becomes.
    pub run: OrderId,
    /// Who asks.
    pub by: String,
    /// Which dead letters.
    pub selection: Selection,
    /// What is taken upon oneself.
    pub reviews: Reviews,
}

/// Makes a plan of what stands now.
pub async fn plan(ledger: &impl Catalogue, config: &Config, wish: Wish, now: TimeMs) -> PortResult<Plan> {
    let Wish { run, by, mut selection, reviews } = wish;
    selection.until = Some(selection.until.map_or(now, |until| until.min(now)));
    let bench = Bench { reviews: &reviews, max_redrives: config.system.max_redrives, now };
    let mut groups: BTreeMap<(DestinationName, DeadLetterReason, Fate), (u64, u64)> = BTreeMap::new();
    let mut from = None;
    loop {
        let page = ledger.dead_letters(&filter(&selection), PAGE, from.as_ref()).await?;
        for record in page.items.iter().filter(|record| selection.matches(record)) {
            let Some(reason) = record.dead_letter_reason() else { continue };
            let fate = judge(record, destination_of(config, record).as_deref(), bench);
            let (count, perhaps_applied) =
                groups.entry((record.delivery.destination.clone(), reason, fate)).or_default();
            *count += 1;
            *perhaps_applied += u64::from(is_perhaps_applied(record));
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    let groups = groups.into_iter();
    let groups = groups.map(|((destination, reason, fate), (count, perhaps_applied))| Group {
        destination,
        reason,
        fate,
        count,
        perhaps_applied,
    });
    Ok(Plan {
        run,
        made_at: now,
        made_by: by,
        config_revision: config.revision.clone(),
        selection,
        reviews,
        groups: groups.collect(),
    })
}

/// Whether its last attempt ended so that nobody knows whether it was applied.
fn is_perhaps_applied(record: &Record) -> bool {
    record.last_failure.as_ref().is_some_and(|last| last.failure.applied == Applied::Unknown)
}

/// What of a selection the ledger can look for.
pub fn filter(selection: &Selection) -> DeadLetterFilter {
    DeadLetterFilter {
        tenant: selection.tenant.clone(),
        destination: selection.destination.clone(),
        reason: selection.reason,
        ended_before: selection.until,
    }
}

pub(super) fn destination_of(config: &Config, record: &Record) -> Option<Arc<Destination>> {
    config.destination_of(&record.delivery)
}

/// A place in a listing, as a run keeps it.
pub(super) fn cursor(from: Option<&String>) -> Option<Cursor> {
    from.cloned().map(Cursor)
}
