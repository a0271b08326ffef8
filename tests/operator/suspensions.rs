//! Suspensions: what a destination could only refuse is held, operators see one act for the beginning, and
//! whoever has nothing to do with it goes on.

use std::collections::BTreeMap;

use serde_json::json;
use waybill_domain::delivery::State;
use waybill_domain::hold::HoldReason;
use waybill_service::desk::Desk as Budgets;
use waybill_testkit::scripted::Reaction;

use crate::publishing::{publish, work};
use crate::redrive::states;
use crate::suspended::{
    BUDGETS, LIFTED, SUSPENDED, held, is_suspended, its_order, many, name, ruled, sent_s, to_crm, turns,
};
use crate::world::{World, book};

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

#[test]
fn what_waited_goes_with_the_success_of_a_probe_and_waits_for_no_further_round() {
    for budget in BUDGETS {
        let world = ruled(Some(2), false, budget);
        turns(&world, Reaction::answer(401));
        many(&world, 0, 2);
        work(&world, 5);
        assert!(is_suspended(&world), "{budget:?}");
        let waiting = many(&world, 2, 8);
        work(&world, 5);
        assert!(waiting.iter().all(|key| held(&world, key) == Some(HoldReason::Suspended)), "{budget:?}");

        turns(&world, Reaction::answer(200));
        let mut rounds = 0;
        while is_suspended(&world) {
            world.round();
            work(&world, 60);
            rounds += 1;
            assert!(rounds < 500, "{budget:?}: no probe went");
        }
        // The round that chose the probe was the last.
        assert!(waiting.iter().all(|key| world.record(key).state == State::Succeeded), "{budget:?}");
    }
}
