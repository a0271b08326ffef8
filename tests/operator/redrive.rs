//! Redrive runs: sampled, paced, stopped, halted, and never twice.

use std::collections::BTreeMap;

use waybill_domain::delivery::{Delivery, State};
use waybill_domain::identity::DeliveryKey;
use waybill_domain::order::OrderBody;
use waybill_domain::redrive::{Reviews, Standing};
use waybill_service::ports::Clock as _;
use waybill_testkit::conformance::fixture;
use waybill_testkit::scripted::Reaction;

use crate::world::{EXHAUSTED, World, book, of};

pub(crate) fn many(world: &World, tenant: &str, count: usize) -> Vec<DeliveryKey> {
    (0..count).map(|n| world.dead(tenant, &format!("evt-{n:05}"), "books", EXHAUSTED)).collect()
}

pub(crate) fn states(world: &World, keys: &[DeliveryKey]) -> BTreeMap<State, usize> {
    let mut counted = BTreeMap::new();
    for key in keys {
        *counted.entry(world.record(key).state).or_default() += 1;
    }
    counted
}

pub(crate) fn requests_by_second(world: &World) -> BTreeMap<i64, usize> {
    let mut by_second = BTreeMap::new();
    for request in world.ports.recipient.requests() {
        *by_second.entry(request.at.as_unix_s()).or_default() += 1;
    }
    by_second
}

#[test]
fn c39_a_run_releases_its_tenant_s_and_leaves_the_others_byte_for_byte() {
    let world = World::new();
    let own = many(&world, "acme", 3);
    let others: Vec<DeliveryKey> = [many(&world, "globex", 2), many(&world, "northwind", 2)].concat();
    let before: Vec<String> =
        others.iter().map(|key| serde_json::to_string(&world.record(key)).unwrap()).collect();
    world.pass(1);
    let plan = world.plan(of("acme"), Reviews::default());
    let order = world.start(&plan, "10/s", None);
    world.run_for(300);
    assert_eq!(states(&world, &own), BTreeMap::from([(State::Succeeded, 3)]));
    let after: Vec<String> =
        others.iter().map(|key| serde_json::to_string(&world.record(key)).unwrap()).collect();
    assert_eq!(before, after);
    let run = world.run_of(&order);
    assert_eq!((run.planned, run.tally.released), (3, 3));
    assert!(run.is_finished());
}

#[test]
fn a_release_keeps_the_delivery_and_gives_it_a_fresh_budget() {
    let world = World::new();
    let key = world.dead("acme", "evt", "books", EXHAUSTED);
    world.pass(1);
    let order = world.start(&world.plan(of("acme"), Reviews::default()), "1/s", None);
    world.round();
    let record = world.record(&key);
    assert_eq!((record.state, record.redrives), (State::Retryable, 1));
    assert_eq!(record.redrive_run.as_deref(), Some(order.id.as_str()));
    assert_eq!(record.attempt_limit, record.attempts_made + 3);
    assert_eq!(record.delivery, world.record(&key).delivery);
}

#[test]
fn the_same_plan_started_twice_is_one_run_and_one_entry() {
    let world = World::new();
    let keys = many(&world, "acme", 5);
    world.pass(1);
    let plan = world.plan(of("acme"), Reviews::default());
    let first = world.start(&plan, "10/s", None);
    world.run_for(120);
    let second = world.start(&plan, "10/s", None);
    assert_eq!(first.id, second.id);
    world.run_for(120);
    assert_eq!(world.acts(&book("acme")), ["redrive_started by maria"]);
    assert_eq!(world.ports.recipient.requests().len(), keys.len());
}

#[test]
fn a_sample_goes_first_and_the_rest_waits_for_a_review() {
    let world = World::new();
    let keys = many(&world, "acme", 30);
    world.pass(1);
    let order = world.start(&world.plan(of("acme"), Reviews::default()), "10/s", Some(4));
    world.run_for(300);
    assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, 4), (State::DeadLettered, 26)]));
    assert!(matches!(world.run_of(&order).standing, Standing::Sampled(_)));
    world.resume(&order, "sample is fine");
    world.run_for(600);
    assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, 30)]));
    assert_eq!(world.acts(&book("acme")), ["redrive_started by maria", "redrive_resumed by maria"]);
}

#[test]
fn a_run_keeps_its_rate_for_each_destination() {
    let world = World::new();
    let keys: Vec<DeliveryKey> = (0..300)
        .flat_map(|n| ["books", "crm"].map(|to| world.dead("acme", &format!("evt-{n}"), to, EXHAUSTED)))
        .collect();
    world.pass(1);
    world.start(&world.plan(of("acme"), Reviews::default()), "5/s", None);
    world.run_for(900);
    assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, 600)]));
    // A queue delays by whole seconds: what is due within one of them comes together.
    let busiest = requests_by_second(&world).into_values().max();
    assert!(busiest <= Some(2 * (5 + 1)), "{busiest:?} requests in one second at 5/s to each of two");
}

#[test]
fn a_stopped_run_holds_what_it_released_and_goes_on_where_it_was() {
    let world = World::new();
    let keys = many(&world, "acme", 200);
    world.pass(1);
    let order = world.start(&world.plan(of("acme"), Reviews::default()), "1/s", None);
    world.run_for(90);
    world.stop(&order, "wrong ledger code");
    let sent = world.ports.recipient.requests().len();
    world.run_for(600);
    assert_eq!(world.ports.recipient.requests().len(), sent, "a stopped run sends nothing more");
    let held = keys.iter().filter(|key| world.record(key).hold.is_some()).count();
    assert!(held > 0, "what was released and not sent is held");
    assert!(keys.iter().all(|key| world.record(key).attempts_made <= 1), "a hold is no attempt");

    world.resume(&order, "code corrected");
    world.run_for(900);
    assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, 200)]));
    assert_eq!(world.ports.recipient.requests().len(), 200, "nothing was sent twice");
    assert_eq!(world.run_of(&order).tally.released, 200);
}

#[test]
fn a_run_halts_itself_when_most_of_its_last_outcomes_failed_again() {
    let world = World::new();
    let keys = many(&world, "acme", 500);
    let other = many(&world, "globex", 40);
    for key in &keys {
        world.ports.recipient.react(&key.delivery_id, [Reaction::answer(401)]);
    }
    world.pass(1);
    let order = world.start(&world.plan(of("acme"), Reviews::default()), "50/s", None);
    let healthy = world.start(&world.plan(of("globex"), Reviews::default()), "1/s", None);
    world.run_for(600);
    assert!(matches!(world.run_of(&order).standing, Standing::Halted(_)));
    assert_eq!(world.acts(&book("acme")), ["redrive_started by maria", "redrive_halted by automation"]);
    let sent = world
        .ports
        .recipient
        .requests()
        .iter()
        .filter(|r| keys.iter().any(|k| k.delivery_id == r.delivery_id))
        .count();
    assert!(sent <= 20, "{sent} of 500 were sent before it halted");
    // Another tenant's run goes on.
    assert_eq!(states(&world, &other), BTreeMap::from([(State::Succeeded, 40)]));
    assert!(world.run_of(&healthy).is_finished());
}

#[test]
fn a_halted_run_that_is_resumed_judges_what_goes_from_then_on() {
    let world = World::new();
    let mut keys = many(&world, "acme", 100);
    // In the order in which they are released: all ended together.
    keys.sort_by(|a, b| a.delivery_id.cmp(&b.delivery_id));
    let (first, rest) = keys.split_at(20);
    for key in first {
        world.ports.recipient.react(&key.delivery_id, [Reaction::answer(401)]);
    }
    world.pass(1);
    let order = world.start(&world.plan(of("acme"), Reviews::default()), "10/s", None);
    world.run_for(180);
    let Standing::Halted(signed) = world.run_of(&order).standing else { panic!("it goes on") };
    assert_eq!(signed.why, "20 of its last 20 outcomes failed again");
    assert_eq!(states(&world, rest), BTreeMap::from([(State::DeadLettered, 80)]));

    // A night later: what is released then goes then, and not another night later.
    world.run_for(8 * 3600);
    world.resume(&order, "the secret was corrected");
    world.run_for(300);
    assert!(world.run_of(&order).is_finished(), "{:?}", world.run_of(&order).standing);
    assert_eq!(states(&world, rest), BTreeMap::from([(State::Succeeded, 80)]));
}

#[test]
fn a_sample_that_failed_does_not_halt_what_goes_once_it_was_mended() {
    let world = World::new();
    let mut keys = many(&world, "acme", 60);
    keys.sort_by(|a, b| a.delivery_id.cmp(&b.delivery_id));
    let (sample, rest) = keys.split_at(20);
    for key in sample {
        world.ports.recipient.react(&key.delivery_id, [Reaction::answer(401)]);
    }
    world.pass(1);
    let order = world.start(&world.plan(of("acme"), Reviews::default()), "10/s", Some(20));
    world.run_for(180);
    assert!(matches!(world.run_of(&order).standing, Standing::Sampled(_)));
    world.resume(&order, "the secret was corrected");
    world.run_for(300);
    assert!(world.run_of(&order).is_finished(), "{:?}", world.run_of(&order).standing);
    assert_eq!(states(&world, rest), BTreeMap::from([(State::Succeeded, 40)]));
}

#[test]
fn c45_a_dead_letter_past_its_deadline_expires_and_is_not_sent() {
    let world = World::new();
    let late = Delivery { deadline: Some(fixture::t(3600)), ..fixture::delivery("acme", "late", "books") };
    let key = world.dead_with(late, EXHAUSTED);
    // Planned in time, released too late.
    world.pass(3590);
    let plan = world.plan(of("acme"), Reviews::default());
    assert_eq!(plan.releasable(), 1);
    world.pass(11);
    let order = world.start(&plan, "10/s", None);
    world.run_for(300);
    assert_eq!(world.record(&key).state, State::Expired);
    assert!(world.ports.recipient.requests().is_empty());
    assert_eq!(world.run_of(&order).tally.expired, 1);
    assert!(world.ports.queue.dead_letters().iter().any(|letter| letter.body.contains("expired")));
}

#[test]
fn c41_a_delivery_is_released_only_so_often() {
    let world = World::new();
    let key = world.dead("acme", "evt", "books", EXHAUSTED);
    for redrive in 1..=3 {
        world.ports.recipient.react(&key.delivery_id, [500; 3].map(Reaction::answer));
        world.pass(1);
        world.start(&world.plan(of("acme"), Reviews::default()), "10/s", None);
        world.run_for(3600);
        let record = world.record(&key);
        assert_eq!(
            (record.state, record.redrives, record.attempts_made),
            (State::DeadLettered, redrive, 3 * redrive)
        );
    }
    world.pass(1);
    assert_eq!(world.plan(of("acme"), Reviews::default()).releasable(), 0);
    let reviews = Reviews { beyond_limit: Some("agreed with the customer".to_owned()), ..Reviews::default() };
    assert_eq!(world.plan(of("acme"), reviews).releasable(), 1);
}

/// The issue's own measure, on the virtual clock: 25,000 over three tenants, stopped at 40 %, resumed.
#[test]
fn twenty_five_thousand_dead_letters_are_released_exactly_once_at_their_rate() {
    const RATE: usize = 50;
    let world = World::new();
    let own = many(&world, "acme", 5_000);
    let others = [many(&world, "globex", 10_000), many(&world, "northwind", 10_000)].concat();
    world.ports.ledger.take_journal();
    world.pass(1);
    let plan = world.plan(of("acme"), Reviews::default());
    assert_eq!(plan.releasable(), 5_000);
    assert!(world.ports.ledger.take_journal().is_empty());

    let order = world.start(&plan, "50/s", None);
    world.run_for(100);
    let stopped_at = world.clock.now();
    world.stop(&order, "look at the first");
    world.run_for(60);
    let sent = world.ports.recipient.requests().len();
    assert!((1_500..=3_000).contains(&sent), "{sent} of 5,000 were sent when it was stopped");
    let late = world.ports.recipient.requests().iter().filter(|r| r.at > stopped_at).count();
    assert_eq!(late, 0, "sent after the stop");
    world.resume(&order, "they are fine");
    world.run_for(360);

    assert_eq!(states(&world, &own), BTreeMap::from([(State::Succeeded, 5_000)]));
    assert_eq!(world.ports.recipient.requests().len(), 5_000);
    let OrderBody::Redrive(run) = order.body else { panic!("a run") };
    assert_eq!(run.planned, 5_000);
    assert!(world.ports.ledger.take_journal().iter().all(|write| {
        let after = &write.after;
        after.delivery.tenant.as_str() == "acme"
    }));
    assert_eq!(states(&world, &others), BTreeMap::from([(State::DeadLettered, 20_000)]));
    let per_second = requests_by_second(&world);
    let busiest = per_second.values().max().copied().unwrap_or_default();
    assert!(busiest <= 2 * RATE, "{busiest} in one second at {RATE}/s");
}

/// Every destination of `serve` has a share of the workers. A slot that is reserved for what goes within a
/// minute would lapse before it is used, again and again.
#[test]
fn what_a_stop_held_comes_back_within_minutes_where_its_destination_has_a_budget() {
    let world = World::new().with_places(16);
    let ids = many(&world, "acme", 1_000);
    world.pass(1);
    let order = world.start(&world.plan(of("acme"), Reviews::default()), "50/s", None);
    // Twenty outcomes first; then what the next minute is to send.
    world.run_for(61);
    world.stop(&order, "look at the first");
    world.run_for(60);
    world.resume(&order, "they are fine");
    world.run_for(180);
    assert_eq!(states(&world, &ids), BTreeMap::from([(State::Succeeded, 1_000)]));
    assert_eq!(world.ports.recipient.requests().len(), 1_000);
}
