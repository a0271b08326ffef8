//! When schedules fire, which business day they close, and what they owe.

use waybill_domain::event_template::EventIdTemplate;
use waybill_domain::identity::TenantId;
use waybill_domain::schedule::{LONGEST_CATCH_UP, Timing, Window, owed};
use waybill_domain::time::{DurationMs, TimeMs};

fn t(text: &str) -> TimeMs {
    TimeMs::parse("t", text).unwrap()
}

const fn days(n: u64) -> DurationMs {
    DurationMs::from_secs(n * 86_400)
}

/// Every window that is fired for between two times: the business day, when the schedule fired, and how
/// long the day was, in minutes.
pub(crate) fn fired(cron: &str, zone: &str, from: &str, to: &str) -> Vec<(String, String, u64)> {
    let timing = Timing::parse(cron, zone).unwrap();
    let windows = timing.closed_windows(t(to).since(t(from)), t(to));
    let row = |w: &Window| (w.day.to_string(), w.fires_at.to_string(), w.to.since(w.from).as_ms() / 60_000);
    windows.iter().map(row).collect()
}

#[track_caller]
pub(crate) fn check(cron: &str, zone: &str, from: &str, to: &str, expected: &[(&str, &str, u64)]) {
    let found = fired(cron, zone, from, to);
    let found: Vec<(&str, String, u64)> = found.iter().map(|(d, at, m)| (&**d, at.clone(), *m)).collect();
    let expected: Vec<(&str, String, u64)> =
        expected.iter().map(|(d, at, m)| (*d, t(at).to_string(), *m)).collect();
    assert_eq!(found, expected, "{cron} in {zone}");
}

#[test]
fn months_end_and_leap_days_come() {
    let at = |cron: &str, from: &str, to: &str| -> Vec<String> {
        fired(cron, "UTC", from, to).into_iter().map(|(day, ..)| day).collect()
    };
    assert_eq!(
        at("30 2 * * *", "2028-02-28T00:00:00Z", "2028-03-02T00:00:00Z"),
        ["2028-02-27", "2028-02-28", "2028-02-29"]
    );
    assert_eq!(at("30 2 * * *", "2027-02-28T12:00:00Z", "2027-03-02T00:00:00Z"), ["2027-02-28"]);
    assert_eq!(
        at("30 2 1 * *", "2026-12-15T00:00:00Z", "2027-03-02T00:00:00Z"),
        ["2026-12-31", "2027-01-31", "2027-02-28"]
    );
    assert_eq!(
        at("30 2 31 * *", "2026-01-15T00:00:00Z", "2026-04-02T00:00:00Z"),
        ["2026-01-30", "2026-03-30"]
    );
    assert_eq!(at("0 0 29 2 *", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"), ["2028-02-28"]);
    assert_eq!(
        at("0 0 L * *", "2026-02-01T00:00:00Z", "2026-05-01T00:00:00Z"),
        ["2026-02-27", "2026-03-30", "2026-04-29"]
    );
    assert_eq!(
        at("30 2 * * MON", "2026-08-01T00:00:00Z", "2026-08-16T00:00:00Z"),
        ["2026-08-02", "2026-08-09"]
    );
}

#[test]
fn a_schedule_that_fires_several_times_a_day_closes_the_day_at_the_first() {
    check(
        "*/15 2-4 * * *",
        "UTC",
        "2026-08-10T00:00:00Z",
        "2026-08-11T00:00:00Z",
        &[("2026-08-09", "2026-08-10T02:00:00Z", 1440)],
    );
}

#[test]
fn a_window_is_closed_to_the_millisecond_and_for_as_long_as_it_may_be_caught_up() {
    let timing = Timing::parse("30 2 * * *", "America/New_York").unwrap();
    let fires_at = t("2026-08-10T06:30:00Z");
    let days_at = |now: TimeMs, catch_up: DurationMs| -> Vec<String> {
        timing.closed_windows(catch_up, now).iter().map(|w| w.day.to_string()).collect()
    };
    let ms = DurationMs::from_ms(1);
    assert_eq!(days_at(fires_at.minus(ms), days(1)), ["2026-08-08"]);
    assert_eq!(days_at(fires_at, days(1)), ["2026-08-09"]);
    assert_eq!(
        days_at(fires_at.plus(days(3)), days(3).plus(ms)),
        ["2026-08-09", "2026-08-10", "2026-08-11", "2026-08-12"]
    );
    assert_eq!(timing.closed_windows(LONGEST_CATCH_UP, fires_at).len(), 89);
}

/// C113: at fall-back no hour is without a window's firing being seen; the interval is of real time.
#[test]
fn c113_a_minute_s_ticks_see_the_same_windows_whatever_the_clocks_on_the_wall_do() {
    for zone in ["Europe/London", "Europe/Berlin"] {
        let timing = Timing::parse("30 1 * * *", zone).unwrap();
        let mut seen = Vec::new();
        for minute in 0..180 {
            let now = t("2026-10-24T23:00:00Z").plus(DurationMs::from_secs(60 * minute));
            for window in timing.closed_windows(DurationMs::from_secs(60), now) {
                seen.push((window.day.to_string(), now.since(window.fires_at)));
            }
        }
        assert_eq!(seen, [("2026-10-24".to_owned(), DurationMs::ZERO)], "{zone}");
    }
}

#[test]
fn a_pattern_or_a_zone_that_cannot_be_is_refused() {
    for (cron, zone, field, fault) in [
        ("30 2 * *", "UTC", "cron", "has not five fields"),
        ("0 30 2 * * *", "UTC", "cron", "has not five fields"),
        ("@daily", "UTC", "cron", "has not five fields"),
        ("61 2 * * *", "UTC", "cron", "minute \"61\""),
        ("30 2 * * XYZ", "UTC", "cron", "day of week \"XYZ\""),
        ("30 2 30 2 *", "UTC", "cron", "names no day that ever comes"),
        ("30 2 * * *", "Mars/Olympus", "timezone", "\"Mars/Olympus\" is not a time zone"),
        ("30 2 * * *", "", "timezone", "\"\" is not a time zone"),
        ("30 2 * * *", "../etc/passwd", "timezone", "\"../etc/passwd\" is not a time zone"),
    ] {
        let invalid = Timing::parse(cron, zone).unwrap_err();
        assert_eq!(invalid.field, field, "{cron} {zone}");
        assert!(invalid.fault.starts_with(fault), "{cron} {zone}: {}", invalid.fault);
    }
}

/// Windows of four days in a row, and of each whether it has its delivery.
fn windows(published: [bool; 4]) -> Vec<(Window, bool)> {
    let timing = Timing::parse("30 2 * * *", "UTC").unwrap();
    let windows = timing.closed_windows(days(4), t("2026-08-14T00:00:00Z"));
    windows.into_iter().zip(published).collect()
}

#[test]
fn a_schedule_owes_what_has_no_delivery_since_it_is_in_force() {
    let day = |n: u32| format!("2026-08-{n:02}");
    // Fired at 02:30 on the 10th, 11th, 12th and 13th for the days before.
    for (says, published, applied_at, owes) in [
        ("always in force", [false; 4], None, vec![day(9), day(10), day(11), day(12)]),
        (
            "applied before them all",
            [false; 4],
            Some("2026-08-09T12:00:00Z"),
            vec![day(9), day(10), day(11), day(12)],
        ),
        (
            "new: starts with its first window",
            [false; 4],
            Some("2026-08-11T12:00:00Z"),
            vec![day(11), day(12)],
        ),
        ("applied at the very firing: after it", [false; 4], Some("2026-08-12T02:30:00Z"), vec![day(12)]),
        ("applied just now", [false; 4], Some("2026-08-13T23:00:00Z"), vec![]),
        (
            "changed after a missed night",
            [true, false, false, true],
            Some("2026-08-13T23:00:00Z"),
            vec![day(10), day(11)],
        ),
        (
            "changed after three missed nights",
            [true, false, false, false],
            Some("2026-08-13T23:00:00Z"),
            vec![day(10), day(11), day(12)],
        ),
        (
            "what lies before its beginning stays",
            [false, true, false, true],
            Some("2026-08-13T23:00:00Z"),
            vec![day(11)],
        ),
        ("nothing is missing", [true; 4], None, vec![]),
    ] {
        let owed = owed(&windows(published), None, applied_at.map(t));
        let owed: Vec<String> = owed.iter().map(|window| window.day.to_string()).collect();
        assert_eq!(owed, owes, "{says}");
    }
}

/// Where it is known since when a schedule is in force, nothing else counts.
#[test]
fn a_schedule_owes_what_it_fired_for_since_it_is_known_to_be_in_force() {
    let day = |n: u32| format!("2026-08-{n:02}");
    for (says, published, since, owes) in [
        ("before them all", [false; 4], "2026-08-09T12:00:00Z", vec![day(9), day(10), day(11), day(12)]),
        ("at the very firing: after it", [false; 4], "2026-08-11T02:30:00Z", vec![day(11), day(12)]),
        ("just before a firing", [false; 4], "2026-08-11T02:29:59.999Z", vec![day(10), day(11), day(12)]),
        (
            "some have their deliveries",
            [true, false, true, false],
            "2026-08-09T12:00:00Z",
            vec![day(10), day(12)],
        ),
        ("older ones do not count", [true, false, false, true], "2026-08-12T12:00:00Z", vec![]),
    ] {
        for applied_at in [None, Some(t("2026-08-13T23:00:00Z")), Some(t("2026-08-01T00:00:00Z"))] {
            let owed = owed(&windows(published), Some(t(since)), applied_at);
            let owed: Vec<String> = owed.iter().map(|window| window.day.to_string()).collect();
            assert_eq!(owed, owes, "{says}, {applied_at:?}");
        }
    }
}

#[test]
fn a_timing_is_its_pattern_and_its_zone() {
    let timing = |cron, zone| Timing::parse(cron, zone).unwrap();
    let nightly = timing("30 2 * * *", "America/New_York");
    assert_eq!(nightly.to_string(), "30 2 * * * in America/New_York");
    assert_eq!(nightly, timing("30 2 * * *", "America/New_York"));
    assert_ne!(nightly, timing("31 2 * * *", "America/New_York"));
    assert_ne!(nightly, timing("30 2 * * *", "Europe/London"));
}

/// A February has a fifth Monday once in 28 years: in 2044 the next time.
#[test]
fn a_day_that_comes_once_in_28_years_comes() {
    let fired = fired("0 0 * 2 MON#5", "UTC", "2043-12-01T00:00:00Z", "2044-03-01T00:00:00Z");
    assert_eq!(fired, [("2044-02-28".to_owned(), "2044-02-29T00:00:00.000Z".to_owned(), 1440)]);
}

#[test]
fn an_event_id_is_one_for_each_tenant_and_window() {
    let tenant = TenantId::parse("acme").unwrap();
    let window = windows([false; 4])[0].0;
    for (template, event_id) in [
        ("{schedule}:{tenant}:{window}", "nightly:acme:2026-08-09"),
        ("{tenant}:{window}", "acme:2026-08-09"),
        ("{window}", "2026-08-09"),
    ] {
        let read = EventIdTemplate::parse("event_id", template, "nightly").unwrap();
        assert_eq!(read.fill(&tenant, window.day).as_str(), event_id);
        assert_eq!(read.to_string(), template, "it is shown as it was written");
    }
    for (template, fault) in [
        ("{tenant}", "has no {window}: every window would have the same delivery"),
        ("{day}:{window}", "has a brace that belongs to none of {schedule}, {tenant} and {window}"),
    ] {
        assert_eq!(EventIdTemplate::parse("event_id", template, "nightly").unwrap_err().fault, fault);
    }
    let long = format!("{}{{tenant}}{{window}}", "x".repeat(200));
    assert!(EventIdTemplate::parse("event_id", &long, "nightly").is_err());
}

#[test]
fn templates_that_could_meet_are_told_from_those_that_cannot() {
    let tenant = TenantId::parse("acme").unwrap();
    for (a, b, meet) in [
        ("{schedule}:{window}", "{schedule}:{window}", false),
        ("{tenant}:{window}", "{tenant}:{window}", true),
        ("{tenant}:{window}", "acme:{window}", true),
        ("{tenant}:{window}", "{tenant}-{window}", false),
        ("{window}", "2026-08-{window}", false),
        ("{window}:1", "{window}:{schedule}", false),
        ("x{window}", "{window}x", false),
    ] {
        let a = EventIdTemplate::parse("event_id", a, "one").unwrap();
        let b = EventIdTemplate::parse("event_id", b, "two").unwrap();
        assert_eq!(a.may_meet(&b, &tenant), meet, "{a} and {b}");
        assert_eq!(b.may_meet(&a, &tenant), meet, "{b} and {a}");
    }
}
