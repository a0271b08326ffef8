//! Redrive runs whose process dies at any call, and two that are carried out at once.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use waybill_domain::delivery::{Delivery, State};
use waybill_domain::order::{Decision, Order};
use waybill_domain::redrive::Reviews;
use waybill_domain::time::DurationMs;
use waybill_service::acts::Desk;
use waybill_service::office::Office as _;
use waybill_service::ports::{Clock as _, Ledger as _, Ports};
use waybill_service::redrive::release::{AHEAD, Releaser};
use waybill_testkit::conformance::fixture;
use waybill_testkit::faults::{Call, Stage, Staged};

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

/// Without a look at what is due: whoever carries the run out again wakes what is released and was not woken.
#[test]
fn what_was_released_and_not_woken_is_woken_when_its_run_is_carried_out_again() {
    for calls in 0.. {
        let world = World::new();
        let keys = many(&world, "acme", 2);
        world.pass(2);
        let order = world.start(&world.plan(of("acme"), Reviews::default()), "10/s", None);
        let stage = Stage::dies_after(calls);
        release_with(&world, &order, &stage);
        let died = stage.is_over();
        let stands = world.block(world.office.order(&order.book, &order.id)).unwrap().unwrap();
        release_with(&world, &stands, &Stage::dies_after(usize::MAX));
        world.work_until(world.clock.now().plus(DurationMs::from_secs(10)));
        let name = format!("dead after {calls} calls");
        assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, 2)]), "{name}");
        if !died {
            return;
        }
    }
}

/// Right before the run writes its release, a person ends the dead letter.
#[test]
fn what_a_person_ended_while_it_was_to_be_released_is_not_released_and_not_counted() {
    let world = World::new();
    let key = many(&world, "acme", 1).remove(0);
    world.pass(2);
    let order = world.start(&world.plan(of("acme"), Reviews::default()), "10/s", None);
    let (ledger, record, now) = (world.ports.ledger.clone(), world.record(&key), world.clock.now());
    let by = world.desk().new_id("end").unwrap();
    let stage = Stage::overtaken(Call::Apply, move || {
        let close = record.end_by_order(by, Decision::Close, now).unwrap();
        ledger.apply(&close).now_or_never().unwrap().unwrap();
    });
    release_with(&world, &order, &stage);
    assert_eq!(world.record(&key).state, State::DeadLettered);
    let run = world.run_of(&order);
    assert_eq!((run.tally.released, run.in_hand.len(), run.watched.len()), (0, 0, 0));
    assert!(world.ports.queue.messages().is_empty());
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
