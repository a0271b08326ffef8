//! What a run released and failed again is not its own a second time.

use waybill_domain::delivery::State;
use waybill_domain::redrive::Reviews;
use waybill_domain::time::DurationMs;
use waybill_testkit::conformance::fixture;

use crate::redrive::many;
use crate::world::{EXHAUSTED, World, of};

/// Found by the simulator: a worker's clock two seconds behind dates the new dead letter before the plan.
#[test]
fn a_dead_letter_that_is_dated_before_the_plan_is_released_once_by_it_all_the_same() {
    let world = World::new();
    let keys = many(&world, "acme", 2);
    world.pass(2);
    let order = world.start(&world.plan(of("acme"), Reviews::default()), "1/m", None);
    // The first is released; the second is due a minute later, so the page is read again.
    world.round();
    let released = keys.iter().find(|key| world.record(key).state == State::Retryable).unwrap();
    let before_the_plan = fixture::T0.minus(DurationMs::from_secs(1));
    let ended = fixture::dead_lettered(&world.record(released), EXHAUSTED, before_the_plan);
    world.block(fixture::land(&world.ports.ledger, ended));

    world.pass(60);
    world.round();
    let run = world.run_of(&order);
    let other = keys.iter().find(|key| *key != released).unwrap();
    assert_eq!(world.record(other).state, State::Retryable, "the other's turn has come");
    assert_eq!((run.tally.released, run.in_hand.len()), (2, 0), "each is counted once");
    assert_eq!((world.record(released).state, world.record(released).redrives), (State::DeadLettered, 1));
}
