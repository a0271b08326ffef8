//! A suspended destination gets its probe and nothing else, one at a time; a success ends its row of failures
//! and its suspension; each suspension is one order with one entry in the audit.
//!
//! A worker goes by what the destination's item said after it began, so that whoever began after a suspension
//! was written has seen it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use waybill_domain::audit::Act;
use waybill_domain::delivery::{Record, State};
use waybill_domain::ending::Disposition;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::DestinationName;
use waybill_domain::order::{Hold, Order, OrderBody, OrderId};
use waybill_domain::suspension::{Health, Suspension};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::Config;
use waybill_service::ports::Clock;

use crate::memory::Write;
use crate::scripted::Received;

use super::{Auditor, Broken, SKEW};

/// Two probes of a suspension are at least this far apart: a minute, less what two clocks may differ by, at
/// each of them.
const APART: DurationMs = DurationMs::from_secs(52);

/// What was seen of suspensions.
#[derive(Debug, Default)]
pub(super) struct Suspensions {
    /// Who began, and what stood then.
    workers: BTreeMap<String, Begun>,
    /// The suspension in force of each destination.
    in_force: BTreeMap<DestinationName, Seen>,
    /// Every suspension that ever was in force.
    all: BTreeMap<OrderId, DestinationName>,
    /// The destinations that nothing suspended under some configuration.
    unruled: BTreeSet<DestinationName>,
    /// As of which write of the office.
    looked_at: u64,
}

#[derive(Debug)]
struct Begun {
    at: TimeMs,
    /// What the row of each destination had in it that something suspends, as far as the worker knows.
    rows: BTreeMap<DestinationName, Vec<String>>,
    /// Where it had a success, and when it had begun that, by its own clock.
    took: Option<(DestinationName, TimeMs)>,
}

#[derive(Debug)]
struct Seen {
    id: OrderId,
    /// Since when, as it says itself.
    since: TimeMs,
    /// When it was written, in truth.
    at: TimeMs,
    last_probe: Option<Probe>,
}

#[derive(Debug)]
struct Probe {
    sender: String,
    at: TimeMs,
}

impl Seen {
    fn is(&self, suspension: &Suspension) -> bool {
        self.id == suspension.id && self.since == suspension.since
    }
}

impl Auditor {
    /// A worker begins under this configuration.
    pub fn begins(&mut self, worker: &str, config: &Config) {
        let ruled = config.destinations.values().filter(|destination| destination.suspension.is_some());
        let rows = ruled.map(|destination| {
            let health = self.world.ledger.peek_usage(&destination.name).usage.health;
            (destination.name.clone(), row_of(&health))
        });
        let begun = Begun { at: self.now(), rows: rows.collect(), took: None };
        self.suspensions.workers.insert(worker.to_owned(), begun);
    }

    /// A recipient took something of a worker, which wrote it down under its claim.
    pub(super) fn note_success(&mut self, write: &Write) {
        let Write { before: Some(before), after } = write else { return };
        let Some(claim) = before.claim.as_ref().filter(|c| after.settled_token.as_ref() == Some(&c.token))
        else {
            return;
        };
        let is_taken = matches!(after.disposition, Some(Disposition::Delivered { by_look_up: false, .. }));
        let worker = claim.token.as_str().rsplit_once('-').map_or("", |(worker, _)| worker);
        if is_taken
            && after.state == State::Succeeded
            && let Some(begun) = self.suspensions.workers.get_mut(worker)
        {
            begun.took = Some((after.delivery.destination.clone(), claim.claimed_at));
        }
    }

    /// A worker is done, and nothing was kept from it: what a recipient took of it was counted.
    pub fn check_success_counted(&mut self, worker: &str) -> Result<(), Broken> {
        let Some(begun) = self.suspensions.workers.remove(worker) else { return Ok(()) };
        let Some((name, claimed_at)) = begun.took else { return Ok(()) };
        let Some(before) = begun.rows.get(&name) else { return Ok(()) };
        let health = self.world.ledger.peek_usage(&name).usage.health;
        if row_of(&health).iter().any(|token| before.contains(token)) {
            return Err(format!("{worker} had a success, and {name} still counts failures from before it"));
        }
        match health.suspension() {
            Some(suspension) if suspension.since.plus(SKEW).plus(SKEW) < claimed_at => {
                Err(format!("{worker} had a success, and {name} is still suspended"))
            }
            _ => Ok(()),
        }
    }

    /// What is suspended now.
    pub(super) fn note_suspensions(&mut self) {
        let (writes, config) = (self.world.office.writes(), self.world.config());
        if self.suspensions.looked_at != writes {
            self.suspensions.looked_at = writes;
            let unruled = self.destinations.iter().filter(|name| !is_ruled(&config, name));
            self.suspensions.unruled.extend(unruled.cloned());
        }
        for name in &self.destinations {
            let Suspensions { in_force, all, .. } = &mut self.suspensions;
            let known = in_force.get(name);
            // Whether it is another than was known, and which.
            let change =
                self.world.ledger.inspect_health(name, |health| match (health.suspension(), known) {
                    (Some(now), Some(seen)) if seen.is(now) => None,
                    (None, None) => None,
                    (now, _) => Some(now.cloned()),
                });
            let Some(now) = change.flatten() else { continue };
            let Some(suspension) = now else {
                in_force.remove(name);
                continue;
            };
            if all.insert(suspension.id.clone(), name.clone()).is_some() {
                self.chronicle.count("suspended again before its end was entered");
            }
            self.chronicle.count(match suspension.cause.as_str() {
                "refused" => "suspended, refused",
                "gone" => "suspended, gone",
                _ => "suspended, unreachable",
            });
            self.chronicle.note(|| format!("  suspended: {name}, {suspension:?}"));
            let Suspension { id, since, .. } = suspension;
            let seen = Seen { id, since, at: self.world.clock.now(), last_probe: None };
            in_force.insert(name.clone(), seen);
        }
    }

    /// To a suspended destination goes its probe, and nothing of whoever began after it was suspended.
    pub(super) fn check_suspended(&mut self, record: &Record, request: &Received) -> Result<(), Broken> {
        let name = &record.delivery.destination;
        let sender = &*request.sender;
        let (Some(seen), Some(begun), Some(claim)) = (
            self.suspensions.in_force.get_mut(name),
            self.suspensions.workers.get(sender),
            record.claim.as_ref(),
        ) else {
            return Ok(());
        };
        // At work when it was suspended, or by a configuration in which nothing suspends it.
        if begun.at <= seen.at || !begun.rows.contains_key(name) {
            return Ok(());
        }
        let health = self.world.ledger.peek_usage(name).usage.health;
        if probe_of(&health).as_deref() != Some(claim.token.as_str()) {
            return Err(format!("{sender} sends to {name}, which is suspended, and is not its probe"));
        }
        self.chronicle.count("probe sent");
        let probe = Probe { sender: sender.to_owned(), at: request.at };
        if let Some(Probe { sender: other, at }) = seen.last_probe.replace(probe)
            && request.at < at.plus(APART)
        {
            return Err(format!("{sender} is the probe of {name} {} after {other}", request.at.since(at)));
        }
        Ok(())
    }

    /// Whether the reconciler has something to enter.
    pub fn has_suspension_to_enter(&self) -> bool {
        let (config, orders) = (self.world.config(), self.world.office.peek_orders());
        self.destinations.iter().any(|name| {
            let order = self.world.ledger.inspect_health(name, |health| {
                let suspension = health.to_enter()?;
                Some((suspension.id.clone(), health.suspension().is_some()))
            });
            let mut open = orders.iter().filter(|order| order.is_open() && suspends(order) == Some(name));
            match order.flatten() {
                Some((id, is_suspended)) if is_ruled(&config, name) => {
                    !is_suspended || !open.any(|order| order.id == id)
                }
                _ => open.next().is_some(),
            }
        })
    }

    /// A suspension with nothing to probe with goes on, and so does its order.
    pub(super) fn is_of_a_suspension_without_work(&self, order: &Order) -> bool {
        let is_in_force = |name: &DestinationName| {
            self.world.ledger.inspect_health(name, |health| {
                health.suspension().is_some_and(|suspension| suspension.id == order.id)
            }) == Some(true)
        };
        suspends(order).is_some_and(is_in_force)
    }

    /// One order and one entry for each, and what a person lifted is lifted.
    pub(super) fn check_suspensions_at_the_end(&self) -> Result<(), Broken> {
        let config = self.world.config();
        for (id, name) in &self.suspensions.all {
            let entries = |act: Act| {
                let books = self.world.office.peek_books();
                let all = books.iter().flat_map(|(_, entries, _)| entries);
                all.filter(|entry| entry.act == act && entry.subject == id.as_str()).count()
            };
            let (begun, over) = (entries(Act::Suspended), entries(Act::SuspensionLifted));
            // What stands where nothing suspends any more bites nobody, and is forgotten with the next rule.
            let stands = self.suspensions.in_force.get(name).is_some_and(|seen| seen.id == *id);
            let is_in_force = stands && is_ruled(&config, name);
            // Whoever works without rules forgets what stood, and it may not have been entered by then.
            let is_forgotten = begun == 0 && over == 0 && self.suspensions.unruled.contains(name);
            if !is_forgotten && (begun, over) != (1, usize::from(!is_in_force)) {
                return Err(format!(
                    "the suspension {id} of {name} has {begun} entries for its beginning, and {over} for its end"
                ));
            }
        }
        Ok(())
    }
}

/// Whether anything suspends a destination.
fn is_ruled(config: &Config, name: &DestinationName) -> bool {
    config.destinations.get(name).is_some_and(|destination| destination.suspension.is_some())
}

/// Which destination an order shows as suspended.
fn suspends(order: &Order) -> Option<&DestinationName> {
    match &order.body {
        OrderBody::Hold(Hold { rule: HoldRule::Suspended(name), .. }) => Some(name),
        _ => None,
    }
}

/// The attempts that a row counts last: what is kept of a destination is read-only, but for whoever reads it as
/// it is stored.
fn row_of(health: &Health) -> Vec<String> {
    if health.failures_in_a_row() == 0 {
        return Vec::new();
    }
    let tokens = stored(health).pointer("/row/l").and_then(Value::as_array).cloned().unwrap_or_default();
    tokens.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The claim of the probe under way.
fn probe_of(health: &Health) -> Option<String> {
    stored(health).pointer("/suspension/probe/t").and_then(Value::as_str).map(str::to_owned)
}

fn stored(health: &Health) -> Value {
    serde_json::to_value(health).expect("a destination's health is a document")
}
