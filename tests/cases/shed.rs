//! A class is held while a budget drains: what is not of it goes on at once.

use std::pin::pin;

use waybill_domain::delivery::State;
use waybill_domain::destination::EventPattern;
use waybill_domain::hold::{HoldReason, HoldRule};
use waybill_domain::identity::DeliveryId;
use waybill_domain::suspension::SuspendRules;
use waybill_domain::time::DurationMs;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::ports::{Clock as _, Inbox as _};
use waybill_testkit::scripted::Reaction;

use crate::crew::{Crew, accounting, most_at_once, secs, slots, work_on_batch};
use crate::world::{Message, World, event, poll_while_moving, with};

fn low() -> HoldRule {
    HoldRule::Type { types: EventPattern::parse("lease.low").unwrap(), payload_version: None, tenant: None }
}

fn published(world: &World, event_id: &str, event_type: &str) -> DeliveryId {
    let json = event(event_id).replace("lease.paid", event_type);
    assert!(json.contains(event_type), "{json}");
    world.published(&json, [Reaction::answer(200).taking(secs(1))])
}

/// How many slots are leased or reserved.
fn in_use(world: &World) -> usize {
    let kept =
        world.block(waybill_service::ports::Budgets::usage(&world.ports.ledger, &accounting())).unwrap();
    kept.usage.in_use(world.clock.now())
}

#[test]
fn what_was_reserved_for_a_delivery_that_is_held_after_all_goes_to_the_next() {
    let mut world = World::new().with("accounting", slots(1));
    let first = published(&world, "e0", "lease.low");
    let held = published(&world, "e1", "lease.low");
    let other = published(&world, "e2", "lease.high");
    let batch = world.receive();
    work_on_batch(&world, &batch);
    // The first is through, and the next was reserved for, lifted and woken; then its class is held.
    assert_eq!(world.record(&first).state, State::Succeeded);
    assert_eq!((in_use(&world), world.record(&held).hold.is_none()), (1, true));
    world.config.holds.push(low());
    Crew::of(&world, 5).work_until(world.clock.now().plus(DurationMs::from_ms(1500)));
    assert_eq!(world.record(&held).hold.as_ref().unwrap().reason, HoldReason::Quarantine);
    assert_eq!(world.record(&other).state, State::Succeeded, "it does not wait for the reservation to lapse");
    assert_eq!(in_use(&world), 0);
}

#[test]
fn what_was_reserved_for_a_delivery_whose_time_ran_out_goes_to_the_next() {
    let world = World::new().with("accounting", slots(1));
    published(&world, "e0", "lease.low");
    let start = world.clock.now();
    let late = with("e1", &format!(r#""deadline":"{}""#, start.plus(secs(10))));
    let late = world.published(&late, [Reaction::answer(200)]);
    let other = published(&world, "e2", "lease.high");
    work_on_batch(&world, &world.receive());
    assert_eq!((in_use(&world), world.record(&late).hold.is_none()), (1, true));
    // Its message was received late.
    world.clock.set(start.plus(secs(9)));
    Crew::of(&world, 5).work_until(start.plus(secs(12)));
    assert_eq!(world.record(&late).state, State::Expired);
    assert_eq!(world.record(&other).state, State::Succeeded);
}

/// Shed under load: half of what waits is held in the middle, and the rest keeps its pace.
#[test]
fn what_others_are_held_for_does_not_slow_the_rest() {
    let mut world = World::new().with("accounting", slots(8));
    let start = world.clock.now();
    (0..50).for_each(|n| drop(published(&world, &format!("low-{n}"), "lease.low")));
    let high: Vec<_> = (0..24).map(|n| published(&world, &format!("high-{n}"), "lease.high")).collect();
    for _ in 0..2 {
        // Whole batches, so that nobody is cut off in the middle when the hold comes.
        work_on_batch(&world, &world.receive());
    }
    world.config.holds.push(low());
    let from = world.clock.now();
    Crew::of(&world, 20).work_until(from.plus(secs(8)));
    let done = high.iter().filter(|id| world.record(id).state == State::Succeeded).count();
    assert_eq!(done, 24, "at eight a second, of {} begun", world.ports.recipient.requests().len());
    assert!(most_at_once(&world, secs(1)) <= 8);
    assert!(from.since(start) < secs(30));
}

/// More of the class wait, and with nearer deadlines, than a worker looks at when it frees a slot.
#[test]
fn however_many_of_a_class_are_held_the_rest_finds_its_way_past_them() {
    let mut world = World::new().with("accounting", slots(4));
    let deadline = |hours: u64| world.clock.now().plus(secs(3600 * hours));
    let one = |name: String, event_type: &str, hours: u64| {
        let json = with(&name, &format!(r#""deadline":"{}""#, deadline(hours)));
        let json = json.replace("lease.paid", event_type);
        world.published(&json, [Reaction::answer(200).taking(secs(1))])
    };
    (0..1000).for_each(|n| drop(one(format!("low-{n}"), "lease.low", 2)));
    let high: Vec<_> = (0..80).map(|n| one(format!("high-{n}"), "lease.high", 4)).collect();
    (0..11).for_each(|_| drop(work_on_batch(&world, &world.receive())));
    world.config.holds.push(low());
    let from = world.clock.now();
    Crew::of(&world, 20).work_until(from.plus(secs(30)));
    let done = high.iter().filter(|id| world.record(id).state == State::Succeeded).count();
    assert_eq!(done, 80, "at four a second, of {} begun", world.ports.recipient.requests().len());
}

/// Of a suspended destination one goes, and whoever looks for it comes past what is kept back as well.
#[test]
fn however_many_of_a_class_are_held_a_worker_finds_the_next_probe_behind_them() {
    let mut world = World::new().with("accounting", |destination| {
        slots(3)(destination);
        destination.suspension = SuspendRules::of(Some(1), false);
        destination.timeout = secs(120);
    });
    world.config.holds.push(low());
    for n in 0..150 {
        let json =
            with(&format!("low-{n}"), &format!(r#""deadline":"{}""#, world.clock.now().plus(secs(7200))));
        world.published(&json.replace("lease.paid", "lease.low"), []);
    }
    (0..2).for_each(|_| drop(work_on_batch(&world, &world.receive())));
    // One is on its way when another's failure suspends; what comes then is held.
    world.published(&event("slow"), [Reaction::answer(500).taking(secs(90))]);
    let consumer = Consumer { ports: &world.ports };
    let consume = |message: &Message| {
        let (consumer, config, Message { message_id, body, .. }) =
            (&consumer, &world.config, message.clone());
        async move { consumer.consume(config, Incoming { message_id: &message_id, body: &body }, secs(180)).await }
    };
    let work = |message: &Message| {
        assert_eq!(world.block(consume(message)), Verdict::Acknowledge);
        world.block(world.ports.queue.acknowledge(&message.receipt)).unwrap();
    };
    let slow = world.receive();
    let mut working = pin!(consume(&slow[0]));
    assert!(poll_while_moving(working.as_mut()).is_none());
    world.published(&event("refused"), [Reaction::answer(401)]);
    work(&world.receive()[0]);
    let waits = world.published(&event("waits"), [Reaction::answer(200)]);
    work(&world.receive()[0]);
    assert_eq!(world.record(&waits).hold.as_ref().unwrap().reason, HoldReason::Suspended);
    // The first one's answer comes when a probe is due, and nobody else is there to look for it.
    world.clock.set(world.clock.now().plus(secs(90)));
    assert!(poll_while_moving(working.as_mut()).is_some());
    world.receive().iter().for_each(work);
    assert_eq!(world.record(&waits).state, State::Succeeded);
}
