//! Eased holds among workers that work side by side: never more at once than the limit, and all of it goes.

use waybill_domain::authority::Book;
use waybill_domain::budget::Rate;
use waybill_domain::delivery::State;
use waybill_domain::hold::{HoldReason, HoldRule};
use waybill_domain::order::{Eased, Hold, Order, OrderBody, OrderId, Signed};
use waybill_service::ports::Clock as _;

use crate::crew::{Crew, accounting, most_at_once, published, secs, slots};
use crate::world::World;

/// The gate, or what an operator made of it.
fn gate(world: &World, eased_to: Option<u32>) -> Order {
    let signed = Signed { by: "maria".to_owned(), at: world.clock.now(), why: "rolling back".to_owned() };
    let eased = eased_to.map(|concurrency| Eased { concurrency, signed: signed.clone() });
    let hold = Hold { rule: HoldRule::All, placed: signed, eased, lifted: None };
    let id = OrderId::parse("hld_00000000000000000000000001").unwrap();
    Order::place(id, Book::Across, OrderBody::Hold(hold)).after
}

/// What processes read from now on.
fn read(world: &mut World, orders: &[Order]) {
    world.config = world.config.clone().under(orders);
}

#[test]
fn no_more_go_at_once_than_an_eased_gate_says_whatever_the_destinations_budget() {
    // The destination's own concurrency, the gate's limit, and the most at once.
    for (own, limit, expected) in [(None, 3, 3), (Some(8), 3, 3), (Some(2), 3, 2), (None, 1, 1)] {
        let name = format!("{own:?} eased to {limit}");
        let mut world = World::new();
        if let Some(own) = own {
            world.change("accounting", slots(own));
        }
        let start = world.clock.now();
        let closed = gate(&world, None);
        read(&mut world, &[closed]);
        let ids = published(&world, 0, 30, secs(2));
        Crew::of(&world, 50).work_until(start.plus(secs(120)));
        assert!(world.ports.recipient.requests().is_empty(), "{name}");
        let eased = gate(&world, Some(limit));
        read(&mut world, &[eased]);
        // What comes new beside what waited.
        let new = published(&world, 30, 10, secs(2));
        Crew::of(&world, 50).work_until(start.plus(secs(300)));
        assert_eq!(most_at_once(&world, secs(2)), expected, "{name}");
        let records: Vec<_> = ids.iter().chain(&new).map(|id| world.record(id)).collect();
        assert!(records.iter().all(|r| (r.state, r.attempts_made) == (State::Succeeded, 1)), "{name}");
    }
}

#[test]
fn when_the_limit_ends_what_waits_goes_at_once() {
    let mut world = World::new();
    let start = world.clock.now();
    let eased = gate(&world, Some(1));
    read(&mut world, &[eased]);
    published(&world, 0, 40, secs(10));
    Crew::of(&world, 50).work_until(start.plus(secs(60)));
    let sent = world.ports.recipient.requests().len();
    assert!((5..=7).contains(&sent), "one after the other: {sent}");
    read(&mut world, &[]);
    assert!(world.config.budget_of(&world.config.destinations[&accounting()].clone()).is_none());
    Crew::of(&world, 50).work_until(start.plus(secs(90)));
    assert_eq!(world.ports.recipient.requests().len(), 40);
    assert!(most_at_once(&world, secs(10)) > 20, "nothing of the limit is left");
}

#[test]
fn a_destinations_rate_counts_beside_the_limit() {
    let mut world = World::new();
    world.change("accounting", |destination| {
        destination.budget = waybill_domain::budget::Budget::of(None, Rate::parse("rate", "6/m").ok());
    });
    let start = world.clock.now();
    let eased = gate(&world, Some(2));
    read(&mut world, &[eased]);
    published(&world, 0, 20, secs(1));
    Crew::of(&world, 50).work_until(start.plus(secs(100)));
    assert!(most_at_once(&world, secs(1)) <= 2);
    let sent = world.ports.recipient.requests().len();
    assert!((10..=17).contains(&sent), "a span's worth, and one each ten seconds: {sent}");
}

/// A rollback puts a configuration in force that does not know a destination which came since.
#[test]
fn what_is_for_a_destination_that_is_gone_stays_held_until_the_gate_is_lifted() {
    let mut world = World::new();
    let start = world.clock.now();
    let closed = gate(&world, None);
    read(&mut world, &[closed]);
    let ids = published(&world, 0, 3, secs(1));
    Crew::of(&world, 5).work_until(start.plus(secs(30)));
    world.config.destinations.remove(&accounting());
    let eased = gate(&world, Some(1));
    read(&mut world, &[eased]);
    Crew::of(&world, 5).work_until(start.plus(secs(300)));
    let reasons = |world: &World| {
        ids.iter().map(|id| world.record(id).hold.as_ref().map(|held| held.reason)).collect::<Vec<_>>()
    };
    assert_eq!(reasons(&world), [Some(HoldReason::Gate); 3]);
    read(&mut world, &[]);
    Crew::of(&world, 5).work_until(start.plus(secs(600)));
    assert!(ids.iter().all(|id| world.record(id).state == State::DeadLettered), "as without a gate");
    assert!(world.ports.recipient.requests().is_empty());
}
