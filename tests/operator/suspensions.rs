//! Suspensions: what a destination could only refuse is held, a probe finds out when it takes something
//! again, and operators see one act for the beginning and one for the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use waybill_domain::budget::Budget;
use waybill_domain::delivery::State;
use waybill_domain::destination::Destination;
use waybill_domain::hold::HoldReason;
use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::order::{Hold, OrderBody, OrderId};
use waybill_domain::outcome::StatusOverride;
use waybill_domain::policy::{Policy, PolicyTerms};
use waybill_domain::suspension::SuspendRules;
use waybill_service::desk::Desk as Budgets;
use waybill_service::holds::HoldAct;
use waybill_service::office::Office as _;
use waybill_service::ports::Ports;
use waybill_service::reconcile::TickLimits;
use waybill_testkit::scripted::Reaction;

use crate::publishing::{posts, publish, work};
use crate::world::{World, book};

pub(crate) const SUSPENDED: &str = "suspended by automation";
pub(crate) const LIFTED: &str = "suspension_lifted by automation";

fn name(destination: &str) -> DestinationName {
    DestinationName::parse(destination).unwrap()
}

/// Changes `crm`, which serves acme alone.
fn change(world: &mut World, change: impl FnOnce(&mut Destination)) {
    let destination = world.config.destinations.get_mut(&name("crm")).unwrap();
    change(Arc::make_mut(destination));
}

/// `crm` is suspended after so many failures, with a budget or without.
pub(crate) fn ruled(after: Option<u32>, on_gone: bool, budget: Option<u32>) -> World {
    let mut world = World::new();
    change(&mut world, |crm| {
        crm.suspension = SuspendRules::of(after, on_gone);
        crm.budget = Budget::of(budget, None);
        if on_gone {
            crm.statuses.insert(410, StatusOverride::Retryable);
        }
    });
    world
}

pub(crate) fn turns(world: &World, reaction: Reaction) {
    world.ports.recipient.turn(&name("crm"), reaction);
}

pub(crate) fn to_crm(world: &World, event: &str) -> DeliveryKey {
    publish(world, event, json!({ "destination": "crm" }))
}

fn many(world: &World, from: usize, to: usize) -> Vec<DeliveryKey> {
    (from..to).map(|n| to_crm(world, &format!("e{n}"))).collect()
}

fn is_suspended(world: &World) -> bool {
    world.ports.ledger.peek_usage(&name("crm")).usage.health.suspension().is_some()
}

fn held(world: &World, key: &DeliveryKey) -> Option<HoldReason> {
    world.record(key).hold.as_ref().map(|held| held.reason)
}

fn states(world: &World, keys: &[DeliveryKey]) -> BTreeMap<State, usize> {
    keys.iter().fold(BTreeMap::new(), |mut states, key| {
        *states.entry(world.record(key).state).or_default() += 1;
        states
    })
}

/// When requests reached the recipient, in seconds from the beginning of the world.
fn sent_s(world: &World) -> Vec<u64> {
    let begin = waybill_testkit::conformance::fixture::T0;
    world.ports.recipient.requests().iter().map(|r| r.at.since(begin).as_ms() / 1000).collect()
}

fn its_order(world: &World) -> (OrderId, Hold) {
    let orders = world.block(world.office.orders(Some(&book("acme")), 10, None)).unwrap().items;
    let holds = orders.into_iter().filter_map(|order| match order.body {
        OrderBody::Hold(hold) => Some((order.id, hold)),
        _ => None,
    });
    let holds: Vec<_> = holds.collect();
    assert_eq!(holds.len(), 1, "{holds:?}");
    holds.into_iter().next().unwrap()
}

/// With a budget and without: what is told is the same.
const BUDGETS: [Option<u32>; 2] = [Some(2), None];

#[test]
fn failures_that_only_a_person_can_mend_suspend_and_what_comes_then_is_held() {
    for budget in BUDGETS {
        let world = ruled(Some(3), false, budget);
        turns(&world, Reaction::answer(401));
        let keys = many(&world, 0, 10);
        work(&world, 30);
        // As their own outcome says; nothing behind them is burned.
        let expected = BTreeMap::from([(State::DeadLettered, 3), (State::Pending, 7)]);
        assert_eq!(states(&world, &keys), expected, "{budget:?}");
        let waiting = keys.iter().filter(|key| world.record(key).state == State::Pending);
        for key in waiting {
            assert_eq!(
                (held(&world, key), world.record(key).attempts_made),
                (Some(HoldReason::Suspended), 0)
            );
        }
        assert!(world.ports.queue.messages().is_empty(), "what waits costs no message");
        assert!(world.acts(&book("acme")).is_empty(), "nobody has entered it yet");
        world.round();
        world.round();
        assert_eq!(world.acts(&book("acme")), [SUSPENDED]);
        let (_, hold) = its_order(&world);
        let why = "it refused 3 times in a row for want of a right: only a person can mend that";
        assert_eq!((hold.placed.by.as_str(), hold.placed.why.as_str()), ("automation", why));
    }
}

#[test]
fn so_does_a_recipient_that_nobody_reaches_and_its_deliveries_are_retried() {
    for (budget, reaction) in [(Some(2), Reaction::lost_before()), (None, Reaction::silence())] {
        let world = ruled(Some(3), false, budget);
        turns(&world, reaction);
        let keys = many(&world, 0, 6);
        work(&world, 120);
        assert!(is_suspended(&world));
        assert!(keys.iter().all(|key| world.record(key).state.is_open()), "nothing is lost");
        assert!(keys.iter().all(|key| held(&world, key) == Some(HoldReason::Suspended)));
    }
}

#[test]
fn a_success_in_between_and_other_answers_suspend_nothing() {
    for budget in BUDGETS {
        for between in [200, 503, 404] {
            let world = ruled(Some(3), false, budget);
            for n in 0..12 {
                turns(&world, Reaction::answer(if n % 3 == 2 { between } else { 401 }));
                to_crm(&world, &format!("e{n}"));
                work(&world, 0);
            }
            assert!(!is_suspended(&world), "{between}, {budget:?}");
        }
    }
}

/// Two workers, each with a desk of its own, see the same row.
#[test]
fn two_workers_count_one_row_and_a_success_of_either_ends_it() {
    for budget in BUDGETS {
        let mut world = ruled(Some(4), false, budget);
        let mut other = Budgets::default();
        let mut swap = |world: &mut World| std::mem::swap(&mut world.ports.desk, &mut other);
        let mut step = |world: &mut World, n: usize, status: u16| {
            swap(world);
            // Whoever has seen nothing for a while looks.
            world.pass(5);
            turns(world, Reaction::answer(status));
            to_crm(world, &format!("e{n}"));
            work(world, 0);
        };
        for (n, status) in [401, 401, 401, 200, 401, 401, 401].into_iter().enumerate() {
            step(&mut world, n, status);
            assert!(!is_suspended(&world), "{n}");
        }
        step(&mut world, 7, 401);
        assert!(is_suspended(&world), "{budget:?}: each of them saw only two");
        step(&mut world, 8, 401);
        step(&mut world, 9, 401);
        assert_eq!(world.ports.recipient.requests().len(), 8, "both of them hold");
        world.round();
        world.round();
        assert_eq!(world.acts(&book("acme")), [SUSPENDED]);
    }
}

/// 410 as the recipient's word that it wants no more: the first is believed, and burns nothing.
#[test]
fn a_410_that_suspends_is_nobody_s_end_and_one_that_does_not_is() {
    for budget in BUDGETS {
        let world = ruled(None, true, budget);
        turns(&world, Reaction::answer(410));
        let keys = many(&world, 0, 10);
        work(&world, 30);
        assert!(world.ports.recipient.requests().len() <= 2, "{budget:?}: {:?}", sent_s(&world));
        assert!(keys.iter().all(|key| held(&world, key) == Some(HoldReason::Suspended)), "{budget:?}");
        assert!(world.ports.queue.dead_letters().is_empty());
        turns(&world, Reaction::answer(200));
        world.run_for(300);
        assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, 10)]), "{budget:?}");
        assert_eq!(world.acts(&book("acme")), [SUSPENDED, LIFTED]);
    }
    let world = ruled(Some(2), false, None);
    turns(&world, Reaction::answer(410));
    let keys = many(&world, 0, 10);
    work(&world, 30);
    assert_eq!(states(&world, &keys), BTreeMap::from([(State::DeadLettered, 10)]));
    assert!(!is_suspended(&world));
}

#[test]
fn probes_go_one_at_a_time_to_the_second_and_each_is_an_attempt_that_counts() {
    for budget in BUDGETS {
        let mut world = ruled(Some(1), false, budget);
        change(&mut world, |crm| {
            let terms = PolicyTerms { max_attempts: 3, ..PolicyTerms::default() };
            crm.policy = Policy::new(terms).unwrap();
        });
        turns(&world, Reaction::answer(401));
        let first = to_crm(&world, "first");
        work(&world, 0);
        assert_eq!(world.record(&first).state, State::DeadLettered);
        let deadline = json!({ "destination": "crm", "deadline": "2026-01-01T20:00:00Z" });
        let urgent = publish(&world, "urgent", deadline);
        let others = many(&world, 0, 5);
        // 1, 2, 4, 8, … minutes apart, up to an hour.
        world.run_for(3 * 3600);
        let minutes: Vec<u64> = sent_s(&world).into_iter().map(|at| at / 60).collect();
        let seconds: Vec<u64> = sent_s(&world).into_iter().map(|at| at % 60).collect();
        assert_eq!(minutes, [0, 1, 3, 7, 15, 31, 63, 123], "{budget:?}");
        assert_eq!(seconds, [0; 8], "{budget:?}: to the second");
        // The most urgent one is the probe, until its attempts are used up. Its refusals are of the
        // destination, not of it.
        let record = world.record(&urgent);
        assert_eq!((record.attempts_made, record.state), (3, State::DeadLettered), "{budget:?}");
        assert_eq!(record.dead_letter_reason().map(|reason| reason.as_str()), Some("attempts_exhausted"));
        let attempts: u32 = others.iter().map(|key| world.record(key).attempts_made).sum();
        assert_eq!(attempts, 4, "{budget:?}");
        assert_eq!(world.acts(&book("acme")), [SUSPENDED]);
    }
}

#[test]
fn the_first_success_lifts_it_and_what_was_held_goes_earliest_deadline_first() {
    for budget in [Some(1), None] {
        let world = ruled(Some(1), false, budget);
        turns(&world, Reaction::answer(403));
        to_crm(&world, "first");
        work(&world, 0);
        let deadlines = ["09:00", "07:00", "", "08:00"].map(|at| match at {
            "" => json!({ "destination": "crm" }),
            at => json!({ "destination": "crm", "deadline": format!("2026-01-01T{at}:00Z") }),
        });
        let held: Vec<DeliveryKey> = deadlines
            .into_iter()
            .enumerate()
            .map(|(n, fields)| publish(&world, &format!("e{n}"), fields))
            .collect();
        work(&world, 10);
        assert_eq!(world.ports.recipient.requests().len(), 1);
        turns(&world, Reaction::answer(200));
        world.run_for(180);
        let requests = world.ports.recipient.requests();
        let sent: Vec<_> = requests.iter().skip(1).map(|request| request.delivery_id.clone()).collect();
        assert_eq!(sent, [1, 3, 0, 2].map(|n| held[n].delivery_id.clone()), "{budget:?}");
        assert_eq!(sent_s(&world)[1..], [60; 4], "{budget:?}: at once after the probe");
        assert_eq!(world.acts(&book("acme")), [SUSPENDED, LIFTED]);
        assert!(!its_order(&world).1.lifted.unwrap().why.is_empty());
        assert!(world.ports.ledger.peek_usage(&name("crm")).usage.health.is_empty());
    }
}

#[test]
fn where_nothing_is_held_the_next_that_comes_is_the_probe() {
    for budget in BUDGETS {
        let world = ruled(Some(1), false, budget);
        turns(&world, Reaction::answer(401));
        to_crm(&world, "first");
        world.run_for(3600);
        turns(&world, Reaction::answer(200));
        let key = to_crm(&world, "next");
        work(&world, 1);
        assert_eq!(world.record(&key).state, State::Succeeded, "{budget:?}");
        world.run_for(60);
        assert_eq!(world.acts(&book("acme")), [SUSPENDED, LIFTED]);
    }
}

#[test]
fn a_person_lifts_it_and_what_was_held_goes() {
    for budget in BUDGETS {
        let world = ruled(Some(1), false, budget);
        turns(&world, Reaction::answer(401));
        to_crm(&world, "first");
        work(&world, 0);
        let keys = many(&world, 0, 5);
        world.run_for(5);
        turns(&world, Reaction::answer(200));
        let (id, _) = its_order(&world);
        let lifting =
            world.block(world.desk().lift(&id, &[book("acme")], "maria", "new credentials")).unwrap();
        assert!(matches!(lifting, HoldAct::Done(_)), "{lifting:?}");
        // As `serve` does every few seconds: no round is needed.
        let Ports { ledger, queue, clock, dice, .. } = &world.ports;
        let round = waybill_service::round::Round { ledger, queue, office: &world.office, clock, dice };
        world.block(round.orders(&world.config_now(), TickLimits::default())).unwrap();
        work(&world, 5);
        assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, 5)]), "{budget:?}");
        assert_eq!(world.acts(&book("acme")), [SUSPENDED, "suspension_lifted by maria"]);
        // It may be suspended again, as another one.
        turns(&world, Reaction::answer(401));
        to_crm(&world, "second");
        work(&world, 0);
        world.round();
        assert_eq!(world.acts(&book("acme")).last().map(String::as_str), Some(SUSPENDED));
        assert_eq!(world.acts(&book("acme")).len(), 3);
    }
}

#[test]
fn a_person_s_lift_that_mended_nothing_is_followed_by_another_suspension() {
    let world = ruled(Some(2), false, None);
    turns(&world, Reaction::answer(401));
    let keys = many(&world, 0, 10);
    work(&world, 5);
    world.round();
    let (id, _) = its_order(&world);
    world.block(world.desk().lift(&id, &[book("acme")], "maria", "I believe so")).unwrap();
    world.run_for(30);
    world.round();
    let lost = states(&world, &keys)[&State::DeadLettered];
    assert_eq!(lost, 4, "the row begins anew");
    assert_eq!(world.acts(&book("acme")).len(), 3);
}

#[test]
fn a_deadline_that_passes_meanwhile_expires_and_is_never_sent() {
    for budget in BUDGETS {
        let world = ruled(Some(1), false, budget);
        turns(&world, Reaction::answer(401));
        to_crm(&world, "first");
        work(&world, 0);
        let fields = json!({ "destination": "crm", "deadline": "2026-01-01T00:00:50Z" });
        let late = publish(&world, "late", fields);
        let other = to_crm(&world, "other");
        world.run_for(180);
        assert_eq!((world.record(&late).state, posts(&world, &late)), (State::Expired, 0), "{budget:?}");
        assert_eq!(posts(&world, &other), 1, "{budget:?}: the probe was another");
    }
}

#[test]
fn other_destinations_and_tenants_go_on() {
    let world = ruled(Some(1), false, None);
    turns(&world, Reaction::answer(401));
    to_crm(&world, "first");
    work(&world, 0);
    for (event, tenant) in [("a", "acme"), ("g", "globex"), ("n", "northwind")] {
        let key = publish(&world, event, json!({ "tenant": tenant }));
        work(&world, 1);
        assert_eq!(world.record(&key).state, State::Succeeded);
    }
    world.round();
    assert!(world.acts(&book("globex")).is_empty());
}

#[test]
fn a_pause_and_a_suspension_keep_back_until_both_are_over() {
    let world = ruled(Some(1), false, Some(2));
    turns(&world, Reaction::answer(401));
    to_crm(&world, "first");
    work(&world, 0);
    let key = to_crm(&world, "held");
    world.run_for(10);
    let rule = waybill_domain::hold::HoldRule::Destination(name("crm"));
    let pausing = world.block(world.desk().place(book("acme"), rule, "maria", "let them work")).unwrap();
    let HoldAct::Done(pause) = pausing else { panic!("{pausing:?}") };
    turns(&world, Reaction::answer(200));
    world.run_for(600);
    assert_eq!(posts(&world, &key), 0, "a pause lets no probe through");
    world.block(world.desk().lift(&pause.id, &[book("acme")], "maria", "done")).unwrap();
    world.run_for(180);
    assert_eq!((world.record(&key).state, posts(&world, &key)), (State::Succeeded, 1));
    assert_eq!(world.acts(&book("acme")).last().map(String::as_str), Some(LIFTED));
}

#[test]
fn rules_that_are_taken_out_of_the_configuration_let_everything_go() {
    for budget in BUDGETS {
        let mut world = ruled(Some(1), false, budget);
        turns(&world, Reaction::answer(401));
        to_crm(&world, "first");
        work(&world, 0);
        let key = to_crm(&world, "held");
        world.run_for(5);
        turns(&world, Reaction::answer(200));
        change(&mut world, |crm| crm.suspension = None);
        world.run_for(70);
        assert_eq!(world.record(&key).state, State::Succeeded, "{budget:?}");
        assert_eq!(world.acts(&book("acme")), [SUSPENDED, LIFTED], "{budget:?}");
        assert!(world.ports.ledger.peek_usage(&name("crm")).usage.health.is_empty(), "{budget:?}");
    }
}

#[test]
fn a_destination_without_rules_costs_no_write_more_and_a_healthy_one_without_a_budget_none() {
    for (after, expected) in [(None, 0), (Some(3), 0)] {
        let world = ruled(after, false, None);
        let keys = many(&world, 0, 20);
        work(&world, 10);
        assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, 20)]));
        assert_eq!(world.ports.ledger.peek_usage(&name("crm")).revision, expected);
    }
    let writes = |after| {
        let world = ruled(after, false, Some(2));
        many(&world, 0, 20);
        work(&world, 10);
        world.ports.ledger.peek_usage(&name("crm")).revision
    };
    assert_eq!(writes(Some(3)), writes(None), "it is told in writes that are made anyway");
}

/// A redrive to a suspended destination needs no order of its own: what it releases is held, gives the
/// probes, and goes when one of them succeeds.
#[test]
fn a_redrive_waits_for_the_destination_by_itself() {
    let world = ruled(Some(2), false, None);
    turns(&world, Reaction::answer(401));
    let keys = many(&world, 0, 2);
    world.run_for(60);
    assert_eq!(states(&world, &keys), BTreeMap::from([(State::DeadLettered, 2)]));
    let reviews = waybill_domain::redrive::Reviews {
        permanent: Some("credentials corrected".to_owned()),
        ..Default::default()
    };
    let order = world.start(&world.plan(crate::world::of("acme"), reviews), "10/s", None);
    world.run_for(10);
    assert!(keys.iter().all(|key| world.record(key).state == State::Retryable));
    assert_eq!(world.ports.recipient.requests().len(), 2 + 1, "one probe");
    turns(&world, Reaction::answer(200));
    world.run_for(900);
    assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, 2)]));
    assert!(world.run_of(&order).is_finished());
}
