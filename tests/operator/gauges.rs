//! What the reconciler's round tells of dead letters and runs, and how redrives ended.

use std::collections::BTreeMap;

use waybill_domain::delivery::Delivery;
use waybill_domain::hold::HoldReason;
use waybill_domain::redrive::Reviews;
use waybill_domain::time::DurationMs;
use waybill_service::ports::{Clock as _, Ports};
use waybill_service::reconcile::TickLimits;
use waybill_service::round::Round;
use waybill_service::schedule::Learned;
use waybill_testkit::conformance::fixture;
use waybill_testkit::scripted::Reaction;

use crate::world::{EXHAUSTED, World, of};

/// Every series and its value, once `work` is done.
fn measured(work: impl FnOnce(&World)) -> BTreeMap<String, f64> {
    crate::measured::measured(|| work(&World::new()))
}

#[test]
fn the_age_of_the_oldest_dead_letter_is_told_in_every_fifth_minute() {
    // How long the older and the younger had waited, how many minutes after a full hour, and what is told.
    let rows: [(&str, &[u64], u64, Option<f64>); 5] = [
        ("none", &[], 5, Some(0.0)),
        ("one", &[120], 5, Some(120_000.0)),
        ("the older of two", &[180, 60], 10, Some(180_000.0)),
        ("another minute", &[60], 6, None),
        ("the full hour", &[60], 60, Some(60_000.0)),
    ];
    for (name, ages_s, minute, expected) in rows {
        let measured = measured(|world| {
            let round_s = minute * 60;
            let mut passed_s = 0;
            for (n, age_s) in ages_s.iter().enumerate() {
                world.pass(round_s - age_s - passed_s);
                passed_s = round_s - age_s;
                world.dead("acme", &format!("evt-{n}"), "books", EXHAUSTED);
            }
            world.pass(round_s - passed_s);
            world.round();
        });
        assert_eq!(measured.get("OldestDeadLetterAge").copied(), expected, "{name}");
        assert_eq!(measured.get("Reconciled"), Some(&1.0), "{name}");
    }
}

#[test]
fn the_age_of_dead_letters_is_looked_up_only_while_the_round_has_time() {
    for (left_s, told) in [(60, Some(&300_000.0)), (0, None)] {
        let measured = measured(|world| {
            world.dead("acme", "evt", "books", EXHAUSTED);
            world.pass(300);
            let Ports { ledger, queue, clock, dice, .. } = &world.ports;
            let round = Round { ledger, queue, office: &world.office, clock, dice };
            let until = Some(clock.now().plus(DurationMs::from_secs(left_s)));
            let limits = TickLimits { until, ..TickLimits::default() };
            world.block(round.run(&world.config_now(), &Learned::default(), limits)).unwrap();
        });
        assert_eq!(measured.get("OldestDeadLetterAge"), told, "{left_s} s left");
    }
}

#[test]
fn redrives_are_told_while_they_run_and_by_how_they_ended() {
    let measured = measured(|world| {
        for n in 0..4 {
            let key = world.dead("acme", &format!("evt-{n}"), "books", EXHAUSTED);
            // One of the four is refused again.
            let reactions = (n == 0).then(|| Reaction::answer(400));
            world.ports.recipient.react(&key.delivery_id, reactions);
        }
        world.pass(1);
        let plan = world.plan(of("acme"), Reviews::default());
        world.start(&plan, "10/s", None);
        world.run_for(60);
    });
    assert_eq!(measured.get("OpenRuns"), Some(&1.0));
    assert_eq!(measured.get(r#"RedriveSuccess_count{destination="other"}"#), Some(&4.0));
    assert_eq!(measured.get(r#"RedriveSuccess_sum{destination="other"}"#), Some(&300.0));
}

#[test]
fn what_a_run_finds_past_its_deadline_is_told_as_expired() {
    let measured = measured(|world| {
        let late = Delivery { deadline: Some(fixture::t(1)), ..fixture::delivery("acme", "late", "books") };
        world.dead_with(late, EXHAUSTED);
        world.dead("acme", "in-time", "books", EXHAUSTED);
        world.pass(2);
        world.start(&world.plan(of("acme"), Reviews::default()), "10/s", None);
        world.round();
    });
    assert_eq!(measured.get(r#"Expired{destination="other"}"#), Some(&1.0));
    assert_eq!(measured.get(r#"AttemptsToEnd_count{destination="other"}"#), Some(&1.0));
}

#[test]
fn no_run_and_nothing_held_are_told_as_none() {
    let measured = measured(|world| world.round());
    assert_eq!(measured.get("OpenRuns"), Some(&0.0));
    for reason in HoldReason::ALL.map(HoldReason::as_str) {
        let series = format!(r#"OldestHeldAge{{reason="{reason}"}}"#);
        assert_eq!(measured.get(&series), Some(&0.0), "{series}");
    }
}
