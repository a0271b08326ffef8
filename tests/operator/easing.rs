//! Eased holds: what was held goes a few at a time, until a person ends it, or holds everything again.

use std::num::NonZeroU32;

use serde_json::json;
use waybill_domain::address::Locality;
use waybill_domain::authority::Book;
use waybill_domain::delivery::State;
use waybill_domain::destination::EventPattern;
use waybill_domain::hold::{HoldReason, HoldRule, Share};
use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::order::{Hold, Order, OrderBody, OrderId};
use waybill_domain::time::DurationMs;
use waybill_service::acts::ActError;
use waybill_service::config::Config;
use waybill_service::config_file::Rules;
use waybill_service::holds::HoldAct;
use waybill_service::office::Office as _;
use waybill_service::ports::Clock as _;
use waybill_service::source::ConfigSource;

use crate::publishing::{posts, publish, work};
use crate::suspended::name;
use crate::world::{CONFIG, World, book, tenant};

pub(crate) fn place(world: &World, book: Book, rule: HoldRule) -> OrderId {
    match world.block(world.desk().place(book, rule, "maria", "rolling back")).unwrap() {
        HoldAct::Done(order) => order.id,
        HoldAct::Already(order) => panic!("{order:?}"),
    }
}

pub(crate) fn try_easing(world: &World, id: &OrderId, to: u32) -> Result<HoldAct, ActError> {
    let (books, to) = (world.block(world.office.books()).unwrap(), NonZeroU32::new(to).unwrap());
    world.block(world.desk().ease(id, &books, to, &world.config, "maria", "a few first"))
}

pub(crate) fn ease(world: &World, id: &OrderId, to: u32) {
    let act = try_easing(world, id, to).unwrap();
    assert!(matches!(act, HoldAct::Done(_)), "{act:?}");
}

pub(crate) fn lift(world: &World, id: &OrderId) {
    let books = world.block(world.office.books()).unwrap();
    let act = world.block(world.desk().lift(id, &books, "maria", "all is well")).unwrap();
    assert!(matches!(act, HoldAct::Done(_)), "{act:?}");
}

fn hold_of(order: &Order) -> &Hold {
    match &order.body {
        OrderBody::Hold(hold) => hold,
        other => panic!("{other:?}"),
    }
}

/// A gate with so many behind it.
pub(crate) fn gated(number: usize) -> (World, OrderId, Vec<DeliveryKey>) {
    let world = World::new();
    let gate = place(&world, Book::Across, HoldRule::All);
    let keys = (0..number).map(|n| publish(&world, &format!("e{n}"), json!({}))).collect();
    world.run_for(60);
    assert!(world.ports.recipient.requests().is_empty());
    (world, gate, keys)
}

/// How many slots of a destination are leased or reserved.
pub(crate) fn in_use(world: &World, destination: &str) -> usize {
    let destination: DestinationName = name(destination);
    world.ports.ledger.peek_usage(&destination).usage.in_use(world.clock.now())
}

fn held(world: &World, key: &DeliveryKey) -> Option<HoldReason> {
    world.record(key).hold.as_ref().map(|held| held.reason)
}

#[test]
fn an_eased_gate_lets_so_many_go_at_once_and_the_rest_one_after_the_other() {
    let (world, gate, keys) = gated(10);
    ease(&world, &gate, 2);
    world.round();
    assert_eq!((world.ports.queue.messages().len(), in_use(&world, "books")), (2, 2));
    let still = keys.iter().filter(|key| held(&world, key) == Some(HoldReason::Gate)).count();
    assert_eq!(still, 8);
    // Whoever is done wakes the next: no further round is needed.
    work(&world, 30);
    assert!(keys.iter().all(|key| posts(&world, key) == 1 && world.record(key).state == State::Succeeded));
    // It is in force for what comes, too, until it is lifted.
    let later = publish(&world, "later", json!({}));
    work(&world, 5);
    assert_eq!(posts(&world, &later), 1);
    lift(&world, &gate);
    let entries = world.block(world.office.entries(&Book::Across, 10, None)).unwrap().items;
    let said: Vec<_> =
        entries.iter().map(|it| (it.act.as_str(), &it.details["concurrency"], it.why.clone())).collect();
    assert_eq!(
        said,
        [
            ("hold_added", &json!(null), Some("rolling back".to_owned())),
            ("hold_lifted", &json!(2), Some("a few first".to_owned())),
            ("hold_lifted", &json!(null), Some("all is well".to_owned())),
        ]
    );
}

#[test]
fn what_found_no_room_goes_when_the_hold_is_lifted_although_its_destination_has_no_budget() {
    let (world, gate, mut keys) = gated(6);
    ease(&world, &gate, 1);
    world.round();
    // The one slot waits for the first of them, whose wake-up is lost, and what is new finds none.
    let wakeups = world.ports.queue.messages();
    assert_eq!((wakeups.len(), in_use(&world, "books")), (1, 1));
    world.ports.queue.lose(&wakeups[0].0);
    let new = publish(&world, "new", json!({}));
    work(&world, 1);
    assert_eq!(held(&world, &new), Some(HoldReason::Budget));
    keys.push(new);
    lift(&world, &gate);
    world.round();
    assert!(keys.iter().all(|key| held(&world, key).is_none()));
    world.run_for(600);
    assert!(keys.iter().all(|key| posts(&world, key) == 1));
}

#[test]
fn a_hold_is_eased_again_to_another_number_and_the_same_twice_is_once() {
    let (world, gate, keys) = gated(10);
    ease(&world, &gate, 2);
    let again = try_easing(&world, &gate, 2).unwrap();
    assert!(matches!(again, HoldAct::Already(_)), "{again:?}");
    ease(&world, &gate, 5);
    world.round();
    assert_eq!(in_use(&world, "books"), 5);
    // Less than are on their way: what has not begun finds no room, and goes when there is some again.
    ease(&world, &gate, 1);
    work(&world, 30);
    assert!(keys.iter().all(|key| posts(&world, key) == 1));
    let acts = world.acts(&Book::Across);
    assert_eq!(acts.iter().filter(|act| *act == "hold_lifted by maria").count(), 3, "{acts:?}");
}

#[test]
fn whoever_places_an_eased_hold_again_holds_everything_again() {
    let (world, gate, keys) = gated(4);
    ease(&world, &gate, 1);
    world.round();
    let desk = world.desk();
    let again = |by| world.block(desk.place(Book::Across, HoldRule::All, by, "they fail")).unwrap();
    let HoldAct::Done(order) = again("otto") else { panic!("it was eased") };
    let hold = hold_of(&order);
    assert_eq!((&order.id, &hold.eased, &*hold.placed.by), (&gate, &None, "otto"));
    world.run_for(300);
    assert!(keys.iter().all(|key| held(&world, key) == Some(HoldReason::Gate)));
    assert_eq!(
        world.acts(&Book::Across),
        ["hold_added by maria", "hold_lifted by maria", "hold_added by otto"]
    );
    let third = again("petra");
    assert!(matches!(third, HoldAct::Already(_)), "{third:?}");
    lift(&world, &gate);
    world.run_for(60);
    assert!(keys.iter().all(|key| posts(&world, key) == 1));
}

/// A limit on a shared destination would be on other tenants' deliveries: what goes there stays held.
#[test]
fn a_tenants_eased_hold_limits_no_other_tenant() {
    let world = World::new();
    let hold = place(&world, book("acme"), HoldRule::Tenant(tenant("acme")));
    let own: Vec<_> =
        (0..3).map(|n| publish(&world, &format!("own{n}"), json!({ "destination": "crm" }))).collect();
    let shared = publish(&world, "shared", json!({}));
    world.run_for(60);
    ease(&world, &hold, 1);
    world.round();
    assert_eq!((in_use(&world, "crm"), in_use(&world, "books")), (1, 0));
    let theirs: Vec<_> =
        (0..3).map(|n| publish(&world, &format!("theirs{n}"), json!({ "tenant": "globex" }))).collect();
    world.run_for(120);
    assert!(own.iter().chain(&theirs).all(|key| posts(&world, key) == 1));
    assert_eq!(held(&world, &shared), Some(HoldReason::Paused));
    assert!(world.config_now().eased.keys().eq([&name("crm")]));
    lift(&world, &hold);
    world.run_for(60);
    assert_eq!(posts(&world, &shared), 1);
}

#[test]
fn what_another_hold_keeps_back_stays_where_it_is_and_of_two_limits_the_less_counts() {
    let (world, gate, keys) = gated(8);
    let pause = place(&world, Book::Across, HoldRule::Destination(name("books")));
    ease(&world, &gate, 3);
    world.run_for(60);
    assert!(keys.iter().all(|key| posts(&world, key) == 0));
    for (of_pause, counts) in [(5, 3), (2, 2)] {
        ease(&world, &pause, of_pause);
        let eased = world.config_now().eased;
        assert_eq!(eased[&name("books")].concurrency, counts);
        assert_eq!(eased[&name("crm")].concurrency, 3);
    }
    lift(&world, &gate);
    assert!(world.config_now().eased.keys().eq([&name("books")]));
    world.run_for(60);
    assert!(keys.iter().all(|key| posts(&world, key) == 1));
}

#[test]
fn what_cannot_be_eased_is_refused_and_nothing_is_entered() {
    let world = World::new();
    let any = || EventPattern::parse("lease.*").unwrap();
    let rule =
        |of: Option<&str>| HoldRule::Type { types: any(), payload_version: None, tenant: of.map(tenant) };
    let rows = [
        (Book::Across, rule(None), "no configured destination as a whole"),
        (book("acme"), rule(Some("acme")), "no configured destination as a whole"),
        // All that globex has is shared.
        (book("globex"), HoldRule::Tenant(tenant("globex")), "no configured destination as a whole"),
        (Book::Across, HoldRule::Destination(name("gone")), "no configured destination as a whole"),
        (book("acme"), HoldRule::Suspended(name("crm")), "is the suspension of crm"),
    ];
    for (book, rule, says) in rows {
        let id = place(&world, book.clone(), rule.clone());
        let before = world.acts(&book).len();
        match try_easing(&world, &id, 2) {
            Err(ActError::Refused(sentence)) => assert!(sentence.contains(says), "{rule:?}: {sentence}"),
            other => panic!("{rule:?}: {other:?}"),
        }
        assert_eq!(world.acts(&book).len(), before, "{rule:?}");
        world.pass(1);
    }
    let lifted = place(&world, Book::Across, HoldRule::All);
    lift(&world, &lifted);
    let refused = try_easing(&world, &lifted, 2);
    assert!(
        matches!(&refused, Err(ActError::Refused(says)) if says.contains("lifted already")),
        "{refused:?}"
    );
    let unknown = OrderId::parse("hld_00000000000000000000000000").unwrap();
    assert!(matches!(try_easing(&world, &unknown, 2), Err(ActError::Unknown(_))));
}

/// How many holds keep something of the destination back.
fn kept_of_crm(config: &Config) -> usize {
    let crm = &config.destinations[&name("crm")];
    config.holds.iter().filter(|rule| rule.share_of(&crm.name, &crm.tenants) != Share::Nothing).count()
}

/// An order that was written by other means, or whose destination has gone since, still holds.
#[test]
fn an_eased_hold_that_covers_no_destination_any_more_holds() {
    let mut world = World::new();
    let pause = place(&world, book("acme"), HoldRule::Destination(name("crm")));
    ease(&world, &pause, 2);
    assert_eq!(kept_of_crm(&world.config_now()), 0);
    world.config.destinations.remove(&name("crm"));
    let config = world.config_now();
    assert_eq!((config.holds.len(), config.eased.len()), (1, 0));
}

#[test]
fn a_process_sees_that_a_hold_was_eased_and_how_far() {
    let world = World::new();
    let rules = Rules::from(Locality::PublicOnly);
    world.block(world.desk().apply(CONFIG, rules, "maria", "the first")).unwrap();
    let source = ConfigSource::new(world.office.clone(), rules, world.clock.clone(), DurationMs::ZERO);
    let look = || {
        let look = world.block(source.look()).unwrap();
        let eased = look.config.eased.get(&name("crm")).map(|budget| budget.concurrency);
        (kept_of_crm(&look.config), eased, look.changes_of_holds)
    };
    assert_eq!(look(), (0, None, 0));
    let gate = place(&world, Book::Across, HoldRule::All);
    assert_eq!(look(), (1, None, 1));
    ease(&world, &gate, 2);
    assert_eq!((look(), look()), ((0, Some(2), 2), (0, Some(2), 2)));
    ease(&world, &gate, 4);
    assert_eq!(look(), (0, Some(4), 3));
    lift(&world, &gate);
    assert_eq!(look(), (0, None, 4));
}
