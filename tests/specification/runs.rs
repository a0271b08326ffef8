//! A redrive run: how fast it releases, how far it may go, when it halts itself, and what becomes of what it
//! released.

use std::collections::BTreeMap;

use waybill_domain::delivery::Record;
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::identity::DestinationName;
use waybill_domain::order::Signed;
use waybill_domain::outcome::Seen;
use waybill_domain::redrive::{
    InHand, Lane, NotOurs, OUTCOMES, ReleaseRate, Run, Selection, Standing, WATCHED, Watched, outcome_of,
};
use waybill_domain::settle::settle;
use waybill_domain::time::{DurationMs, TimeMs};

use crate::build::{T0, at, by, claimed, delivery, look, pending, policy, report, secs, terms};

pub(crate) fn signed(at: TimeMs) -> Signed {
    Signed { by: "maria".to_owned(), at, why: "the credentials were corrected".to_owned() }
}

pub(crate) fn to(name: &str) -> DestinationName {
    DestinationName::parse(name).unwrap()
}

/// Running since T0 at one a second, with nothing judged yet.
pub(crate) fn run() -> Run {
    Run {
        selection: Selection::default(),
        planned: 0,
        started: signed(T0),
        rate: ReleaseRate::parse("rate", "1/s").unwrap(),
        sample: None,
        not_before: None,
        reviews: Default::default(),
        standing: Standing::Running,
        resumed_at: None,
        lanes: BTreeMap::new(),
        in_hand: Vec::new(),
        hand_of: None,
        tally: Default::default(),
        watched: Vec::new(),
        outcomes: Default::default(),
    }
}

fn watched(count: usize) -> Vec<Watched> {
    vec![Watched { delivery: delivery(None).key(), attempts_before: 0 }; count]
}

#[test]
fn a_rate_is_a_number_and_a_unit() {
    for (text, millis_of_ten) in [("20/s", 500), ("1000/s", 10), ("600/m", 1000), ("3/h", 12_000_000)] {
        let rate = ReleaseRate::parse("rate", text).unwrap();
        assert_eq!(rate.span_of(10), DurationMs::from_ms(millis_of_ten), "{text}");
        assert_eq!(rate.to_string(), text);
        let written = serde_json::to_value(rate).unwrap();
        assert_eq!(written, text, "it is kept as it is written");
        assert_eq!(serde_json::from_value::<ReleaseRate>(written).unwrap(), rate);
    }
    for text in ["", "20", "0/s", "1001/s", "-1/s", "20/d", "2.5/s", "/s", "20/ s"] {
        let refused = ReleaseRate::parse("rate", text).unwrap_err();
        assert_eq!(refused.field, "rate", "{text}");
        assert!(serde_json::from_value::<ReleaseRate>(text.into()).is_err(), "{text}");
    }
}

#[test]
fn where_a_run_stands_says_whether_it_releases_holds_or_is_over() {
    // Its name; whether it releases, holds what it released, and is over.
    let table = [
        (Standing::Running, "running", (true, false, false)),
        (Standing::Stopped(signed(T0)), "stopped", (false, true, false)),
        (Standing::Halted(signed(T0)), "halted", (false, true, false)),
        (Standing::Sampled(T0), "sampled", (false, false, false)),
        (Standing::Finished(T0), "finished", (false, false, true)),
    ];
    for (standing, name, expected) in table {
        assert_eq!(standing.as_str(), name);
        let run = Run { standing, ..run() };
        assert_eq!((run.releases(T0), run.holds_what_it_released(), run.is_finished()), expected, "{name}");
    }
    let later = Run { not_before: Some(at(60)), ..run() };
    assert!(!later.releases(at(60).minus(DurationMs::from_ms(1))) && later.releases(at(60)));
}

#[test]
fn a_run_releases_no_more_than_its_sample_and_what_it_can_watch() {
    // Outcomes seen, deliveries watched, sample, released; how many may go.
    let table = [
        (0, 0, None, 0, OUTCOMES),
        (0, 5, None, 5, OUTCOMES - 5),
        (0, OUTCOMES, None, 20, 0),
        (0, WATCHED, None, 60, 0),
        (OUTCOMES - 1, 0, None, 19, OUTCOMES),
        // It has seen enough to halt by.
        (OUTCOMES, WATCHED, None, 80, usize::MAX),
        (0, 0, Some(5), 2, 3),
        (0, 19, Some(25), 19, 1),
        (OUTCOMES, 0, Some(50), 20, 30),
        (OUTCOMES, 0, Some(50), 50, 0),
        (OUTCOMES, 0, Some(50), 51, 0),
    ];
    for (seen, in_view, sample, released, room) in table {
        let mut run = Run { sample, watched: watched(in_view), ..run() };
        run.tally.released = released;
        run.outcomes = vec![true; seen].into();
        assert_eq!(run.room(), room, "{seen} seen, {in_view} watched, {released} of {sample:?}");
    }
}

#[test]
fn a_run_halts_once_more_than_half_of_its_last_outcomes_failed() {
    // How many were delivered, then how many failed.
    for (delivered, failed, halts) in [
        (0, 0, false),
        (0, 19, false),
        (10, 10, false),
        (9, 11, true),
        (0, 20, true),
        (50, 10, false),
        (50, 11, true),
    ] {
        let mut run = run();
        (0..delivered).for_each(|_| run.note(true));
        (0..failed).for_each(|_| run.note(false));
        assert_eq!(run.must_halt(), halts, "{delivered} delivered, {failed} failed");
        assert_eq!(run.outcomes.len(), OUTCOMES.min(delivered + failed), "the last, and no others");
    }
    let mut recovered = run();
    (0..30).for_each(|n| recovered.note(n >= 10));
    assert!(recovered.outcomes.iter().all(|delivered| *delivered), "the oldest goes first");
}

#[test]
fn a_run_watches_what_it_can_and_no_more() {
    let mut run = run();
    let released = dead_at_the_second_attempt().release("rdr_1".into(), &policy(7), T0, T0, &look());
    let released = released.unwrap().into_after();
    (0..WATCHED + 1).for_each(|_| run.watch(&released));
    assert_eq!(run.watched.len(), WATCHED);
    assert_eq!(run.watched[0], Watched { delivery: released.delivery.key(), attempts_before: 2 });
}

/// The record after one more attempt that failed.
fn failed(record: &Record) -> Record {
    let now = record.due_at;
    let told = report(Seen::Status(503), None, now);
    let settled = settle(&claimed(record, now), &told, &terms(Default::default()), &by("m1", "t1", now), 0.5);
    settled.unwrap().change.into_after()
}

fn dead_at_the_second_attempt() -> Record {
    let exhausted = Ending::DeadLettered(DeadLetterReason::AttemptsExhausted);
    failed(&failed(&pending(None))).end(&by("m1", "t1", at(60)), exhausted, &look()).unwrap().into_after()
}

#[test]
fn what_was_released_is_delivered_or_fails_again_by_its_first_attempt_since() {
    let release = |run: &str| {
        dead_at_the_second_attempt()
            .release(run.into(), &policy(7), at(90), at(90), &look())
            .unwrap()
            .into_after()
    };
    let released = release("rdr_1");
    let again = failed(&released);
    let delivered = claimed(&released, at(90)).settle_delivered(&by("m1", "t1", at(91)), None);
    let exhausted = Ending::DeadLettered(DeadLetterReason::HorizonReached);
    let dead = released.end(&by("m1", "t1", at(100)), exhausted, &look()).unwrap().into_after();
    let expired = released.end(&by("m1", "t1", at(100)), Ending::Expired, &look()).unwrap().into_after();
    let table = [
        ("not sent yet", released.clone(), Ok(None)),
        ("being sent", claimed(&released, at(90)), Ok(None)),
        ("failed, and to be tried again", again, Ok(Some(false))),
        ("delivered", delivered.unwrap().into_after(), Ok(Some(true))),
        ("a dead letter", dead, Ok(Some(false))),
        ("expired", expired, Ok(Some(false))),
        ("released by another run since", release("rdr_2"), Err(NotOurs)),
        ("never released", pending(None), Err(NotOurs)),
    ];
    let watched = Watched { delivery: released.delivery.key(), attempts_before: 2 };
    for (what, record, expected) in table {
        assert_eq!(outcome_of(&watched, &record, "rdr_1"), expected, "{what}");
    }
}

#[test]
fn a_run_is_through_once_all_is_judged_carried_out_and_due() {
    let lane = |done, next_at| Lane { done, next_at, ..Lane::default() };
    let in_hand = || vec![InHand { delivery: delivery(None).key(), due_at: None }];
    // What is in hand, its lanes, and whether it is through ten seconds after T0.
    let table = [
        ("nothing was planned", vec![], vec![], true),
        ("something is in hand", in_hand(), vec![lane(true, None)], false),
        ("nothing is to be judged", vec![], vec![lane(true, None)], true),
        ("something is to be judged", vec![], vec![lane(false, None)], false),
        ("judged in one lane alone", vec![], vec![lane(true, None), lane(false, None)], false),
        ("the last release is due", vec![], vec![lane(true, Some(at(10)))], true),
        ("it is not due yet", vec![], vec![lane(true, Some(at(11)))], false),
        ("due, and more is to be judged", vec![], vec![lane(false, Some(at(10)))], false),
    ];
    for (what, in_hand, lanes, is_through) in table {
        let lanes = lanes.into_iter().zip(["books", "crm"]).map(|(lane, name)| (to(name), lane)).collect();
        let run = Run { in_hand, lanes, ..run() };
        assert_eq!(run.is_through(at(10)), is_through, "{what}");
    }
}

#[test]
fn what_is_late_in_hand_delays_what_its_lane_releases_next() {
    let lane = |next_at| Lane { next_at, ..Lane::default() };
    let lanes = BTreeMap::from([(to("books"), lane(Some(at(10)))), (to("crm"), lane(Some(at(20))))]);
    let next = |run: &Run| run.lanes.values().map(|lane| lane.next_at).collect::<Vec<_>>();
    let mut of_books = Run { hand_of: Some(to("books")), lanes: lanes.clone(), ..run() };
    of_books.delay_hand(secs(5));
    assert_eq!(next(&of_books), [Some(at(15)), Some(at(20))]);
    let mut of_nobody = Run { lanes, ..run() };
    of_nobody.delay_hand(secs(5));
    assert_eq!(next(&of_nobody), [Some(at(10)), Some(at(20))]);
}
