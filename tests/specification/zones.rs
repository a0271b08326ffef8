//! Schedules where the clocks on the wall jump: each business day is closed once, and none is lost.

use waybill_domain::schedule::{Clocks, Timing};
use waybill_domain::time::TimeMs;

use crate::schedules::check;

#[test]
fn new_york_in_spring_and_autumn() {
    // 2026-03-08: 02:00 EST is 03:00 EDT. 02:30 does not exist, and fires right after the gap.
    check(
        "30 2 * * *",
        "America/New_York",
        "2026-03-07T12:00:00Z",
        "2026-03-09T12:00:00Z",
        &[("2026-03-07", "2026-03-08T07:00:00Z", 1440), ("2026-03-08", "2026-03-09T06:30:00Z", 1380)],
    );
    // 2026-11-01: 02:00 EDT is 01:00 EST. 01:30 exists twice, and fires at the first.
    check(
        "30 1 * * *",
        "America/New_York",
        "2026-10-31T12:00:00Z",
        "2026-11-02T12:00:00Z",
        &[("2026-10-31", "2026-11-01T05:30:00Z", 1440), ("2026-11-01", "2026-11-02T06:30:00Z", 1500)],
    );
    // The edges of the gap: the last minute before it, and its first and last.
    for (cron, at) in [
        ("59 1 * * *", "2026-03-08T06:59:00Z"),
        ("0 2 * * *", "2026-03-08T07:00:00Z"),
        ("59 2 * * *", "2026-03-08T07:00:00Z"),
        ("0 3 * * *", "2026-03-08T07:00:00Z"),
        ("1 3 * * *", "2026-03-08T07:01:00Z"),
    ] {
        let row = [("2026-03-07", at, 1440)];
        check(cron, "America/New_York", "2026-03-08T06:00:00Z", "2026-03-08T08:00:00Z", &row);
    }
}

#[test]
fn london_in_spring_and_autumn() {
    // 2026-03-29: 01:00 GMT is 02:00 BST. 2026-10-25: 02:00 BST is 01:00 GMT.
    check(
        "30 1 * * *",
        "Europe/London",
        "2026-03-28T12:00:00Z",
        "2026-03-30T12:00:00Z",
        &[("2026-03-28", "2026-03-29T01:00:00Z", 1440), ("2026-03-29", "2026-03-30T00:30:00Z", 1380)],
    );
    check(
        "30 1 * * *",
        "Europe/London",
        "2026-10-24T12:00:00Z",
        "2026-10-26T12:00:00Z",
        &[("2026-10-24", "2026-10-25T00:30:00Z", 1440), ("2026-10-25", "2026-10-26T01:30:00Z", 1500)],
    );
}

#[test]
fn sydney_in_spring_and_autumn() {
    // 2026-10-04: 02:00 AEST is 03:00 AEDT. 2026-04-05: 03:00 AEDT is 02:00 AEST.
    check(
        "30 2 * * *",
        "Australia/Sydney",
        "2026-10-03T00:00:00Z",
        "2026-10-05T00:00:00Z",
        &[("2026-10-03", "2026-10-03T16:00:00Z", 1440), ("2026-10-04", "2026-10-04T15:30:00Z", 1380)],
    );
    check(
        "30 2 * * *",
        "Australia/Sydney",
        "2026-04-04T00:00:00Z",
        "2026-04-06T00:00:00Z",
        &[("2026-04-04", "2026-04-04T15:30:00Z", 1440), ("2026-04-05", "2026-04-05T16:30:00Z", 1500)],
    );
}

#[test]
fn lord_howe_moves_by_half_an_hour() {
    // 2026-10-04: 02:00 is 02:30. 2026-04-05: 02:00 is 01:30.
    check(
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-03T00:00:00Z",
        "2026-10-05T00:00:00Z",
        &[("2026-10-03", "2026-10-03T15:30:00Z", 1440), ("2026-10-04", "2026-10-04T15:15:00Z", 1410)],
    );
    check(
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T00:00:00Z",
        "2026-04-06T00:00:00Z",
        &[("2026-04-04", "2026-04-04T14:45:00Z", 1440), ("2026-04-05", "2026-04-05T15:15:00Z", 1470)],
    );
}

#[test]
fn apia_skipped_a_day_and_that_day_is_no_window() {
    // Behind 2011-12-29 came 2011-12-31: the clock of the 30th never ran.
    check(
        "30 2 * * *",
        "Pacific/Apia",
        "2011-12-29T00:00:00Z",
        "2012-01-01T12:00:00Z",
        &[
            ("2011-12-28", "2011-12-29T12:30:00Z", 1440),
            ("2011-12-29", "2011-12-30T10:00:00Z", 1440),
            ("2011-12-31", "2011-12-31T12:30:00Z", 1440),
        ],
    );
}

#[test]
fn a_zone_that_falls_back_over_midnight_closes_a_day_only_once_it_is_over() {
    // Havana, 2023-11-05: 01:00 is 00:00. Santiago, 2026-04-05: 24:00 of the 4th is 23:00 of the 4th.
    check(
        "30 0 * * *",
        "America/Havana",
        "2023-11-04T12:00:00Z",
        "2023-11-06T12:00:00Z",
        &[("2023-11-04", "2023-11-05T04:30:00Z", 1440), ("2023-11-05", "2023-11-06T05:30:00Z", 1500)],
    );
    check(
        "0 0 * * *",
        "America/Santiago",
        "2026-04-04T12:00:00Z",
        "2026-04-06T12:00:00Z",
        &[("2026-04-04", "2026-04-05T04:00:00Z", 1500), ("2026-04-05", "2026-04-06T04:00:00Z", 1440)],
    );
}

#[test]
fn what_comes_next_says_what_the_clocks_do_then() {
    use Clocks::{Repeat, Show, Skip};
    type Row<'a> = (&'a str, &'a str, Clocks);
    let rows: [(&str, &str, &str, &[Row<'_>]); 5] = [
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T07:30:00Z",
            &[("2026-03-07", "2026-03-08T07:00:00Z", Skip), ("2026-03-08", "2026-03-09T06:30:00Z", Show)],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2026-11-01T05:29:59.999Z",
            &[("2026-10-31", "2026-11-01T05:30:00Z", Repeat), ("2026-11-01", "2026-11-02T06:30:00Z", Show)],
        ),
        // The second time that a clock shows it, it has fired.
        (
            "30 1 * * *",
            "America/New_York",
            "2026-11-01T05:30:00Z",
            &[("2026-11-01", "2026-11-02T06:30:00Z", Show)],
        ),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T00:00:00Z",
            &[("2026-10-03", "2026-10-03T15:30:00Z", Skip), ("2026-10-04", "2026-10-04T15:15:00Z", Show)],
        ),
        ("0 0 29 2 *", "UTC", "2026-08-10T06:00:00Z", &[("2028-02-28", "2028-02-29T00:00:00Z", Show)]),
    ];
    for (cron, zone, now, expected) in rows {
        let timing = Timing::parse(cron, zone).unwrap();
        let now = TimeMs::parse("now", now).unwrap();
        let found: Vec<_> = timing.coming(now, 366 * 8).take(expected.len()).collect();
        let found: Vec<_> =
            found.iter().map(|c| (c.window.day.to_string(), c.window.fires_at, c.clocks)).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(day, at, clocks)| ((*day).to_owned(), TimeMs::parse("at", at).unwrap(), *clocks))
            .collect();
        assert_eq!(found, expected, "{cron} in {zone}");
    }
}

#[test]
fn what_comes_is_what_will_have_been_fired_for() {
    for zone in
        ["America/New_York", "Europe/London", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Apia"]
    {
        for from in ["2011-12-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-10-01T00:00:00Z"] {
            let timing = Timing::parse("30 2 * * *", zone).unwrap();
            let from = TimeMs::parse("from", from).unwrap();
            let to = from.plus(waybill_domain::time::DurationMs::from_secs(60 * 86_400));
            let coming = timing.coming(from, 62).map(|coming| coming.window);
            let coming: Vec<_> = coming.take_while(|window| window.fires_at <= to).collect();
            assert_eq!(coming, timing.closed_windows(to.since(from), to), "{zone}");
        }
    }
}
