//! A destination's rate: how soon the next may start, and what is reserved ahead.

use waybill_domain::budget::{Rate, Usage};

use crate::budgets::{LEASE, Step, check, delivery, ms, paced, token, wanted};
use crate::build::T0;

#[test]
fn starts_are_paced_and_a_pause_saves_up_one_spans_worth() {
    use Step::*;
    check(
        "a bucket of four",
        paced(100, "4/s"),
        &[
            Take("a b c d e", "a b c d"),
            At(249),
            Take("e", ""),
            At(250),
            Take("e f", "e"),
            At(60_000),
            Take("g h i j k", "g h i j"),
        ],
    );
    check(
        "to the next whole millisecond",
        paced(100, "3/s"),
        &[Take("a b c d", "a b c"), At(333), Take("d", ""), At(334), Take("d", "d")],
    );
    check(
        "a slot given back is no start given back",
        paced(1, "1/m"),
        &[Take("a", "a"), Release("a"), Take("b", ""), At(59_999), Take("b", ""), At(60_000), Take("b", "b")],
    );
    check(
        "a repeated write is charged once",
        paced(9, "2/s"),
        &[Take("a", "a"), Take("a", "a"), Take("b c", "b")],
    );
    check(
        "what was reserved was charged",
        paced(9, "2/s"),
        &[Reserve("a", Some(0)), Take("a", "a"), Take("b c", "b")],
    );
    check("a refusal costs nothing", paced(1, "2/s"), &[Take("a b b b", "a"), Release("a"), Take("c", "c")]);
}

#[test]
fn a_start_is_reserved_ahead_so_that_the_next_release_has_a_cause() {
    use Step::*;
    check(
        "beyond the reconciler's next round, where nobody else is under way",
        paced(9, "1/m"),
        &[Take("a", "a"), Release("a"), Reserve("b", Some(60_000)), Reserve("c", None)],
    );
    check(
        "no further, so that another rate is not waited for long",
        paced(9, "1/h"),
        &[
            Take("a", "a"),
            Release("a"),
            At(3_509_999),
            Reserve("b", None),
            At(3_510_000),
            Reserve("b", Some(3_600_000)),
        ],
    );
    check(
        "a moment ahead, where somebody is",
        paced(9, "2/s"),
        &[Take("a b", "a b"), Reserve("c", Some(500)), Reserve("d", Some(1000)), Reserve("e", None)],
    );
    check(
        "a clock that was wrong by a day is not believed for long",
        paced(9, "1/m"),
        &[At(86_400_000), Take("a", "a"), Release("a"), At(0), Reserve("b", Some(0))],
    );
    // A minute beyond the longest time ahead for which a start is reserved.
    let told_by_a_clock_ahead_by =
        |ahead_ms, granted| [At(ahead_ms), Take("a", "a"), Release("a"), At(0), Take("b", granted)];
    check("ahead by what may be", paced(9, "1/m"), &told_by_a_clock_ahead_by(150_000, ""));
    check("ahead by more", paced(9, "1/m"), &told_by_a_clock_ahead_by(150_001, "b"));
}

#[test]
fn another_rate_forgets_what_the_old_one_would_have_asked_to_wait_for() {
    let (slow, fast) = (paced(4, "1/m"), paced(4, "50/s"));
    let mut usage = Usage::default();
    assert!(usage.take(&slow, &[wanted("a")], T0, LEASE)[0].is_some());
    usage.release(&[token("a")]);
    assert_eq!(usage.take(&slow, &[wanted("g")], ms(1000), LEASE), [None]);
    assert_eq!(usage.reserve(&slow, &delivery("h"), false, ms(1000)), Some(ms(60_000)));
    assert!(usage.take(&fast, &[wanted("g")], ms(1001), LEASE)[0].is_some());
    assert_eq!(
        (usage.leased(), usage.reservations()),
        (1, 0),
        "the start that lay a minute ahead keeps no slot"
    );
}

#[test]
fn a_rate_is_a_number_and_a_span() {
    for (good, per_s) in [("1/s", 1.0), ("20/s", 20.0), ("600/m", 10.0), ("9/h", 0.0025), ("100000/s", 1e5)] {
        assert_eq!(Rate::parse("rate", good).map(Rate::per_s), Ok(per_s), "{good}");
    }
    for bad in ["", "20", "/s", "20/", "20/d", "0/s", "-1/s", "+1/s", "1.5/s", " 1/s", "100001/s", "20 /s"] {
        let refused = Rate::parse("rate", bad).unwrap_err().to_string();
        assert!(refused.contains("rate") && refused.contains("20/s"), "{bad}: {refused}");
    }
}
