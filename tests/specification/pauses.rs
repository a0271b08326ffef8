//! A run that was stopped and goes on: what it had released goes as much later as it stood still.

use std::collections::BTreeMap;

use waybill_domain::delivery::Record;
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::identity::TenantId;
use waybill_domain::order::OrderId;
use waybill_domain::redrive::{Lane, Resumed, Run, Standing, Watched};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::build::{at, by, delivery, look, pending, policy};
use crate::runs::{run, signed, to};

const MS: DurationMs = DurationMs::from_ms(1);
const ID: &str = "rdr_00000000000000000000000001";

/// A run with one lane to acme-accounting, stopped at 100 s and resumed at 160 s.
fn resumed(next_s: Option<u64>) -> Run {
    let lane = Lane { next_at: next_s.map(at), ..Lane::default() };
    let lanes = BTreeMap::from([(to("acme-accounting"), lane)]);
    let mut run = Run { standing: Standing::Stopped(signed(at(100))), lanes, ..run() };
    run.resume(at(160));
    run
}

fn lane(run: &Run) -> &Lane {
    &run.lanes[&to("acme-accounting")]
}

#[test]
fn what_a_stop_held_goes_later_and_the_next_release_behind_it() {
    // When the next release was due; when it is due now, and by how much that moves what was held.
    let table = [
        ("due before the stop", 99, at(170), 61),
        ("due while it stood still", 103, at(170), 61),
        ("due soon after", 165, at(165 + 60 + 1 + 5), 66),
        ("due later than a worker may not have heard", 300, at(300 + 60 + 1 + 10), 201),
    ];
    for (what, next_s, next_at, by_s) in table {
        let run = resumed(Some(next_s));
        let pauses = &lane(&run).pauses;
        assert_eq!(lane(&run).next_at, Some(next_at), "{what}");
        let moved = |due: TimeMs| pauses.moved(due).since(due);
        // A worker that has not heard of it for ten seconds still holds what is due until then.
        assert_eq!(moved(at(100)), DurationMs::from_secs(by_s), "{what}");
        assert_eq!(moved(at(170).minus(MS)), DurationMs::from_secs(by_s), "{what}");
        assert_eq!((moved(at(170)), moved(at(171))), (DurationMs::ZERO, DurationMs::ZERO), "{what}");
    }
    let untouched = resumed(None);
    assert_eq!(
        (lane(&untouched).next_at, lane(&untouched).pauses.is_empty()),
        (None, true),
        "nothing was held"
    );
}

#[test]
fn a_lane_remembers_its_last_pauses() {
    let mut run = resumed(Some(103));
    for n in 1..=20 {
        run.standing = Standing::Halted(signed(at(160 + 100 * n)));
        run.resume(at(170 + 100 * n));
    }
    let written = serde_json::to_value(lane(&run)).unwrap();
    assert_eq!(written["pauses"].as_array().unwrap().len(), 8);
    assert!(serde_json::to_value(Lane::default()).unwrap().get("pauses").is_none(), "none are not written");
}

#[test]
fn a_run_goes_on_with_a_fresh_view_and_without_its_sample() {
    for (standing, pauses) in [(Standing::Stopped(signed(at(100))), 1), (Standing::Sampled(at(100)), 0)] {
        let lanes = BTreeMap::from([(to("books"), Lane { next_at: Some(at(103)), ..Lane::default() })]);
        let watched = vec![Watched { delivery: delivery(None).key(), attempts_before: 0 }];
        let mut run = Run { standing, lanes, watched, sample: Some(5), ..run() };
        run.note(false);
        run.resume(at(160));
        assert_eq!(
            (run.standing.clone(), run.sample, run.resumed_at),
            (Standing::Running, None, Some(at(160)))
        );
        assert!(run.watched.is_empty() && run.outcomes.is_empty());
        // What stands still without holding anything is not moved.
        assert_eq!(!run.lanes[&to("books")].pauses.is_empty(), pauses == 1);
        assert_eq!(run.lanes[&to("books")].next_at == Some(at(103)), pauses == 0);
    }
}

#[test]
fn what_was_in_hand_at_the_stop_goes_by_the_pauses_of_its_lane() {
    let of = |name: Option<&str>| Run { hand_of: name.map(to), ..resumed(Some(103)) };
    let rows = [(Some("acme-accounting"), at(102 + 61)), (Some("crm"), at(102)), (None, at(102))];
    for (name, goes_at) in rows {
        assert_eq!(of(name).hand_goes_at(at(102)), goes_at, "{name:?}");
    }
}

fn released(run: &str) -> Record {
    let ending = Ending::DeadLettered(DeadLetterReason::AttemptsExhausted);
    let dead = pending(None).end(&by("m1", "t1", at(1)), ending, &look()).unwrap().into_after();
    dead.release(run.to_owned(), &policy(7), at(90), at(102), &look()).unwrap().into_after()
}

#[test]
fn whoever_lifts_moves_what_this_run_had_released_and_nothing_else() {
    let tenant = |name| TenantId::parse(name).unwrap();
    let order = OrderId::parse(ID).unwrap();
    let of = |tenant: Option<&TenantId>, run: &Run| Resumed::of(&order, tenant, run);
    let run = resumed(Some(103));
    let elsewhere = {
        let mut run = run.clone();
        let lane = run.lanes.remove(&to("acme-accounting")).unwrap();
        run.lanes.insert(to("crm"), lane);
        run
    };
    let another = "rdr_00000000000000000000000002";
    // Whose run, the run, the run that released it; when it goes, if that is for this run to say.
    let table = [
        ("of every tenant", None, &run, ID, Some(at(102 + 61))),
        ("of its tenant", Some(tenant("acme")), &run, ID, Some(at(102 + 61))),
        ("of another tenant", Some(tenant("globex")), &run, ID, None),
        ("released by another run", None, &run, another, None),
        ("released by another run of its tenant", Some(tenant("acme")), &run, another, None),
        ("to another destination", None, &elsewhere, ID, None),
    ];
    for (what, tenant, run, by, goes_at) in table {
        assert_eq!(of(tenant.as_ref(), run).unwrap().goes_at(&released(by)), goes_at, "{what}");
    }
    assert_eq!(of(None, &resumed(None)), None, "a run that held nothing moves nothing");
}
