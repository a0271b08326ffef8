//! How suspensions end: a probe finds out when the destination takes something again, or a person lifts it;
//! and operators see one act for the end.

use std::collections::BTreeMap;

use serde_json::json;
use waybill_domain::delivery::State;
use waybill_domain::identity::DeliveryKey;
use waybill_domain::policy::{Policy, PolicyTerms};
use waybill_service::holds::HoldAct;
use waybill_service::ports::Ports;
use waybill_service::reconcile::TickLimits;
use waybill_testkit::scripted::Reaction;

use crate::publishing::{posts, publish, work};
use crate::redrive::states;
use crate::suspended::{
    BUDGETS, LIFTED, SUSPENDED, change, its_order, many, name, ruled, sent_s, to_crm, turns,
};
use crate::world::book;

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
