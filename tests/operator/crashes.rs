//! Redrive runs whose process dies at any call, and two that are carried out at once.

use std::collections::BTreeMap;

use waybill_domain::delivery::{Delivery, State};
use waybill_domain::order::Order;
use waybill_domain::redrive::Reviews;
use waybill_service::acts::Desk;
use waybill_service::ports::Ports;
use waybill_service::redrive::release::{AHEAD, Releaser};
use waybill_testkit::conformance::fixture;
use waybill_testkit::faults::{Stage, Staged};

use crate::redrive::{many, states};
use crate::world::{EXHAUSTED, World, book, of};

#[test]
fn a_crash_at_any_call_loses_no_release_and_repeats_none() {
    const COUNT: usize = 6;
    let mut calls = 0;
    loop {
        let world = World::new();
        let keys = many(&world, "acme", COUNT);
        let late = Delivery { deadline: Some(fixture::t(1)), ..fixture::delivery("acme", "late", "books") };
        let late = world.dead_with(late, EXHAUSTED);
        world.pass(2);
        let order = world.start(&world.plan(of("acme"), Reviews::default()), "10/s", None);
        let stage = Stage::dies_after(calls);
        release_with(&world, &order, &stage);
        let died = stage.is_over();
        world.run_for(900);
        let name = format!("dead after {calls} calls");
        assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, COUNT)]), "{name}");
        assert_eq!(world.record(&late).state, State::Expired, "{name}");
        assert_eq!(world.ports.recipient.requests().len(), COUNT, "{name}");
        let run = world.run_of(&order);
        assert_eq!((run.tally.released, run.tally.expired), (COUNT as u64, 1), "{name}");
        assert!(run.is_finished(), "{name}");
        assert_eq!(world.acts(&book("acme")), ["redrive_started by maria"], "{name}");
        if !died {
            assert!(calls > 20, "the release made only {calls} calls: the test saw nothing");
            return;
        }
        calls += 1;
    }
}

pub(crate) fn release_with(world: &World, order: &Order, stage: &Stage) {
    let Ports { ledger, queue, clock, dice, .. } = &world.ports;
    let (ledger, queue) = (Staged::new(ledger.clone(), stage), Staged::new(queue.clone(), stage));
    let office = Staged::new(world.office.clone(), stage);
    let desk = Desk { office: &office, clock, dice };
    let releaser = Releaser { ledger: &ledger, queue: &queue, desk, ahead: AHEAD };
    let _ = world.block(releaser.carry_out(&world.config, order, None));
}

#[test]
fn two_reconcilers_at_once_release_each_once() {
    let world = World::new();
    let keys = many(&world, "acme", 50);
    world.pass(1);
    let order = world.start(&world.plan(of("acme"), Reviews::default()), "50/s", None);
    // Each begins with the order as it was before the other.
    for _ in 0..2 {
        release_with(&world, &order, &Stage::dies_after(usize::MAX));
    }
    world.run_for(600);
    assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, 50)]));
    assert_eq!(world.ports.recipient.requests().len(), 50);
    assert_eq!(world.run_of(&order).tally.released, 50);
}
