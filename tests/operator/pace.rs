//! A run's rate at the recipient, second by second: from the start, over stops and resumes, and after a
//! process that died with a hand full.

use std::collections::BTreeMap;

use waybill_domain::delivery::State;
use waybill_domain::redrive::Reviews;
use waybill_domain::time::DurationMs;
use waybill_service::office::Office as _;
use waybill_service::ports::Clock as _;
use waybill_testkit::faults::Stage;

use crate::crashes::release_with;
use crate::redrive::{many, requests_by_second, states};
use crate::world::{World, of};

const RATE: usize = 10;

/// No second over this: the rate, and what a queue that delays by whole seconds may add to it.
const MOST: usize = RATE * 13 / 10 + 4;

fn check_pace(world: &World, name: &str) {
    let over: Vec<_> = requests_by_second(world).into_iter().filter(|(_, count)| *count > MOST).collect();
    assert!(over.is_empty(), "{name}: at {RATE}/s there were {over:?} in single seconds");
}

/// Runs and stands still in turns, `(runs for, stands for)`, then goes to its end.
fn check(name: &str, has_budget: bool, turns: &[(u64, u64)]) {
    const COUNT: usize = 1_800;
    // As each destination of `serve` has, beside another one.
    let world = if has_budget { World::new().with_places(128) } else { World::new() };
    let keys = many(&world, "acme", COUNT);
    world.pass(1);
    let order = world.start(&world.plan(of("acme"), Reviews::default()), &format!("{RATE}/s"), None);
    let mut sent = 0;
    for (runs_for, stands_for) in turns {
        world.run_for(*runs_for);
        world.stop(&order, "a look");
        let at_stop = world.ports.recipient.requests().len();
        assert!(at_stop > sent, "{name}: it went on");
        world.run_for(*stands_for);
        sent = world.ports.recipient.requests().len();
        assert_eq!(sent, at_stop, "{name}: a stopped run sends nothing");
        world.resume(&order, "fine");
    }
    world.run_for(900);
    check_pace(&world, name);
    assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, COUNT)]), "{name}");
    assert_eq!(world.ports.recipient.requests().len(), COUNT, "{name}");
    assert!(world.run_of(&order).is_finished(), "{name}");
}

#[test]
fn a_run_keeps_its_rate_in_every_second_over_stops_and_resumes() {
    let rows: [(&str, &[(u64, u64)]); 7] = [
        ("never stopped", &[]),
        ("stopped for less than what is released ahead", &[(120, 25)]),
        ("stopped for longer than that", &[(120, 200)]),
        ("stopped in the middle of a minute", &[(95, 47)]),
        ("stopped right before more is released", &[(118, 120)]),
        ("stopped again soon after it went on", &[(120, 25), (10, 25)]),
        ("stopped three times", &[(70, 30), (45, 5), (60, 130)]),
    ];
    for (name, turns) in rows {
        check(name, false, turns);
        check(&format!("{name}, with a share of the workers"), true, turns);
    }
}

#[test]
fn what_a_dead_process_had_in_hand_is_not_caught_up_at_once() {
    for calls in [30, 60, 90, 150] {
        let world = World::new();
        let keys = many(&world, "acme", 300);
        world.pass(1);
        let order = world.start(&world.plan(of("acme"), Reviews::default()), &format!("{RATE}/s"), None);
        world.run_for(60);
        let order = world.block(world.office.order(&order.book, &order.id)).unwrap().unwrap();
        release_with(&world, &order, &Stage::dies_after(calls));
        assert!(!world.run_of(&order).in_hand.is_empty(), "{calls} calls: it died with nothing in hand");
        // Nobody comes for ten minutes; whatever was released until then goes.
        world.work_until(world.clock.now().plus(DurationMs::from_secs(600)));
        world.run_for(600);
        check_pace(&world, &format!("dead after {calls} calls"));
        assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, 300)]));
    }
}
