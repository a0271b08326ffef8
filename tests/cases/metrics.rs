//! Metrics: what each instrument counts, and that no label grows with what comes in.

use std::collections::{BTreeMap, BTreeSet};

use waybill_domain::address::Locality;
use waybill_domain::budget::{Budget, Rate};
use waybill_domain::hold::HoldRule;
use waybill_domain::outcome::FailureClass;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::Config;
use waybill_service::config_file;
use waybill_service::consume::Verdict;
use waybill_service::ports::Clock as _;
use waybill_testkit::scripted::Reaction;

use crate::world::{CONFIG, World, event, with};

/// A world in which metrics name `accounting` and nobody else.
fn world() -> World {
    let named = CONFIG.replace("[destinations.accounting]", "[destinations.accounting]\nmetrics = true");
    World { config: config_file::parse(&named, Locality::PublicOnly).unwrap(), ..World::new() }
}

/// Every series and its value, once `work` is done.
fn measured(work: impl FnOnce(&World)) -> BTreeMap<String, f64> {
    crate::measured::measured(|| work(&world()))
}

fn check(name: &str, work: impl FnOnce(&World), expected: &[(&str, f64)]) {
    let measured = measured(work);
    for (series, value) in expected {
        assert_eq!(measured.get(*series), Some(value), "{name}: {series} in {measured:#?}");
    }
    let counted = |series: &&String| {
        !series.contains("_bucket") && !series.contains("_sum") && !series.contains("_count")
    };
    let counted: BTreeSet<&str> = measured
        .iter()
        .filter(|(_, value)| **value > 0.0)
        .map(|(series, _)| series)
        .filter(counted)
        .map(String::as_str)
        .collect();
    let meant = expected
        .iter()
        .map(|(series, _)| *series)
        .filter(|series| !series.contains("_sum") && !series.contains("_count"));
    assert_eq!(counted, meant.collect(), "{name}: and nothing else is counted");
}

#[test]
fn what_needed_no_second_attempt_and_no_redrive_tells_nothing_of_them() {
    let measured = measured(|world| {
        world.published(&event("e"), []);
        world.work_until_quiet();
    });
    for series in ["RetryToSuccess", "RetryAge", "RedriveSuccess", "RetryScheduled"] {
        assert!(!measured.keys().any(|key| key.starts_with(series)), "{series} in {measured:#?}");
    }
}

#[test]
fn what_was_claimed_and_not_sent_is_no_retry() {
    let measured = measured(|world| {
        world.published(&event("e"), []);
        crate::lines::sleep_over_the_claim(world);
    });
    assert!(!measured.keys().any(|key| key.starts_with("RetryScheduled")), "{measured:#?}");
}

#[test]
fn each_decision_is_counted_once() {
    let deadline = |world: &World, s: u64| {
        let at = waybill_service::ports::Clock::now(&world.clock).plus(DurationMs::from_secs(s));
        with("e", &format!(r#""deadline":"{at}""#))
    };
    let failing = || Reaction::answer(500);
    check(
        "a success at once",
        |world| {
            world.published(&event("e"), []);
            world.work_until_quiet();
        },
        &[
            (r#"Delivered{destination="accounting"}"#, 1.0),
            (r#"AttemptsToEnd_sum{destination="accounting"}"#, 1.0),
            (r#"AttemptDuration_count{destination="accounting"}"#, 1.0),
        ],
    );
    check(
        "two failures and a success",
        |world| {
            world.published(&event("e"), [failing(), Reaction::answer(429)]);
            world.work_until_quiet();
        },
        &[
            (r#"Delivered{destination="accounting"}"#, 1.0),
            (r#"RetryScheduled{destination="accounting"}"#, 2.0),
            (r#"RateLimited{destination="accounting"}"#, 1.0),
            (r#"RetryToSuccess_count{destination="accounting"}"#, 1.0),
            (r#"RetryAge_count{destination="accounting"}"#, 2.0),
            // Half of 1 s and half of 2 s, each in whole seconds of the queue.
            (r#"RetryAge_sum{destination="accounting"}"#, 3_000.0),
            (r#"AttemptsToEnd_sum{destination="accounting"}"#, 3.0),
        ],
    );
    check(
        "refused for good",
        |world| {
            world.published(&event("e"), [Reaction::answer(400)]);
            world.work_until_quiet();
        },
        &[
            (r#"PermanentlyRejected{destination="accounting"}"#, 1.0),
            (
                &format!(
                    r#"DeadLettered{{destination="accounting",reason="{}"}}"#,
                    FailureClass::PayloadRejected.as_str()
                ),
                1.0,
            ),
        ],
    );
    check(
        "given up",
        |world| {
            world.published(&event("e"), std::iter::repeat_with(failing).take(7));
            world.work_until_quiet();
        },
        &[
            (r#"RetryScheduled{destination="accounting"}"#, 6.0),
            (r#"DeadLettered{destination="accounting",reason="attempts_exhausted"}"#, 1.0),
            (r#"AttemptsToEnd_sum{destination="accounting"}"#, 7.0),
        ],
    );
    check(
        "in time, with a minute left",
        |world| {
            world.published(&deadline(world, 60), []);
            world.work_until_quiet();
        },
        &[
            (r#"Delivered{destination="accounting"}"#, 1.0),
            (r#"DeadlineSlack_sum{destination="accounting"}"#, 60_000.0),
        ],
    );
    check(
        "nobody worked until its deadline, and its message comes",
        |world| {
            world.published(&deadline(world, 60), []);
            world.clock.advance(DurationMs::from_secs(61));
            world.work_until_quiet();
        },
        &[
            (r#"Expired{destination="accounting"}"#, 1.0),
            (r#"AttemptsToEnd_sum{destination="accounting"}"#, 0.0),
        ],
    );
    check(
        "nobody worked until its deadline, and the reconciler sees it",
        |world| {
            world.published(&deadline(world, 60), []);
            world.clock.advance(DurationMs::from_secs(61));
            world.reconcile();
        },
        &[(r#"Expired{destination="accounting"}"#, 1.0), ("OldestDueAge", 61_000.0)],
    );
    check(
        "a message that comes again after the success",
        |world| {
            world.published(&event("e"), []);
            let message = world.receive().remove(0);
            world.consume(&message.message_id, &message.body);
            world.consume(&message.message_id, &message.body);
        },
        &[
            (r#"Delivered{destination="accounting"}"#, 1.0),
            (r#"DuplicateSuppressed{destination="accounting"}"#, 1.0),
        ],
    );
    check(
        "everything is held",
        |world| {
            let config = waybill_service::config::Config {
                holds: vec![waybill_domain::hold::HoldRule::All],
                ..world.config.clone()
            };
            let world = World { config, ..World::new() };
            world.published(&event("e"), []);
            world.work_until_quiet();
        },
        &[(r#"Held{destination="accounting",reason="gate"}"#, 1.0)],
    );
}

/// The least slack is of everything that is open, held or not; a day stands for "no deadline is near".
#[test]
fn the_slack_of_the_nearest_open_delivery_is_told_by_each_round() {
    const DAY: f64 = 86_400_000.0;
    // Deadlines in seconds from publish, 0 for none; looked at 101 s after it, at what came into the rescue
    // window of ten minutes.
    let rows: [(&str, &[u64], bool, f64); 6] = [
        ("nothing is open", &[], false, DAY),
        ("nothing has a deadline", &[0], false, DAY),
        ("the nearer of two", &[700, 640], false, 539_000.0),
        ("what is held counts", &[700], true, 599_000.0),
        ("further away than the rescue window", &[7200], false, DAY),
        ("passed", &[30], false, 0.0),
    ];
    for (name, deadlines_s, held, expected) in rows {
        let measured = measured(|world| {
            let config = Config { holds: vec![HoldRule::All], ..world.config.clone() };
            let world = if held { &World { config, ..World::new() } } else { world };
            for (n, deadline_s) in deadlines_s.iter().enumerate() {
                let at = world.clock.now().plus(DurationMs::from_secs(*deadline_s));
                let field = if *deadline_s > 0 { format!(r#""deadline":"{at}""#) } else { String::new() };
                world.published(&with(&format!("e{n}"), &field), []);
            }
            if held {
                world.work_until_quiet();
            }
            world.clock.advance(DurationMs::from_secs(101));
            world.reconcile();
        });
        assert_eq!(measured.get("LeastDeadlineSlack"), Some(&expected), "{name}");
        let held_ms = if held { 101_000.0 } else { 0.0 };
        assert_eq!(measured.get(r#"OldestHeldAge{reason="gate"}"#), Some(&held_ms), "{name}");
        assert_eq!(measured.get(r#"OldestHeldAge{reason="paused"}"#), Some(&0.0), "{name}");
    }
}

/// A bounded destination lets a few go in a round and keeps the rest: what is found of both is told.
#[test]
fn the_slack_and_the_age_of_what_waits_for_a_budget_are_told_by_each_round() {
    // Deadlines in seconds from publish, the later one first; how long after it the round looks; the least
    // slack, and how many then have gone besides the first.
    let rows: [(&str, [u64; 2], u64, u64, usize); 4] = [
        ("nothing may go yet", [14_400, 7200], 30, 7170, 0),
        ("one goes", [14_400, 7200], 3590, 3610, 1),
        ("one is lost, and another goes", [14_400, 80], 3590, 0, 1),
        ("all are lost", [85, 80], 3590, 0, 0),
    ];
    for (name, deadlines_s, after_s, slack_s, gone) in rows {
        let measured = measured(|world| {
            let world = World { config: world.config.clone(), ..World::new() }
                .with("accounting", |it| it.budget = Budget::of(None, Rate::parse("rate", "1/h").ok()));
            let begun = world.clock.now();
            world.published(&event("first"), []);
            let messages = world.receive();
            messages.iter().for_each(|message| assert_eq!(world.work(message), Verdict::Acknowledge));
            let mut waiting = Vec::new();
            for (n, deadline_s) in deadlines_s.into_iter().enumerate() {
                let at = begun.plus(DurationMs::from_secs(deadline_s));
                waiting.push(world.published(&with(&format!("e{n}"), &format!(r#""deadline":"{at}""#)), []));
            }
            let messages = world.receive();
            messages.iter().for_each(|message| assert_eq!(world.work(message), Verdict::Acknowledge));
            assert!(waiting.iter().all(|id| world.record(id).hold.is_some()), "{name}: held");
            world.clock.set(begun.plus(DurationMs::from_secs(after_s)));
            assert_eq!(world.reconcile().lifted, gone, "{name}");
        });
        let ms = |seconds: u64| seconds as f64 * 1000.0;
        assert_eq!(measured.get("LeastDeadlineSlack"), Some(&ms(slack_s)), "{name}");
        assert_eq!(measured.get(r#"OldestHeldAge{reason="budget"}"#), Some(&ms(after_s)), "{name}");
    }
}

/// Counted from the firing, not from when somebody came to publish it; and for schedules' deliveries alone.
#[test]
fn what_a_schedule_published_is_measured_from_its_firing() {
    let scheduled = CONFIG.replace(
        "[destinations.accounting]",
        "[schedules.nightly]\ncron = \"30 2 * * *\"\ntimezone = \"UTC\"\ntenants = [\"acme\"]\n\
         destination = \"accounting\"\ntype = \"lease.paid\"\nevent_id = \"{tenant}:{window}\"\n\
         catch_up = \"7d\"\npayload = {}\n[destinations.accounting]\nmetrics = true",
    );
    let measured = measured(|_| {
        let config = config_file::parse(&scheduled, Locality::PublicOnly).unwrap();
        let world = World { config, ..World::new() };
        world.clock.set(TimeMs::parse("t", "2026-08-12T03:00:00Z").unwrap());
        // By hand, under its ID: 48 h 30 min after it fired; and one of nobody's.
        for id in ["acme:2026-08-09", "acme:by-hand"] {
            world.published(&event(id), [Reaction::answer(500)]);
        }
        world.work_until_quiet();
    });
    let retried = 1_000.0;
    assert_eq!(measured.get(r#"ScheduleToResult_count{destination="accounting"}"#), Some(&1.0));
    let took = 48.5 * 3_600_000.0 + retried;
    assert_eq!(measured.get(r#"ScheduleToResult_sum{destination="accounting"}"#), Some(&took));
}

#[test]
fn c119_a_thousand_deliveries_make_no_more_series_than_ten() {
    let deliver = |count: usize| {
        move |world: &World| {
            for n in 0..count {
                let text = event(&format!("event-{n}"));
                let id = world.published(&text, [Reaction::answer(500)]);
                assert!(!id.as_str().is_empty());
                // To a destination that metrics do not name, too.
                let crm = text.replace("\"destination\":\"accounting\"", "\"destination\":\"crm\"");
                world.published(&crm, []);
            }
            world.work_until_quiet();
        }
    };
    let series = |count| measured(deliver(count)).into_keys().collect::<BTreeSet<_>>();
    let (few, many) = (series(10), series(1_000));
    assert_eq!(few, many);
    assert!(few.contains(r#"Delivered{destination="accounting"}"#), "{few:#?}");
    assert!(few.contains(r#"Delivered{destination="other"}"#), "{few:#?}");
    let secret = ["acme", "crm", "whd_", "event-", "example.com", "http"];
    assert!(!few.iter().any(|series| secret.iter().any(|bad| series.contains(bad))), "{few:#?}");
}
