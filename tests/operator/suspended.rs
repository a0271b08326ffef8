//! `crm`, which can be suspended, and what is seen of it.

use std::sync::Arc;

use serde_json::json;
use waybill_domain::budget::Budget;
use waybill_domain::destination::Destination;
use waybill_domain::hold::HoldReason;
use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::order::{Hold, OrderBody, OrderId};
use waybill_domain::outcome::StatusOverride;
use waybill_domain::suspension::SuspendRules;
use waybill_service::office::Office as _;
use waybill_testkit::scripted::Reaction;

use crate::publishing::publish;
use crate::world::{World, book};

pub(crate) const SUSPENDED: &str = "suspended by automation";
pub(crate) const LIFTED: &str = "suspension_lifted by automation";

pub(crate) fn name(destination: &str) -> DestinationName {
    DestinationName::parse(destination).unwrap()
}

/// Changes `crm`, which serves acme alone.
pub(crate) fn change(world: &mut World, change: impl FnOnce(&mut Destination)) {
    let destination = world.config.destinations.get_mut(&name("crm")).unwrap();
    change(Arc::make_mut(destination));
}

/// `crm` is suspended after so many failures, with a budget or without.
pub(crate) fn ruled(after: Option<u32>, on_gone: bool, budget: Option<u32>) -> World {
    let mut world = World::new();
    change(&mut world, |crm| {
        crm.suspension = SuspendRules::of(after, on_gone);
        crm.budget = Budget::of(budget, None);
        if on_gone {
            crm.statuses.insert(410, StatusOverride::Retryable);
        }
    });
    world
}

pub(crate) fn turns(world: &World, reaction: Reaction) {
    world.ports.recipient.turn(&name("crm"), reaction);
}

pub(crate) fn to_crm(world: &World, event: &str) -> DeliveryKey {
    publish(world, event, json!({ "destination": "crm" }))
}

pub(crate) fn many(world: &World, from: usize, to: usize) -> Vec<DeliveryKey> {
    (from..to).map(|n| to_crm(world, &format!("e{n}"))).collect()
}

pub(crate) fn is_suspended(world: &World) -> bool {
    world.ports.ledger.peek_usage(&name("crm")).usage.health.suspension().is_some()
}

pub(crate) fn held(world: &World, key: &DeliveryKey) -> Option<HoldReason> {
    world.record(key).hold.as_ref().map(|held| held.reason)
}

/// When requests reached the recipient, in seconds from the beginning of the world.
pub(crate) fn sent_s(world: &World) -> Vec<u64> {
    let begin = waybill_testkit::conformance::fixture::T0;
    world.ports.recipient.requests().iter().map(|r| r.at.since(begin).as_ms() / 1000).collect()
}

pub(crate) fn its_order(world: &World) -> (OrderId, Hold) {
    let orders = world.block(world.office.orders(Some(&book("acme")), 10, None)).unwrap().items;
    let holds = orders.into_iter().filter_map(|order| match order.body {
        OrderBody::Hold(hold) => Some((order.id, hold)),
        _ => None,
    });
    let holds: Vec<_> = holds.collect();
    assert_eq!(holds.len(), 1, "{holds:?}");
    holds.into_iter().next().unwrap()
}

/// With a budget and without: what is told is the same.
pub(crate) const BUDGETS: [Option<u32>; 2] = [Some(2), None];
