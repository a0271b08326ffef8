//! Capacity: what follows from a burst, as a table.

use waybill_domain::capacity::{First, Load, Outlook};
use waybill_domain::time::DurationMs;

use crate::build::secs;

/// 10 a second, an hour down, a second each, 40 at once, and two hours to the deadline: 36,000 wait, 30 a
/// second of them drain, 20 minutes.
fn load() -> Load {
    Load {
        arrivals_per_s: 10.0,
        outage: DurationMs::from_secs(3600),
        service_time: DurationMs::from_secs(1),
        concurrency: 40,
        safe_concurrency: 40,
        rate_per_s: None,
        duplicates_percent: 0.0,
        deadline: DurationMs::from_secs(7200),
    }
}

#[test]
fn backlog_drain_slack_and_what_comes_first() {
    use First::*;
    let as_it_stands = load();
    let due_in = |deadline_s| Load { deadline: secs(deadline_s), ..as_it_stands };
    let repeats = |duplicates_percent, concurrency| Load { duplicates_percent, concurrency, ..as_it_stands };
    let at_once = |concurrency, safe_concurrency| Load { concurrency, safe_concurrency, ..as_it_stands };
    let rate = |per_s, safe_concurrency| Load { rate_per_s: Some(per_s), safe_concurrency, ..as_it_stands };
    type Row = (&'static str, Load, u64, Option<(u64, i64)>, u64, u64, First);
    let rows: &[Row] = &[
        // load; backlog, drain and slack in s, needed at once, too many, first
        ("as it stands", as_it_stands, 36_000, Some((1200, 6000)), 15, 0, Nothing),
        ("half of the time", due_in(1800), 36_000, Some((1200, 600)), 30, 0, Page),
        ("to the second", due_in(1200), 36_000, Some((1200, 0)), 40, 0, Page),
        ("no outage", Load { outage: secs(0), ..as_it_stands }, 0, Some((0, 7200)), 10, 0, Nothing),
        ("each needs two requests", repeats(100.0, 40), 36_000, Some((3600, 3600)), 30, 0, Nothing),
        ("a tenth more requests", repeats(10.0, 44), 36_000, Some((1200, 6000)), 17, 0, Nothing),
        ("too few, more are borne", at_once(12, 20), 36_000, Some((18_000, -10_800)), 15, 0, MoreConsumers),
        ("arrivals take all, more are borne", at_once(10, 15), 36_000, None, 15, 0, MoreConsumers),
        ("more than is borne", at_once(12, 12), 36_000, Some((18_000, -10_800)), 15, 21_600, Shed),
        ("a rate bounds it", rate(20.0, 40), 36_000, Some((3600, 3600)), 15, 0, Nothing),
        ("consumers help no rate", rate(12.0, 80), 36_000, Some((18_000, -10_800)), 15, 21_600, Shed),
        ("arrivals alone are more than is borne", at_once(5, 5), 36_000, None, 15, 72_000, Shed),
        (
            "a rate bounds requests, of which a tenth are repeats",
            Load { duplicates_percent: 10.0, ..rate(22.0, 40) },
            36_000,
            Some((3600, 3600)),
            17,
            0,
            Nothing,
        ),
        (
            "no outage, and arrivals alone are more than is borne",
            Load { outage: secs(0), ..at_once(8, 9) },
            0,
            None,
            10,
            7200,
            Shed,
        ),
    ];
    for (name, load, backlog, drain_and_slack_s, needed_concurrency, too_many, first) in rows {
        let longest_outage_ms = load.outlook().longest_outage_ms;
        let expected = Outlook {
            backlog: *backlog,
            drain_ms: drain_and_slack_s.map(|(drain_s, _)| drain_s * 1000),
            slack_ms: drain_and_slack_s.map(|(_, slack_s)| slack_s * 1000),
            needed_concurrency: *needed_concurrency,
            longest_outage_ms,
            too_many: *too_many,
            first: *first,
        };
        assert_eq!(load.outlook(), expected, "{name}");
    }
}

#[test]
fn with_the_needed_concurrency_nothing_is_late_and_with_one_less_something_is() {
    for deadline_s in [60, 600, 1799, 7200, 86_400] {
        for duplicates_percent in [0.0, 3.0, 50.0] {
            let base = Load { deadline: DurationMs::from_secs(deadline_s), duplicates_percent, ..load() };
            let needed = u32::try_from(base.outlook().needed_concurrency).unwrap();
            let slack = |concurrency| Load { concurrency, ..base }.outlook().slack_ms;
            assert!(slack(needed).is_some_and(|ms| ms >= 0), "{deadline_s} {duplicates_percent}");
            assert!(slack(needed - 1).is_none_or(|ms| ms < 0), "{deadline_s} {duplicates_percent}");
        }
    }
}

#[test]
fn an_outage_of_the_longest_length_leaves_no_slack() {
    let longest = DurationMs::from_ms(load().outlook().longest_outage_ms);
    assert_eq!(longest, DurationMs::from_secs(8100));
    let to_the_deadline = load().outage.as_ms() + load().deadline.as_ms() - longest.as_ms();
    let then = Load { outage: longest, deadline: DurationMs::from_ms(to_the_deadline), ..load() };
    assert_eq!(then.outlook().slack_ms, Some(0));
}

#[test]
fn the_course_bends_where_the_recipient_is_back_and_where_nothing_waits() {
    let at = |load: Load| load.course().iter().map(|m| (m.at_s, m.backlog, m.slack_s)).collect::<Vec<_>>();
    assert_eq!(at(load()), [(0.0, 0.0, 10_800.0), (3600.0, 36_000.0, 6000.0), (4800.0, 0.0, 6000.0)]);
    let late = Load { deadline: DurationMs::from_secs(600), ..load() };
    assert_eq!(at(late), [(0.0, 0.0, 4200.0), (3600.0, 36_000.0, -600.0), (4200.0, 18_000.0, -600.0)]);
    assert_eq!(at(Load { concurrency: 10, ..load() }), []);
}
