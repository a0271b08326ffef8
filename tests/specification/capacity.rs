//! Capacity: what follows from a burst, as a table.

use waybill_domain::capacity::{First, Load, Outlook};
use waybill_domain::time::DurationMs;

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

type Row = (&'static str, fn(&mut Load), u64, Option<u64>, Option<i64>, u64, u64, First);

#[test]
fn backlog_drain_slack_and_what_comes_first() {
    let rows: &[Row] = &[
        // what is changed; backlog, drain in s, slack in s, needed at once, too many, first
        ("as it stands", |_| {}, 36_000, Some(1200), Some(6000), 15, 0, First::Nothing),
        (
            "half of the time",
            |l| l.deadline = DurationMs::from_secs(1800),
            36_000,
            Some(1200),
            Some(600),
            30,
            0,
            First::Page,
        ),
        (
            "to the second",
            |l| l.deadline = DurationMs::from_secs(1200),
            36_000,
            Some(1200),
            Some(0),
            40,
            0,
            First::Page,
        ),
        ("no outage", |l| l.outage = DurationMs::ZERO, 0, Some(0), Some(7200), 10, 0, First::Nothing),
        (
            "each needs two requests",
            |l| l.duplicates_percent = 100.0,
            36_000,
            Some(3600),
            Some(3600),
            30,
            0,
            First::Nothing,
        ),
        (
            "a tenth more requests",
            |l| {
                l.duplicates_percent = 10.0;
                l.concurrency = 44;
            },
            36_000,
            Some(1200),
            Some(6000),
            17,
            0,
            First::Nothing,
        ),
        (
            "too few, and more are borne",
            |l| {
                l.concurrency = 12;
                l.safe_concurrency = 20;
            },
            36_000,
            Some(18_000),
            Some(-10_800),
            15,
            0,
            First::MoreConsumers,
        ),
        (
            "arrivals take all, and more are borne",
            |l| {
                l.concurrency = 10;
                l.safe_concurrency = 15;
            },
            36_000,
            None,
            None,
            15,
            0,
            First::MoreConsumers,
        ),
        (
            "more than is borne",
            |l| {
                l.concurrency = 12;
                l.safe_concurrency = 12;
            },
            36_000,
            Some(18_000),
            Some(-10_800),
            15,
            21_600,
            First::Shed,
        ),
        (
            "a rate bounds it",
            |l| l.rate_per_s = Some(20.0),
            36_000,
            Some(3600),
            Some(3600),
            15,
            0,
            First::Nothing,
        ),
        (
            "a rate bounds requests, of which a tenth are repeats",
            |l| {
                l.rate_per_s = Some(22.0);
                l.duplicates_percent = 10.0;
            },
            36_000,
            Some(3600),
            Some(3600),
            17,
            0,
            First::Nothing,
        ),
        (
            "no outage, and arrivals alone are more than is borne",
            |l| {
                l.outage = DurationMs::ZERO;
                (l.concurrency, l.safe_concurrency) = (8, 9);
            },
            0,
            None,
            None,
            10,
            7200,
            First::Shed,
        ),
        (
            "a rate that is too little, and no consumers help",
            |l| {
                l.rate_per_s = Some(12.0);
                l.safe_concurrency = 80;
            },
            36_000,
            Some(18_000),
            Some(-10_800),
            15,
            21_600,
            First::Shed,
        ),
        (
            "arrivals alone are more than is borne",
            |l| {
                l.concurrency = 5;
                l.safe_concurrency = 5;
            },
            36_000,
            None,
            None,
            15,
            72_000,
            First::Shed,
        ),
    ];
    for (name, change, backlog, drain_s, slack_s, needed_concurrency, too_many, first) in rows {
        let mut load = load();
        change(&mut load);
        let longest_outage_ms = load.outlook().longest_outage_ms;
        let expected = Outlook {
            backlog: *backlog,
            drain_ms: drain_s.map(|s| s * 1000),
            slack_ms: slack_s.map(|s| s * 1000),
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
