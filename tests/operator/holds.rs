//! Holds: what is right but must not go now waits in the ledger, and goes when it may.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use waybill_domain::address::Locality;
use waybill_domain::authority::Book;
use waybill_domain::delivery::State;
use waybill_domain::destination::{Destination, EventPattern};
use waybill_domain::hold::{HoldReason, HoldRule};
use waybill_domain::identity::{DeliveryId, DeliveryKey, DestinationName};
use waybill_domain::order::OrderId;
use waybill_domain::time::DurationMs;
use waybill_service::acts::ActError;
use waybill_service::config_file::{Rules, SecretStores};
use waybill_service::consume::{Consumer, Incoming};
use waybill_service::holds::HoldAct;
use waybill_service::ports::Inbox as _;
use waybill_service::source::ConfigSource;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::memory::MemoryOffice;
use waybill_testkit::scripted::Reaction;

use crate::publishing::{posts, publish, work};
use crate::world::{World, book, tenant};

fn to_books() -> HoldRule {
    HoldRule::Destination(DestinationName::parse("books").unwrap())
}

fn place(world: &World, rule: HoldRule) -> OrderId {
    match world.block(world.desk().place(Book::Across, rule, "maria", "they asked for it")).unwrap() {
        HoldAct::Done(order) => order.id,
        HoldAct::Already(order) => panic!("{order:?}"),
    }
}

fn lift(world: &World, id: &OrderId) {
    let lifting = world.block(world.desk().lift(id, &[Book::Across], "maria", "they are ready")).unwrap();
    assert!(matches!(lifting, HoldAct::Done(_)), "{lifting:?}");
}

fn held(world: &World, key: &DeliveryKey) -> Option<HoldReason> {
    world.record(key).hold.as_ref().map(|held| held.reason)
}

#[test]
fn a_hold_is_known_again_however_many_came_after_it() {
    let world = World::new();
    let first = place(&world, to_books());
    for n in 0..25 {
        let types = EventPattern::parse(&format!("type-{n}.*")).unwrap();
        place(&world, HoldRule::Type { types, payload_version: None, tenant: None });
    }
    let again =
        world.block(world.desk().place(Book::Across, to_books(), "otto", "they asked again")).unwrap();
    assert!(matches!(&again, HoldAct::Already(order) if order.id == first), "{again:?}");
}

#[test]
fn a_hold_of_a_newer_version_keeps_all_of_its_book_until_it_is_lifted() {
    let world = World::new();
    let newer = || serde_json::from_value(json!({ "region": "eu" })).unwrap();
    world.block(world.desk().place(book("globex"), newer(), "maria", "by the newer one")).unwrap();
    let before = publish(&world, "before", json!({}));
    world.run_for(60);
    assert_eq!(world.record(&before).state, State::Succeeded, "another tenant's is another's");

    let hold = place(&world, newer());
    let during = publish(&world, "during", json!({}));
    world.run_for(60);
    assert_eq!((held(&world, &during), world.record(&during).attempts_made), (Some(HoldReason::Gate), 0));
    lift(&world, &hold);
    world.run_for(120);
    assert_eq!(world.record(&during).state, State::Succeeded);
}

#[test]
fn c123_a_pause_outlives_everything_and_costs_no_attempt() {
    let world = World::new();
    let hold = place(&world, to_books());
    let keys: Vec<DeliveryKey> = (0..100).map(|n| publish(&world, &format!("e{n}"), json!({}))).collect();
    // Nothing of a pause is in the memory of a process. Six receives of a minute each would move a
    // message that only came back into the DLQ.
    world.run_for(7 * 60);
    let quiet = world.ports.queue.messages().len();
    world.run_for(3600);
    assert_eq!(world.ports.recipient.requests().len(), 0);
    assert_eq!((quiet, world.ports.queue.messages().len()), (0, 0), "what waits costs no message");
    assert!(world.ports.queue.dead_letters().is_empty());
    for key in &keys {
        let record = world.record(key);
        assert_eq!((record.state, record.attempts_made), (State::Pending, 0));
        assert_eq!(held(&world, key), Some(HoldReason::Paused));
    }

    lift(&world, &hold);
    world.run_for(120);
    let sent: BTreeSet<DeliveryId> =
        world.ports.recipient.requests().into_iter().map(|request| request.delivery_id).collect();
    assert_eq!((world.ports.recipient.requests().len(), sent.len()), (100, 100));
    for key in &keys {
        let record = world.record(key);
        assert_eq!((record.state, record.attempts_made), (State::Succeeded, 1));
    }
    assert_eq!(world.acts(&Book::Across), ["hold_added by maria", "hold_lifted by maria"]);
}

/// What a hold of one tenant keeps back does not depend on whom its destination serves besides, or whether
/// it is configured at all: it was asked for, and goes on until it is lifted.
#[test]
fn a_tenants_hold_goes_on_for_that_tenant_when_its_destination_comes_to_serve_others() {
    let mut world = World::new();
    let acme = tenant("acme");
    let crm = DestinationName::parse("crm").unwrap();
    let hold = HoldRule::Destination(crm.clone());
    world
        .block(world.desk().place(Book::Tenant(acme.clone()), hold, "maria", "their import is down"))
        .unwrap();
    let before = publish(&world, "before", json!({ "destination": "crm" }));
    world.run_for(120);
    assert_eq!(held(&world, &before), Some(HoldReason::Paused));

    let alone = world.config.destinations[&crm].clone();
    let both = Destination { tenants: vec![acme, tenant("globex")], ..Destination::clone(&alone) };
    world.config.destinations.insert(crm.clone(), Arc::new(both));
    let after = publish(&world, "after", json!({ "destination": "crm" }));
    let theirs = publish(&world, "theirs", json!({ "destination": "crm", "tenant": "globex" }));
    world.run_for(600);
    assert_eq!(
        (held(&world, &before), held(&world, &after)),
        (Some(HoldReason::Paused), Some(HoldReason::Paused))
    );
    assert_eq!(posts(&world, &theirs), 1, "and keeps nothing of others back");
    assert_eq!((posts(&world, &before), posts(&world, &after)), (0, 0));
}

#[test]
fn c123_a_deadline_that_passes_during_a_pause_expires_and_is_never_sent() {
    let world = World::new();
    let hold = place(&world, to_books());
    let late = publish(&world, "late", json!({ "deadline": "2026-01-01T00:30:00Z" }));
    let early = publish(&world, "early", json!({ "deadline": "2026-01-01T12:00:00Z" }));
    world.run_for(3600);
    assert_eq!(world.record(&late).state, State::Expired);
    assert_eq!(world.record(&early).state, State::Pending);
    lift(&world, &hold);
    world.run_for(3600);
    assert_eq!((posts(&world, &late), posts(&world, &early)), (0, 1));
    assert_eq!(world.ports.queue.dead_letters().len(), 1, "told once");
}

#[test]
fn what_is_lifted_goes_earliest_deadline_first() {
    let world = World::new();
    let hold = place(&world, to_books());
    let deadlines = ["2026-01-01T09:00:00Z", "2026-01-01T07:00:00Z", "", "2026-01-01T08:00:00Z"];
    let keys: Vec<DeliveryKey> = deadlines
        .iter()
        .enumerate()
        .map(|(n, deadline)| {
            let fields = if deadline.is_empty() { json!({}) } else { json!({ "deadline": deadline }) };
            publish(&world, &format!("e{n}"), fields)
        })
        .collect();
    world.run_for(60);
    lift(&world, &hold);
    world.run_for(60);
    let sent: Vec<DeliveryId> =
        world.ports.recipient.requests().into_iter().map(|request| request.delivery_id).collect();
    let expected = [1, 3, 0, 2].map(|n| keys[n].delivery_id.clone());
    assert_eq!(sent, expected);
}

#[test]
fn a_hold_keeps_back_what_it_names_and_nothing_else() {
    let lease = || EventPattern::parse("lease.*").unwrap();
    let events: [(&str, Value); 6] = [
        ("acme to books", json!({})),
        ("acme to crm", json!({ "destination": "crm" })),
        ("globex to books", json!({ "tenant": "globex" })),
        ("acme, version 3", json!({ "payload_version": 3 })),
        ("globex, version 3", json!({ "tenant": "globex", "payload_version": 3 })),
        ("acme, another type", json!({ "type": "renewal.due", "payload_version": 3 })),
    ];
    let version_3 = |of: Option<&str>| HoldRule::Type {
        types: lease(),
        payload_version: Some(3),
        tenant: of.map(tenant),
    };
    let any_version = HoldRule::Type { types: lease(), payload_version: None, tenant: None };
    let table: [(HoldRule, HoldReason, &[usize]); 6] = [
        (to_books(), HoldReason::Paused, &[0, 2, 3, 4, 5]),
        (HoldRule::Tenant(tenant("acme")), HoldReason::Paused, &[0, 1, 3, 5]),
        (version_3(None), HoldReason::Quarantine, &[3, 4]),
        (version_3(Some("globex")), HoldReason::Quarantine, &[4]),
        (any_version, HoldReason::Quarantine, &[0, 1, 2, 3, 4]),
        (HoldRule::All, HoldReason::Gate, &[0, 1, 2, 3, 4, 5]),
    ];
    for (rule, reason, expected) in table {
        let world = World::new();
        let hold = place(&world, rule.clone());
        let keys: Vec<DeliveryKey> =
            events.iter().map(|(name, fields)| publish(&world, name, fields.clone())).collect();
        world.run_for(120);
        for (n, key) in keys.iter().enumerate() {
            let is_held = expected.contains(&n);
            let name = events[n].0;
            assert_eq!(held(&world, key), is_held.then_some(reason), "{rule:?}: {name}");
            assert_eq!(posts(&world, key), usize::from(!is_held), "{rule:?}: {name}");
        }
        lift(&world, &hold);
        world.run_for(120);
        assert!(keys.iter().all(|key| posts(&world, key) == 1), "{rule:?}: lifted");
    }
}

#[test]
fn a_retry_that_is_held_keeps_its_number_and_its_due_time() {
    let world = World::new();
    let key = publish(&world, "e", json!({}));
    world.ports.recipient.react(&key.delivery_id, [Reaction::answer(503).asking("1200")]);
    work(&world, 1);
    let due_at = world.record(&key).due_at;
    let hold = place(&world, to_books());
    world.run_for(600);
    let record = world.record(&key);
    assert_eq!((record.attempts_made, record.due_at), (1, due_at));
    // Lifted before its time: it waits for that, as the recipient asked.
    lift(&world, &hold);
    world.run_for(1200);
    let sent: Vec<_> = world.ports.recipient.requests().into_iter().map(|request| request.at).collect();
    assert_eq!(sent.len(), 2);
    assert!(sent[1] >= due_at, "{} is before {due_at}", sent[1]);
    assert!(sent[1] <= due_at.plus(DurationMs::from_secs(2)), "{} is long after {due_at}", sent[1]);
    assert_eq!((world.record(&key).state, world.record(&key).attempts_made), (State::Succeeded, 2));
}

#[test]
fn what_two_holds_keep_back_goes_when_the_last_is_lifted() {
    let world = World::new();
    let pause = place(&world, to_books());
    let gate = place(&world, HoldRule::All);
    let key = publish(&world, "e", json!({}));
    world.run_for(120);
    lift(&world, &pause);
    world.run_for(120);
    assert_eq!(posts(&world, &key), 0);
    lift(&world, &gate);
    world.run_for(120);
    assert_eq!(posts(&world, &key), 1);
}

#[test]
fn a_worker_that_still_saw_the_hold_while_it_was_lifted_loses_nothing() {
    let world = World::new();
    let hold = place(&world, to_books());
    let key = publish(&world, "e", json!({}));
    let before = world.config_now();
    let message = world.block(world.ports.queue.receive(1, DurationMs::from_secs(60))).unwrap().remove(0);
    lift(&world, &hold);
    world.round();
    let incoming = Incoming { message_id: &message.message_id, body: &message.body };
    let consumer = Consumer { ports: &world.ports };
    world.block(consumer.consume(&before, incoming, DurationMs::from_secs(60)));
    world.block(world.ports.queue.acknowledge(&message.receipt)).unwrap();
    assert_eq!(held(&world, &key), Some(HoldReason::Paused), "the hold was written after it was lifted");
    world.run_for(120);
    assert_eq!((world.record(&key).state, posts(&world, &key)), (State::Succeeded, 1));
}

#[test]
fn two_reconcilers_release_each_once() {
    let world = World::new();
    let hold = place(&world, to_books());
    let keys: Vec<DeliveryKey> = (0..10).map(|n| publish(&world, &format!("e{n}"), json!({}))).collect();
    world.run_for(60);
    lift(&world, &hold);
    world.round();
    world.round();
    assert_eq!(world.ports.queue.messages().len(), 10);
    work(&world, 60);
    assert!(keys.iter().all(|key| posts(&world, key) == 1));
}

#[test]
fn the_same_hold_twice_is_one_and_is_lifted_once() {
    let world = World::new();
    let id = place(&world, to_books());
    let again = world.block(world.desk().place(Book::Across, to_books(), "otto", "me too")).unwrap();
    let HoldAct::Already(standing) = again else { panic!("{again:?}") };
    assert_eq!(standing.id, id);
    lift(&world, &id);
    let again = world.block(world.desk().lift(&id, &[Book::Across], "otto", "me too")).unwrap();
    assert!(matches!(again, HoldAct::Already(_)), "{again:?}");
    assert_eq!(world.acts(&Book::Across), ["hold_added by maria", "hold_lifted by maria"]);
    // Once lifted, it can be placed anew.
    world.pass(1);
    assert_ne!(place(&world, to_books()), id);
}

#[test]
fn a_hold_of_another_book_is_answered_as_one_that_does_not_exist() {
    let world = World::new();
    let rule = HoldRule::Tenant(tenant("globex"));
    let placed = world.block(world.desk().place(book("globex"), rule, "otto", "audit")).unwrap();
    let HoldAct::Done(order) = placed else { panic!("{placed:?}") };
    let unknown = OrderId::parse("hld_00000000000000000000000000").unwrap();
    for id in [&order.id, &unknown] {
        let error = world.block(world.desk().lift(id, &[book("acme")], "maria", "curious")).unwrap_err();
        let expected = format!("there is no hold {id}");
        assert!(matches!(&error, ActError::Unknown(sentence) if *sentence == expected), "{error:?}");
    }
    assert_eq!(world.acts(&book("globex")), ["hold_added by otto"]);
    assert!(world.acts(&book("acme")).is_empty());
}

/// A configuration with its recipient at `url`.
fn document(url: &str) -> String {
    format!("[destinations.books]\ntenants = [\"acme\"]\nurl = \"{url}\"\nsecrets = [\"env:S\"]\n")
}

const RULES: Rules =
    Rules { locality: Locality::PublicOnly, secrets: SecretStores::Environment, worker_runs: None };

fn source_of(world: &World) -> ConfigSource<MemoryOffice, VirtualClock> {
    let document = document("https://books.example.com/");
    world.block(world.desk().apply(&document, RULES, "maria", "the first")).unwrap();
    ConfigSource::new(world.office.clone(), RULES, world.clock.clone(), DurationMs::ZERO)
}

#[test]
fn a_hold_that_was_lifted_before_anybody_looked_twice_is_known_to_have_been_there() {
    let world = World::new();
    let source = source_of(&world);
    let look = || world.block(source.look()).unwrap().changes_of_holds;
    assert_eq!((look(), look()), (0, 0));
    let hold = place(&world, to_books());
    assert_eq!((look(), look()), (1, 1));
    lift(&world, &hold);
    assert_eq!((look(), look()), (2, 2));
}

#[test]
fn a_hold_bites_although_the_newest_configuration_cannot_be_used_here() {
    let world = World::new();
    let source = source_of(&world);
    let first = world.block(source.current()).unwrap().revision.clone();
    let local = document("http://127.0.0.1/");
    let lenient = Rules::from(Locality::AllowLocal);
    world.block(world.desk().apply(&local, lenient, "otto", "on my machine")).unwrap();
    let hold = place(&world, to_books());
    let config = world.block(source.current()).unwrap();
    assert_eq!((&config.revision, &config.holds), (&first, &vec![to_books()]));
    lift(&world, &hold);
    let look = world.block(source.look()).unwrap();
    assert_eq!((look.config.holds.len(), look.changes_of_holds), (0, 2));
    // Mended, it is in force.
    let mended = document("https://books.example.com/v2");
    let mended = world.block(world.desk().apply(&mended, RULES, "otto", "mended")).unwrap();
    assert_eq!(world.block(source.current()).unwrap().revision, mended.revision.revision);
}
