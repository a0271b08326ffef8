//! When the next attempt is due: jitter, `Retry-After`, deadline and horizon.

use crate::build::{
    T0, at, by, claimed, delivery, destination, look, pending, policy, report, revision, secs, terms,
};
use waybill_domain::attempt::{Next, NotSent, SendWindow};
use waybill_domain::delivery::Record;
use waybill_domain::destination::OnAmbiguous;
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::handoff::{HandOff, hand_off};
use waybill_domain::outcome::{FailureClass, Seen};
use waybill_domain::settle::settle;
use waybill_domain::time::{DurationMs, TimeMs};

const NO_DEADLINE: Option<u64> = None;

fn next(
    seen: Seen,
    asked: Option<u64>,
    deadline: Option<u64>,
    now: TimeMs,
    unit: f64,
    on: OnAmbiguous,
) -> Next {
    let record = claimed(&pending(deadline.map(at)), T0);
    let settlement =
        settle(&record, &report(seen, asked, now), &terms(on), &by("m1", "t1", now), unit).unwrap();
    let attempt = settlement.attempt.unwrap();
    match (&attempt.next, settlement.change.after()) {
        (Next::Retry { due_at, .. }, after) => assert_eq!(after.due_at, *due_at),
        (Next::End(ending), after) => assert_eq!(after.state, ending.state()),
    }
    attempt.next
}

fn due_in(next: Next) -> u64 {
    match next {
        Next::Retry { due_at, .. } => due_at.since(T0).as_ms(),
        Next::End(ending) => panic!("ended: {ending:?}"),
    }
}

#[test]
fn a_retry_is_due_after_jitter_or_after_what_was_asked_and_jitter() {
    let rows = [
        (None, 0.0, 0),
        (None, 0.5, 500),
        (Some(300), 0.0, 300_000),
        (Some(300), 0.75, 300_750),
        (Some(0), 0.5, 500),
        (Some(54_524), 0.25, 54_524_250),
    ];
    for (asked, unit, due_ms) in rows {
        let next = next(Seen::Status(503), asked, NO_DEADLINE, T0, unit, OnAmbiguous::Retry);
        assert_eq!(due_in(next), due_ms, "asked {asked:?}, drew {unit}");
    }
}

#[test]
fn c49_retry_after_is_never_undercut_and_nobody_returns_in_step() {
    let due: Vec<u64> = (0..300)
        .map(|n| {
            let unit = f64::from(n) / 300.0;
            due_in(next(Seen::Status(429), Some(300), NO_DEADLINE, T0, unit, OnAmbiguous::Retry))
        })
        .collect();
    let (first, last) = (due.iter().min().unwrap(), due.iter().max().unwrap());
    assert!(*first >= 300_000, "{first}");
    assert!(last - first >= 100, "spread {}", last - first);
    assert!(*last <= 301_000, "{last} is above what jitter may draw at attempt 1");
}

#[test]
fn the_end_comes_for_the_first_reason_that_holds() {
    let dead = |reason| Next::End(Ending::DeadLettered(reason));
    let retry = OnAmbiguous::Retry;
    let rows = [
        (
            "permanent",
            next(Seen::Status(422), None, NO_DEADLINE, T0, 0.5, retry),
            dead(DeadLetterReason::Permanent(FailureClass::PayloadRejected)),
        ),
        (
            "permanent, whatever was asked",
            next(Seen::Status(401), Some(9), NO_DEADLINE, T0, 0.5, retry),
            dead(DeadLetterReason::Permanent(FailureClass::AuthenticationRejected)),
        ),
        (
            "unknown effect where a person decides",
            next(Seen::AnswerTimedOut, None, NO_DEADLINE, T0, 0.5, OnAmbiguous::Hold),
            dead(DeadLetterReason::AmbiguousOutcome),
        ),
        (
            "asked to wait past the deadline",
            next(Seen::Status(503), Some(3599), Some(3600), T0, 0.5, retry),
            dead(DeadLetterReason::RetryAfterPastDeadline),
        ),
        (
            "asked to wait past the horizon",
            next(Seen::Status(503), Some(86_400), NO_DEADLINE, T0, 0.5, retry),
            dead(DeadLetterReason::HorizonReached),
        ),
        (
            "no room before the deadline",
            next(Seen::Status(503), None, Some(10), at(9), 0.5, retry),
            Next::End(Ending::Expired),
        ),
        (
            "no room before the deadline, and asked",
            next(Seen::Status(503), Some(5), Some(10), at(9), 0.5, retry),
            Next::End(Ending::Expired),
        ),
    ];
    for (what, got, right) in rows {
        assert_eq!(got, right, "{what}");
    }
    let known = next(Seen::Status(503), None, NO_DEADLINE, T0, 0.5, OnAmbiguous::Hold);
    assert!(matches!(known, Next::Retry { .. }), "the effect of a 503 is known: {known:?}");
}

#[test]
fn c111_a_due_time_past_the_deadline_is_moved_back_to_a_last_attempt() {
    // Attempt 7 of the nightly kind: jitter could draw far beyond the deadline at T0+100.
    let mut long = terms(OnAmbiguous::Retry);
    let mut t = *policy(7);
    t.backoff.base = secs(600);
    long.policy = waybill_domain::policy::Policy::new(t).unwrap();
    let record = claimed(&pending(Some(at(100))), T0);
    let failed = report(Seen::Status(503), None, T0);
    let settlement = settle(&record, &failed, &long, &by("m1", "t1", T0), 0.9).unwrap();
    let Next::Retry { due_at, delay } = settlement.attempt.unwrap().next else { panic!("ended") };
    // The latest start is T0+98; its wake-up is set two seconds before.
    assert_eq!(due_at, at(96));
    assert!(delay.moved_before_limit);
    let after = settlement.change.into_after();
    // However long the hand-off takes within its second, the message is there in time.
    for late_ms in [0, 1, 20, 999] {
        let now = T0.plus(DurationMs::from_ms(late_ms));
        let HandOff::WakeUp { delay, .. } = hand_off(&after, secs(900), now) else { panic!("parked") };
        let arrives = now.plus(secs(delay.whole_secs_up())).plus(secs(1));
        assert!(arrives <= at(98), "handed off after {late_ms} ms it is worked for at {arrives}");
    }
}

#[test]
fn a_retry_after_that_leaves_no_room_for_a_wake_up_is_told_to_a_person_at_once() {
    // Deadline T0+100, latest start T0+98, wake-ups until T0+96.
    let rows = [(95, false), (96, false), (97, true), (98, true), (99, true)];
    for (asked, is_dead) in rows {
        let next = next(Seen::Status(503), Some(asked), Some(100), T0, 0.9, OnAmbiguous::Retry);
        match next {
            Next::Retry { due_at, .. } => assert!(!is_dead && due_at >= at(asked), "{asked}: due {due_at}"),
            end => {
                let dead = Next::End(Ending::DeadLettered(DeadLetterReason::RetryAfterPastDeadline));
                assert!(is_dead && end == dead, "{asked}: {end:?}");
            }
        }
    }
}

#[test]
fn the_attempts_of_the_budget_are_all_there_are() {
    let mut record = pending(None);
    for n in 1..=7_u32 {
        assert_eq!(record.attempts_made, n - 1);
        let failed = report(Seen::Status(500), None, T0);
        let settlement =
            settle(&claimed(&record, T0), &failed, &terms(OnAmbiguous::Retry), &by("m1", "t1", T0), 0.0)
                .unwrap();
        assert_eq!(settlement.attempt.unwrap().number.get(), n);
        record = settlement.change.into_after();
    }
    assert_eq!(record.dead_letter_reason(), Some(DeadLetterReason::AttemptsExhausted));
}

#[test]
fn c45_right_before_the_first_byte_the_wall_clock_is_asked_again() {
    let window =
        |limit| SendWindow { lease_until: at(20), limit_at: at(limit), timeout: secs(15), started_at: T0 };
    let rows = [
        ("at once", 3600, T0, Ok(secs(15))),
        ("connecting took 5 s", 3600, at(5), Ok(secs(10))),
        ("the deadline cuts the answer's time", 10, at(4), Ok(secs(6))),
        ("deadline reached while connecting", 10, at(10), Err(NotSent::DeadlinePassed)),
        ("the worker slept through its attempt", 3600, at(15), Err(NotSent::LeaseTooShort)),
        ("the worker slept through its lease", 3600, at(60), Err(NotSent::LeaseTooShort)),
        (
            "a clock that jumped back gives no more time",
            3600,
            TimeMs::from_unix_ms(T0.as_unix_ms() - 60_000),
            Ok(secs(15)),
        ),
    ];
    for (what, limit, now, right) in rows {
        assert_eq!(window(limit).check(now), right, "{what}");
    }
    let late = SendWindow { lease_until: at(12), ..window(3600) };
    assert_eq!(
        late.check(T0),
        Err(NotSent::LeaseTooShort),
        "less of the lease left than the attempt may take"
    );
}

#[test]
fn c19_c21_queue_delays_are_whole_seconds_rounded_up_and_long_waits_are_parked() {
    let wake = |ms: i64| {
        let mut waiting = delivery(None);
        waiting.not_before = Some(TimeMs::from_unix_ms(T0.as_unix_ms() + ms));
        let record = Record::new(waiting, &destination().policy, revision(), &look());
        match hand_off(&record, secs(900), T0) {
            HandOff::WakeUp { delay, .. } => Some(delay.whole_secs_up()),
            HandOff::Parked => None,
            other => panic!("{other:?}"),
        }
    };
    let rows = [
        (-1, Some(0)),
        (0, Some(0)),
        (1, Some(1)),
        (1000, Some(1)),
        (1001, Some(2)),
        (900_000, Some(900)),
        (900_001, None),
        (900_400, None),
        (54_524_000, None),
    ];
    for (ms, delay_s) in rows {
        assert_eq!(wake(ms), delay_s, "not before now + {ms} ms");
    }
}

#[test]
fn durations_are_read_with_one_unit_and_shown_for_people() {
    let rows = [
        ("250ms", Some(250)),
        ("15s", Some(15_000)),
        ("15m", Some(900_000)),
        ("24h", Some(86_400_000)),
        ("7d", Some(604_800_000)),
        ("366d", Some(31_622_400_000)),
        ("367d", None),
        ("1.5s", None),
        ("15", None),
        ("", None),
        ("-1s", None),
        ("s", None),
        ("99999999999999999999d", None),
        ("1h30m", None),
    ];
    for (text, ms) in rows {
        let read = DurationMs::parse("timeout", text);
        assert_eq!(read.as_ref().ok().map(|d| d.as_ms()), ms, "{text:?}: {read:?}");
    }
    let shown = [
        (0, "0ms"),
        (350, "350ms"),
        (2400, "2.4s"),
        (15_000, "15s"),
        (200_000, "3m20s"),
        (18_000_000, "5h00m"),
        (183_600_000, "2d03h"),
    ];
    for (ms, text) in shown {
        assert_eq!(DurationMs::from_ms(ms).to_string(), text);
    }
}

#[test]
fn times_need_an_offset() {
    let rows = [
        ("2026-08-09T02:30:00Z", Ok("2026-08-09T02:30:00.000Z")),
        ("2026-08-09T02:30:00+02:00", Ok("2026-08-09T00:30:00.000Z")),
        ("2026-08-09T02:30:00.1239Z", Ok("2026-08-09T02:30:00.123Z")),
        ("2026-08-09T02:30:00", Err("no offset")),
        ("2026-08-09", Err("no offset")),
        ("tomorrow", Err("not a time")),
        ("1767225600", Err("not a time")),
        ("", Err("not a time")),
    ];
    for (text, right) in rows {
        match (TimeMs::parse("deadline", text), right) {
            (Ok(time), Ok(shown)) => assert_eq!(time.to_string(), shown),
            (Err(refusal), Err(fault)) => assert!(refusal.to_string().contains(fault), "{text:?}: {refusal}"),
            (got, _) => panic!("{text:?}: {got:?}"),
        }
    }
}
