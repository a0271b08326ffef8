//! What a run released and failed again is not its own a second time.

use futures::FutureExt as _;
use serde_json::json;
use waybill_domain::delivery::State;
use waybill_domain::redrive::Reviews;
use waybill_domain::time::DurationMs;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::ports::{Clock as _, Ledger as _, Ports};
use waybill_testkit::conformance::fixture;
use waybill_testkit::dice::SeededDice;
use waybill_testkit::faults::{Call, Stage, Staged};
use waybill_testkit::scripted::Reaction;

use crate::publishing::publish;
use crate::redrive::many;
use crate::world::{EXHAUSTED, REFUSED, World, of};

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

/// Right before its worker tells the DLQ, it is released, and refused again for the same reason.
#[test]
fn who_tells_the_dlq_late_marks_no_other_dead_letter_as_told() {
    let world = World::new();
    let key = publish(&world, "e", json!({}));
    world.ports.recipient.react(&key.delivery_id, [Reaction::answer(401)]);
    let (message_id, body, _) = world.ports.queue.messages().pop().unwrap();

    let (ledger, clock, of) = (world.ports.ledger.clone(), world.clock.clone(), key.clone());
    let policy = world.config.destinations.values().next().unwrap().policy;
    let rules = world.config.look_rules(DurationMs::from_secs(900));
    let stage = Stage::overtaken(Call::Bury, move || {
        let land = |change| ledger.apply(&change).now_or_never().unwrap().unwrap();
        let first = ledger.peek(&of).unwrap();
        land(first.release("rdr_1".to_owned(), &policy, clock.now(), clock.now(), &rules).unwrap());
        clock.advance(DurationMs::from_secs(1));
        land(fixture::dead_lettered(&ledger.peek(&of).unwrap(), REFUSED, clock.now()));
    });
    let ports = Ports {
        ledger: Staged::new(world.ports.ledger.clone(), &stage),
        queue: Staged::new(world.ports.queue.clone(), &stage),
        recipient: world.ports.recipient.clone(),
        clock: world.clock.clone(),
        dice: SeededDice::new("relapse", 1),
        desk: Default::default(),
    };
    let incoming = Incoming { message_id: &message_id, body: &body };
    let consumer = Consumer { ports: &ports };
    let verdict = world.block(consumer.consume(&world.config, incoming, DurationMs::from_secs(60)));
    assert_eq!(verdict, Verdict::Acknowledge);
    let record = world.record(&key);
    assert_eq!((record.dead_letter_reason(), record.redrives), (Some(REFUSED), 1));
    assert!(!record.dlq_told, "of the second the DLQ does not know yet");
}
