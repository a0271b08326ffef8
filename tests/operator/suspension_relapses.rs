//! Relapses: the destination refuses again while the end of its suspension is being entered, whenever that is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use waybill_domain::identity::WriteToken;
use waybill_domain::order::OrderId;
use waybill_domain::suspension::{Heard, Sign, SuspendRules};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::acts::all_open;
use waybill_service::ports::{Budgets as _, Clock as _, Ports, UsageSet};
use waybill_service::reconcile::TickLimits;
use waybill_service::round::Round;
use waybill_service::schedule::Learned;
use waybill_testkit::faults::{Stage, Staged};
use waybill_testkit::memory::MemoryLedger;
use waybill_testkit::scripted::Reaction;

use crate::publishing::work;
use crate::suspended::{LIFTED, SUSPENDED, is_suspended, name, ruled, to_crm, turns};
use crate::world::{World, book};

const RULES: SuspendRules = SuspendRules { after: Some(2), on_gone: false };

/// A worker's attempt is over, begun and ended now.
fn told(ledger: &MemoryLedger, token: &str, sign: Sign, now: TimeMs) {
    let kept = ledger.peek_usage(&name("crm"));
    let mut usage = kept.usage.clone();
    let heard = Heard { token: WriteToken::parse(token).unwrap(), sign: Some(sign), started_at: now };
    usage.health.hear(&RULES, &book("acme"), &heard, now);
    let crm = name("crm");
    let landed = ledger.set_usage(&crm, kept.revision, &usage).now_or_never().unwrap().unwrap();
    assert_eq!(landed, UsageSet::Landed);
}

/// Suspended, and entered as that.
fn suspended() -> World {
    let world = ruled(RULES.after, false, None);
    turns(&world, Reaction::answer(401));
    to_crm(&world, "first");
    to_crm(&world, "second");
    work(&world, 0);
    world.round();
    world.pass(5);
    assert!(is_suspended(&world));
    world
}

/// A round that is overtaken by a relapse after so many calls. Whether it was.
fn round_with_a_relapse_after(world: &World, calls: usize, succeeds_before: bool) -> bool {
    let relapsed = Arc::new(AtomicBool::new(false));
    let (ledger, clock) = (world.ports.ledger.clone(), world.clock.clone());
    let has = relapsed.clone();
    let stage = Stage::overtaken_after(calls, move || {
        if succeeds_before {
            told(&ledger, "success", Sign::Took, clock.now());
            clock.advance(DurationMs::from_ms(1));
        }
        told(&ledger, "again-1", Sign::Refused, clock.now());
        told(&ledger, "again-2", Sign::Refused, clock.now());
        has.store(true, Ordering::SeqCst);
    });
    let Ports { ledger, queue, clock, dice, .. } = &world.ports;
    let (ledger, queue) = (Staged::new(ledger.clone(), &stage), Staged::new(queue.clone(), &stage));
    let office = Staged::new(world.office.clone(), &stage);
    let round = Round { ledger: &ledger, queue: &queue, office: &office, clock, dice };
    world.block(round.run(&world.config_now(), &Learned::default(), TickLimits::default())).unwrap();
    relapsed.load(Ordering::SeqCst)
}

/// In force under an order that is open, and each that was lifted is closed.
#[track_caller]
fn is_in_force(world: &World, what: &str) {
    for _ in 0..2 {
        assert!(is_suspended(world), "{what}: the relapse suspends");
        world.round();
    }
    assert!(is_suspended(world), "{what}: the relapse suspends");
    let open: Vec<OrderId> =
        world.block(all_open(&world.office)).unwrap().into_iter().map(|o| o.id).collect();
    let usage = world.ports.ledger.peek_usage(&name("crm")).usage;
    let id = usage.health.suspension().map(|suspension| suspension.id.clone());
    assert_eq!(open, Vec::from_iter(id), "{what}");
    let acts = world.acts(&book("acme"));
    let begun = acts.iter().filter(|act| *act == SUSPENDED).count();
    assert_eq!(begun, acts.len() - begun + 1, "{what}: {acts:?}");
}

#[test]
fn a_relapse_while_a_success_s_end_is_entered_suspends_at_whichever_call_it_comes() {
    let mut calls = 0;
    loop {
        let world = suspended();
        told(&world.ports.ledger, "probe", Sign::Took, world.clock.now());
        world.pass(1);
        if !round_with_a_relapse_after(&world, calls, false) {
            break;
        }
        is_in_force(&world, &format!("after {calls} calls"));
        calls += 1;
    }
    assert!(calls > 5, "the test saw nothing");
}

#[test]
fn a_relapse_while_a_person_s_end_is_carried_out_suspends_at_whichever_call_it_comes() {
    let mut calls = 0;
    loop {
        let world = suspended();
        let open = world.block(all_open(&world.office)).unwrap();
        world.block(world.desk().lift(&open[0].id, &[book("acme")], "maria", "new credentials")).unwrap();
        world.pass(1);
        if !round_with_a_relapse_after(&world, calls, true) {
            break;
        }
        is_in_force(&world, &format!("after {calls} calls"));
        calls += 1;
    }
    assert!(calls > 5, "the test saw nothing");
}

#[test]
fn a_reconciler_that_dies_between_the_budget_and_the_order_leaves_an_order_that_the_next_one_closes() {
    let world = suspended();
    told(&world.ports.ledger, "probe", Sign::Took, world.clock.now());
    let mut usage = world.ports.ledger.peek_usage(&name("crm"));
    usage.usage.health = Default::default();
    world.block(world.ports.ledger.set_usage(&name("crm"), usage.revision, &usage.usage)).unwrap();
    world.round();
    assert_eq!(world.acts(&book("acme")), [SUSPENDED, LIFTED]);
}
