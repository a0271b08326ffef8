//! The bounds of the decisions, to the millisecond: what lies on a bound, and what lies just beyond.

use waybill_domain::admit::{Admission, Left, Scene, Suppressed, admit, longest_timeout};
use waybill_domain::attempt::{Attempt, Excerpt, Next, NotSent, SendWindow, Witness};
use waybill_domain::delivery::Record;
use waybill_domain::destination::OnAmbiguous;
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::envelope::WakeUp;
use waybill_domain::handoff::{HandOff, hand_off};
use waybill_domain::hold::{Held, HoldReason};
use waybill_domain::outcome::Seen;
use waybill_domain::settle::{interrupted, settle, standing_evidence};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::build::{
    T0, at, by, claimed, delivery, destination, look, message, pending, policy, report, revision, secs,
    terms, token,
};

const MS: DurationMs = DurationMs::from_ms(1);

/// The evidence of a 503 at `now`, by the worker of the claim.
fn failed(record: &Record, now: TimeMs) -> Attempt {
    let writer = by("m1", "t1", now);
    let settled =
        settle(record, &report(Seen::Status(503), None, now), &terms(OnAmbiguous::Retry), &writer, 0.5);
    settled.unwrap().attempt.unwrap()
}

#[test]
fn no_attempt_is_claimed_beyond_the_limit() {
    let having_made = |attempts: u32| {
        let mut document = serde_json::to_value(pending(None)).unwrap();
        document["attempts_made"] = attempts.into();
        serde_json::from_value::<Record>(document).unwrap()
    };
    let claim = |record: &Record| record.claim(message("m1"), token("t1"), T0, secs(15), revision());
    assert_eq!(having_made(6).attempt_limit, 7);
    let last = claim(&having_made(6)).unwrap().into_after();
    assert_eq!(last.next_attempt().get(), 7);
    assert!(claim(&last).is_err(), "it has a claim");
    assert!(claim(&having_made(7)).is_err(), "its attempts are used up");
    let ends = settle(
        &last,
        &report(Seen::Status(503), None, T0),
        &terms(OnAmbiguous::Retry),
        &by("m1", "t1", T0),
        0.5,
    );
    let exhausted = Next::End(Ending::DeadLettered(DeadLetterReason::AttemptsExhausted));
    assert_eq!(ends.unwrap().attempt.unwrap().next, exhausted);
}

#[test]
fn the_rest_of_an_attempt_may_fill_its_lease_and_no_more() {
    let window = |lease_until: TimeMs, limit_at: TimeMs| SendWindow {
        lease_until,
        limit_at,
        timeout: secs(15),
        started_at: T0,
    };
    let far = at(3600);
    let rows = [
        ("all of it", window(at(15), far), T0, Ok(secs(15))),
        ("a millisecond short", window(at(15).minus(MS), far), T0, Err(NotSent::LeaseTooShort)),
        ("later, in time", window(at(15), far), at(14), Ok(secs(1))),
        ("nothing left", window(far, far), at(15), Err(NotSent::LeaseTooShort)),
        ("cut by the deadline", window(far, at(10)), at(4), Ok(secs(6))),
        ("the last millisecond", window(far, at(10)), at(10).minus(MS), Ok(MS)),
        ("at the deadline", window(far, at(10)), at(10), Err(NotSent::DeadlinePassed)),
        ("a clock that jumped back", window(at(15), far), T0.minus(secs(5)), Ok(secs(15))),
    ];
    for (what, window, now, expected) in rows {
        assert_eq!(window.check(now), expected, "{what}");
    }
}

#[test]
fn a_timeout_leaves_a_function_the_time_to_begin_to_settle_and_to_answer() {
    assert_eq!(longest_timeout(secs(60)), secs(57));
    assert_eq!(longest_timeout(secs(3)), secs(0));
    assert_eq!(longest_timeout(secs(1)), secs(0));
}

#[test]
fn what_was_left_is_hidden_until_its_claim_ends_where_that_is_known() {
    assert_eq!(Left::OwnClaim { until: at(25) }.hidden_until(), Some(at(25)));
    assert_eq!(Left::TimeShort.hidden_until(), None);
}

#[test]
fn a_hold_that_matches_no_more_is_lifted_by_whoever_comes_but_for_budgets_and_suspensions() {
    let rows = [
        (HoldReason::Paused, Admission::Lift),
        (HoldReason::Quarantine, Admission::Lift),
        (HoldReason::Gate, Admission::Lift),
        (HoldReason::RunStopped, Admission::Lift),
        (HoldReason::Budget, Admission::Acknowledge(Suppressed::Held)),
        (HoldReason::Suspended, Admission::Acknowledge(Suppressed::Held)),
    ];
    let (open, destination) = (pending(None), destination());
    for (reason, expected) in rows {
        let held = open.hold(&by("m1", "t1", T0), Held { reason, since: T0 }).unwrap().into_after();
        let scene = Scene { destination: Some(&destination), holds: &[], time_left: secs(60), now: T0 };
        let wakeup = WakeUp::for_next_attempt(&held);
        assert_eq!(admit(&held, &wakeup, &message("m9"), scene), expected, "{reason:?}");
        assert_eq!(hand_off(&held, secs(900), T0), HandOff::Nothing, "{reason:?}: nothing is owed");
    }
}

#[test]
fn a_claimed_delivery_owes_nothing_and_a_told_one_nothing_more() {
    let claimed = claimed(&pending(None), T0);
    assert_eq!(hand_off(&claimed, secs(900), T0), HandOff::Nothing);
    let ending = Ending::DeadLettered(DeadLetterReason::DestinationRemoved);
    let dead = pending(None).end(&by("m1", "t1", T0), ending, &look()).unwrap().into_after();
    assert!(matches!(hand_off(&dead, secs(900), T0), HandOff::TellDlq(_)));
    assert_eq!(hand_off(dead.told().unwrap().after(), secs(900), T0), HandOff::Nothing);
}

#[test]
fn a_lapsed_claim_is_settled_by_its_own_evidence_the_workers_first() {
    let record = claimed(&pending(None), T0);
    let of_worker = failed(&record, at(3));
    let of_finder = interrupted(&record, &terms(OnAmbiguous::Retry), &by("m2", "t2", at(30)), 0.5).unwrap();
    let of_another = Attempt { token: token("t0"), ..of_worker.clone() };
    assert_eq!((of_worker.witness, of_finder.witness), (Witness::Worker, Witness::Finder));
    let found = |attempts: &[Attempt]| standing_evidence(&record, attempts).cloned();
    assert_eq!(found(&[]), None);
    assert_eq!(
        found(std::slice::from_ref(&of_another)),
        None,
        "another claim's evidence says nothing of this one"
    );
    assert_eq!(found(&[of_another, of_finder.clone()]), Some(of_finder.clone()));
    assert_eq!(found(&[of_finder, of_worker.clone()]), Some(of_worker));
    assert_eq!(standing_evidence(&pending(None), &[failed(&record, at(3))]), None, "nothing is claimed");
}

/// The default policy: no attempt begins in the last two seconds, and a last one is woken two before that.
#[test]
fn a_failure_just_before_the_limit_is_tried_once_more_at_once() {
    let next = |deadline: u64, now: TimeMs, asked: Option<u64>| {
        let record = claimed(&pending(Some(at(deadline))), T0);
        let report = report(Seen::Status(503), asked, now);
        let settled = settle(&record, &report, &terms(OnAmbiguous::Retry), &by("m1", "t1", now), 0.5);
        settled.unwrap().attempt.unwrap().next
    };
    let retry = |next: Next| match next {
        Next::Retry { due_at, delay } => (due_at, delay.moved_before_limit),
        Next::End(ending) => panic!("{ending:?}"),
    };
    // Half of one second is drawn; the deadline leaves that, or moves it.
    assert_eq!(retry(next(60, at(10), None)), (at(10).plus(DurationMs::from_ms(500)), false));
    assert_eq!(retry(next(14, at(10).minus(DurationMs::from_ms(500)), None)), (at(10), false), "just fits");
    assert_eq!(
        retry(next(14, at(10).minus(DurationMs::from_ms(499)), None)),
        (at(10), true),
        "moved by 1 ms"
    );
    assert_eq!(
        retry(next(14, at(11), None)),
        (at(11), true),
        "between the last wake-up and the latest start"
    );
    assert_eq!(retry(next(14, at(12), None)), (at(12), true), "at the latest start");
    assert_eq!(next(14, at(12).plus(MS), None), Next::End(Ending::Expired));
    // What the recipient asked for is never undercut.
    assert_eq!(retry(next(14, at(5), Some(5))).0, at(10));
    let past = Next::End(Ending::DeadLettered(DeadLetterReason::RetryAfterPastDeadline));
    assert_eq!(next(14, at(5).plus(MS), Some(5)), past);
}

/// To a recipient that fails at once, under as many attempts as one likes: when each begins, in milliseconds
/// before the deadline, and what the delivery comes to. The latest start is 2,000 before it, the last wake-up 4,000.
#[test]
fn one_last_attempt_is_moved_back_to_the_deadline_and_no_more() {
    let deadline = 60;
    // Where it begins, what jitter draws (the last again and again), when the attempts begin.
    let rows: [(u64, &[f64], &[u64]); 5] = [
        // Backoff draws 0.5, 1, 2, 4, 8, 16, 32, 64 s.
        (60_000, &[0.5], &[60_000, 59_500, 58_500, 56_500, 52_500, 44_500, 28_500, 4_000]),
        // As much as can be drawn, from near the deadline: a first one, and one that is moved back.
        (5_000, &[0.999], &[5_000, 4_001, 4_000]),
        // The two seconds that are drawn after it just fit.
        (4_500, &[0.999], &[4_500, 4_000, 2_002]),
        // After the last wake-up only what is drawn by itself still fits.
        (4_000, &[0.2, 0.2, 0.999], &[4_000, 3_800, 3_400]),
        // At the very latest start it does.
        (2_500, &[0.5], &[2_500, 2_000]),
    ];
    for (from, drawn, expected) in rows {
        let mut terms = terms(OnAmbiguous::Retry);
        terms.policy = policy(100);
        let mut record = Record::new(delivery(Some(at(deadline))), &policy(100), revision(), &look());
        let mut now = at(deadline).minus(DurationMs::from_ms(from));
        let mut begun = Vec::new();
        let ending = loop {
            begun.push(at(deadline).since(now).as_ms());
            let report = report(Seen::Status(503), None, now);
            let unit = drawn[(begun.len() - 1).min(drawn.len() - 1)];
            let settlement =
                settle(&claimed(&record, now), &report, &terms, &by("m1", "t1", now), unit).unwrap();
            match settlement.attempt.clone().unwrap().next {
                Next::Retry { due_at, .. } => now = due_at,
                Next::End(ending) => break ending,
            }
            record = settlement.change.into_after();
        };
        assert_eq!((begun.as_slice(), ending), (expected, Ending::Expired), "from {from} ms before");
    }
}

#[test]
fn an_excerpt_is_kept_byte_for_byte() {
    let excerpt = Excerpt { bytes: vec![0, 255, b'\n', b'"'], full_length: 9000, complete: false };
    let text = serde_json::to_string(&excerpt).unwrap();
    assert_eq!(serde_json::from_str::<Excerpt>(&text).unwrap(), excerpt);
    assert_eq!(excerpt.bytes, [0, 255, b'\n', b'"']);
}

/// Automation's horizon is a day; a deadline that has passed counts, whatever else has.
#[test]
fn the_nearer_of_deadline_and_horizon_ends_a_delivery_and_a_deadline_that_has_passed_counts() {
    const DAY: u64 = 86_400;
    let horizon = (at(DAY), Ending::DeadLettered(DeadLetterReason::HorizonReached));
    let rows = [
        ("no deadline", None, at(0), horizon),
        ("before the horizon", Some(at(DAY - 1)), at(0), (at(DAY - 1), Ending::Expired)),
        ("at the horizon", Some(at(DAY)), at(0), (at(DAY), Ending::Expired)),
        ("behind the horizon", Some(at(DAY + 60)), at(0), horizon),
        ("behind the horizon, which has passed", Some(at(DAY + 60)), at(DAY + 59), horizon),
        ("both have passed", Some(at(DAY + 60)), at(DAY + 60), (at(DAY + 60), Ending::Expired)),
    ];
    for (what, deadline, now, expected) in rows {
        let limit = pending(deadline).limit(now);
        assert_eq!((limit.at, limit.ending), expected, "{what}");
    }
}
