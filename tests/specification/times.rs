//! Times and spans: how they are reckoned, read and written; IDs that sort by time.

use waybill_domain::identity::{DeliveryKey, ulid};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::build;

fn at(ms: i64) -> TimeMs {
    TimeMs::from_unix_ms(ms)
}

#[test]
fn a_time_is_counted_in_whole_seconds_rounded_down() {
    for (ms, s) in [(0, 0), (999, 0), (1000, 1), (1_767_225_600_001, 1_767_225_600), (-1, -1), (-1000, -1)] {
        assert_eq!(at(ms).as_unix_s(), s, "{ms}");
    }
}

#[test]
fn a_span_is_never_negative_and_holds_at_the_ends() {
    let ms = DurationMs::from_ms;
    assert_eq!(at(5).since(at(2)), ms(3));
    assert_eq!(at(2).since(at(2)), ms(0));
    assert_eq!(at(2).since(at(5)), ms(0));
    assert_eq!(at(i64::MAX).plus(ms(1)), at(i64::MAX));
    assert_eq!(at(i64::MIN).minus(ms(1)), at(i64::MIN));
    assert_eq!(at(10).minus(ms(3)), at(7));
    assert_eq!(ms(u64::MAX).plus(ms(1)), ms(u64::MAX));
    assert_eq!(ms(u64::MAX).times(2), ms(u64::MAX));
    assert_eq!(ms(1500).as_std(), std::time::Duration::from_millis(1500));
    for (of, up) in [(0, 0), (1, 1), (1000, 1), (1001, 2)] {
        assert_eq!(ms(of).whole_secs_up(), up, "{of}");
    }
}

#[test]
fn a_time_is_read_with_its_offset_alone() {
    let good = [
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01T01:00:00.250+01:00", 1_767_225_600_250),
        ("2025-12-31T19:00:00-05:00", 1_767_225_600_000),
    ];
    for (text, ms) in good {
        assert_eq!(TimeMs::parse("deadline", text), Ok(at(ms)), "{text}");
    }
    let bad = [
        ("2026-01-01T00:00:00", "has no offset from UTC"),
        ("tomorrow", "\"tomorrow\" is not a time"),
        ("", "\"\" is not a time"),
    ];
    for (text, fault) in bad {
        let refused = TimeMs::parse("deadline", text).unwrap_err();
        assert_eq!((&*refused.field, &*refused.fault), ("deadline", fault));
        assert!(refused.rule.contains("RFC 3339"));
    }
    let long = TimeMs::parse("deadline", &"x".repeat(500)).unwrap_err();
    assert_eq!(long.fault, format!("{:?} is not a time", "x".repeat(40)));
    assert_eq!(at(1_767_225_600_250).to_string(), "2026-01-01T00:00:00.250Z");
    assert_eq!(at(i64::MAX).to_string(), format!("{} ms", i64::MAX));
}

#[test]
fn a_span_is_a_whole_number_and_one_unit() {
    let good = [
        ("0s", 0),
        ("250ms", 250),
        ("15s", 15_000),
        ("15m", 900_000),
        ("24h", 86_400_000),
        ("7d", 604_800_000),
        ("366d", 366 * 86_400_000),
    ];
    for (text, ms) in good {
        assert_eq!(DurationMs::parse("timeout", text), Ok(DurationMs::from_ms(ms)), "{text}");
    }
    let bad = [
        ("", "\"\" is not a duration"),
        ("s", "\"s\" is not a duration"),
        ("ms", "\"ms\" is not a duration"),
        ("15", "\"15\" is not a duration"),
        ("1.5s", "\"1.5s\" is not a duration"),
        ("-1s", "\"-1s\" is not a duration"),
        ("1 s", "\"1 s\" is not a duration"),
        ("1w", "\"1w\" is not a duration"),
        ("367d", "is longer than 366 days"),
        ("31622400001ms", "is longer than 366 days"),
        ("99999999999999999999d", "is longer than 366 days"),
        ("9999999999999999999h", "is longer than 366 days"),
    ];
    for (text, fault) in bad {
        let refused = DurationMs::parse("timeout", text).unwrap_err();
        assert_eq!((&*refused.field, &*refused.fault), ("timeout", fault), "{text}");
    }
}

#[test]
fn a_span_is_written_for_people() {
    let rows = [
        (0, "0ms"),
        (999, "999ms"),
        (1000, "1s"),
        (2450, "2.4s"),
        (59_999, "59.9s"),
        (60_000, "1m00s"),
        (200_000, "3m20s"),
        (3_599_999, "59m59s"),
        (3_600_000, "1h00m"),
        (18_060_000, "5h01m"),
        (86_399_999, "23h59m"),
        (86_400_000, "1d00h"),
        (183_600_000, "2d03h"),
    ];
    for (ms, text) in rows {
        assert_eq!(DurationMs::from_ms(ms).to_string(), text);
    }
}

#[test]
fn an_id_is_a_ulid_of_its_time_and_sorts_by_it() {
    // The time by the ULID specification: 48 bits in ten digits of Crockford's base 32.
    let rows = [
        (0, "0000000000"),
        (31, "000000000Z"),
        (32, "0000000010"),
        (1_469_918_176_385, "01ARYZ6S41"),
        (281_474_976_710_655, "7ZZZZZZZZZ"),
        (-1, "0000000000"),
    ];
    for (ms, time) in rows {
        let id = ulid("rdr", at(ms), "chance");
        let (prefix, digits) = id.split_once('_').unwrap();
        assert_eq!((prefix, digits.len(), &digits[..10]), ("rdr", 26, time), "{ms}");
        // The first 80 bits of SHA-256("chance").
        assert_eq!(&digits[10..], "DJR9ZSSA6HRTEXQS", "{ms}");
    }
    assert!(ulid("rdr", at(1), "b") < ulid("rdr", at(2), "a"));
    assert_ne!(ulid("rdr", at(1), "b"), ulid("rdr", at(1), "a"));
}

#[test]
fn where_a_delivery_lives_is_written_as_tenant_and_number() {
    let delivery = build::delivery(None);
    let DeliveryKey { tenant, delivery_id } = delivery.key();
    assert_eq!(delivery.key().to_string(), format!("{tenant}/{delivery_id}"));
}
