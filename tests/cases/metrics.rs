//! Metrics: what each instrument counts, and that no label grows with what comes in.

use std::collections::{BTreeMap, BTreeSet};

use metrics_exporter_prometheus::PrometheusBuilder;
use waybill_domain::address::Locality;
use waybill_domain::outcome::FailureClass;
use waybill_domain::time::DurationMs;
use waybill_service::config_file;
use waybill_testkit::scripted::Reaction;

use crate::world::{CONFIG, World, event, with};

/// A world in which metrics name `accounting` and nobody else.
fn world() -> World {
    let named = CONFIG.replace("[destinations.accounting]", "[destinations.accounting]\nmetrics = true");
    World { config: config_file::parse(&named, Locality::PublicOnly).unwrap(), ..World::new() }
}

/// Every series and its value, once `work` is done.
fn measured(work: impl FnOnce(&World)) -> BTreeMap<String, f64> {
    let recorder = PrometheusBuilder::new().set_buckets(&[1e9]).unwrap().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || work(&world()));
    let text = handle.render();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, n)| (name.to_owned(), n.parse().unwrap()))
        .collect()
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
