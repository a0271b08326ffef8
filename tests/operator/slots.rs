//! Slots that came too late for their attempt, and slots that nobody comes for.

use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::json;
use waybill_domain::admit::SETTLE_MARGIN;
use waybill_domain::budget::Budget;
use waybill_domain::delivery::Delivery;
use waybill_domain::destination::Destination;
use waybill_domain::hold::{Held, HoldReason};
use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::time::DurationMs;
use waybill_domain::transition::Writer;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::ports::{Budgets as _, Clock as _, Dice as _, Ledger as _, Ports, Queue as _};
use waybill_service::reconcile::{Reconciler, TickLimits};
use waybill_testkit::conformance::fixture;
use waybill_testkit::dice::SeededDice;
use waybill_testkit::faults::{Call, Stage, Staged};

use crate::publishing::publish;
use crate::world::{EXHAUSTED, World};

#[test]
fn what_was_waited_for_a_slot_is_taken_off_the_time_that_is_left() {
    // The time that is left beyond what the attempt itself may take, and whether it is begun.
    for (beyond_ms, is_begun) in [(500, false), (2_999, false), (3_000, true), (60_000, true)] {
        let world = World::new().with_places(4);
        let key = publish(&world, "e", json!({}));
        let (message_id, body, _) = world.ports.queue.messages().pop().unwrap();
        // The payload is read, the budget is read and written: each takes a second.
        let stage = Stage::slow(&world.clock, DurationMs::from_secs(1));
        let ports = Ports {
            ledger: Staged::new(world.ports.ledger.clone(), &stage),
            queue: world.ports.queue.clone(),
            recipient: world.ports.recipient.clone(),
            clock: world.clock.clone(),
            dice: SeededDice::new("slots", 1),
            desk: Default::default(),
        };
        let books = DestinationName::parse("books").unwrap();
        let timeout = world.config.destinations[&books].timeout;
        // Loading the record takes its second before the time is judged.
        let left = timeout.plus(SETTLE_MARGIN).plus(DurationMs::from_ms(1000 + beyond_ms));
        let incoming = Incoming { message_id: &message_id, body: &body };
        let verdict = world.block(Consumer { ports: &ports }.consume(&world.config, incoming, left));
        let name = format!("{beyond_ms} ms beyond");
        assert_eq!(world.ports.recipient.requests().len(), usize::from(is_begun), "{name}");
        assert_eq!(world.record(&key).attempts_made, u32::from(is_begun), "{name}");
        let expected = match is_begun {
            true => Verdict::Acknowledge,
            false => Verdict::Leave { hidden_until: None },
        };
        assert_eq!(verdict, expected, "{name}");
        let usage = world.block(world.ports.ledger.usage(&books)).unwrap().usage;
        assert_eq!(
            usage.free(&Budget::of(Some(4), None).unwrap(), world.clock.now()),
            4,
            "{name}: the slot is back"
        );
    }
}

/// The reconciler reads for a while before it reserves: what it reserves for may be gone by then.
#[test]
fn a_slot_that_was_reserved_for_what_another_lifted_is_given_back() {
    let world = World::new().with_places(4);
    let key = publish(&world, "e", json!({}));
    let held = Held { reason: HoldReason::Budget, since: world.clock.now() };
    let by = Writer { message_id: None, token: world.ports.dice.token(), now: world.clock.now() };
    let change = world.record(&key).hold(&by, held).unwrap();
    world.block(fixture::land(&world.ports.ledger, change));

    let other = world.ports.ledger.clone();
    let (record, now) = (world.record(&key), world.clock.now());
    let rules = world.config.look_rules(world.ports.queue.window());
    let stage = Stage::overtaken(Call::Apply, move || {
        let lift = record.lift(now, &rules).unwrap();
        let _ = other.apply(&lift).now_or_never().unwrap().unwrap();
    });
    let Ports { ledger, queue, clock, dice, .. } = &world.ports;
    let ledger = Staged::new(ledger.clone(), &stage);
    let reconciler = Reconciler { ledger: &ledger, queue, clock, dice };
    let report = world.block(reconciler.tick(&world.config, TickLimits::default())).unwrap();
    assert_eq!((report.lifted, report.raced), (0, 1), "{report:?}");
    let books = DestinationName::parse("books").unwrap();
    let usage = world.block(world.ports.ledger.usage(&books)).unwrap().usage;
    assert_eq!(usage.reservations(), 0);
}

/// Those that a run released have the nearer deadlines.
#[test]
fn redrives_have_half_of_a_budget_and_what_waits_behind_them_has_the_rest() {
    let mut world = World::new();
    for destination in world.config.destinations.values_mut() {
        let budget = Budget::of(Some(4), None);
        *destination = Arc::new(Destination { budget, ..Destination::clone(destination) });
    }
    let now = world.clock.now();
    let rules = world.config.look_rules(world.ports.queue.window());
    let policy = world.config.destinations.values().next().unwrap().policy;
    let hold = |key: &DeliveryKey| {
        let held = Held { reason: HoldReason::Budget, since: now };
        let by = Writer { message_id: None, token: world.ports.dice.token(), now };
        world.block(fixture::land(&world.ports.ledger, world.record(key).hold(&by, held).unwrap()));
    };
    let redriven = (0..4).map(|n| {
        let deadline = Some(now.plus(DurationMs::from_secs(3600)));
        let late = Delivery { deadline, ..fixture::delivery("acme", &format!("redriven-{n}"), "books") };
        let key = world.dead_with(late, EXHAUSTED);
        let release = world.record(&key).release("rdr_1".to_owned(), &policy, now, now, &rules).unwrap();
        world.block(fixture::land(&world.ports.ledger, release));
        key
    });
    let redriven: Vec<_> = redriven.collect();
    let live: Vec<_> = (0..4).map(|n| publish(&world, &format!("live-{n}"), json!({}))).collect();
    redriven.iter().chain(&live).for_each(hold);

    let Ports { ledger, queue, clock, dice, .. } = &world.ports;
    let reconciler = Reconciler { ledger, queue, clock, dice };
    let report = world.block(reconciler.tick(&world.config, TickLimits::default())).unwrap();
    let lifted = |keys: &[DeliveryKey]| keys.iter().filter(|key| world.record(key).hold.is_none()).count();
    assert_eq!((report.lifted, lifted(&redriven), lifted(&live)), (4, 2, 2));
}
