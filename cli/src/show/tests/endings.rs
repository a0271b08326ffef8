//! How an end is told: when it was, what it left, and what a person did about it.

use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::identity::ulid;
use waybill_domain::order::{Decision, OrderId};
use waybill_domain::settle::Terms;

use super::super::table::of_records;
use super::{at, attempted, check, record, terms, writer};

#[test]
fn before_the_deadline_has_come_nobody_is_told_that_it_has_passed() {
    let expired =
        record(Some(at(60_000))).end(&writer("e", at(58_800)), Ending::Expired, &terms().look).unwrap();
    check(
        &expired.into_after(),
        &[],
        &[
            "  2026-01-01T00:00:58.800Z  expired        1.2s before its deadline no attempt may start any more; \
             the dead-letter queue is not told yet",
            "  next         nothing: 1.2s before its deadline (2026-01-01T00:01:00.000Z) no attempt may start any \
             more, and no path sends it any more",
        ],
    );
    let horizon = Ending::DeadLettered(DeadLetterReason::HorizonReached);
    let over_at = record(None).horizon_at;
    for (now, why) in [
        (over_at, "automation's time for it was over at 2026-01-02T00:00:00.000Z"),
        (
            over_at.minus(terms().policy.minimum_window).plus(waybill_domain::time::DurationMs::from_ms(500)),
            "no further attempt may start in the 1.5s that automation has left, until 2026-01-02T00:00:00.000Z",
        ),
    ] {
        let ended = record(None).end(&writer("e", now), horizon, &terms().look).unwrap().into_after();
        check(&ended, &[], &[&format!("  next         nothing: {why}; a person decides")]);
    }
}

#[test]
fn of_a_success_is_told_what_is_kept_and_that_nothing_else_is() {
    let (kept, _) = attempted(&record(None), 200, 100);
    let indent = " ".repeat(28);
    check(&kept, &[], &[&format!("{indent}  took         35ms, from its claim to its settle")]);
    let bare = Terms { keep_result: false, ..terms() };
    let claimed = super::claimed(&record(None), "t", at(100));
    let settled =
        waybill_domain::settle::settle(&claimed, &super::report(200, 100), &bare, &writer("t", at(135)), 0.5);
    let told = format!("{indent}  kept         neither its status nor a body (keep_result keeps a body)");
    check(&settled.unwrap().change.into_after(), &[], &[&told]);
    assert!(!super::timeline(&kept, &[], None).contains("neither its status"));
}

#[test]
fn what_a_person_did_stands_with_the_state_and_not_as_a_failure() {
    let (refused, _) = attempted(&record(None), 401, 100);
    for (decision, state) in
        [(Decision::Close, "dead_lettered, closed"), (Decision::Resolve, "succeeded, resolved")]
    {
        let order = OrderId::parse(ulid("end", at(9), "x")).unwrap();
        let ended = refused.end_by_order(order, decision, at(9_000)).unwrap().into_after();
        let table = of_records(&[ended], at(200_000));
        let row = table.lines().nth(1).unwrap();
        assert!(row.contains(state) && row.ends_with("authentication_rejected"), "{table}");
    }
}
