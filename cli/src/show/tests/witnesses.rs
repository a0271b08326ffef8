//! Attempts with two witnesses, and acknowledgements that come late.

use waybill_domain::attempt::{Attempt, Excerpt, Witness};
use waybill_domain::delivery::Record;
use waybill_domain::outcome::Outcome;
use waybill_domain::settle::{interrupted, settle, settle_by};
use waybill_domain::transition::ClaimEnd;

use super::super::beside::Beside;
use super::super::facts::of_delivery;
use super::{at, attempted, check, claimed, record, report, terms, writer};

/// An attempt that its finder settled as interrupted, and the late word of its worker.
fn with_two_witnesses() -> (Record, Vec<Attempt>) {
    let claimed = claimed(&record(None), "t100", at(100));
    let late =
        settle(&claimed, &report(503, 100), &terms(), &writer("t100", at(19_000)), 0.9).unwrap().attempt;
    let by = writer("f", at(30_000));
    let found = interrupted(&claimed, &terms(), &by, 0.1).unwrap();
    let settled = settle_by(&claimed, &found, ClaimEnd::Lapsed, &terms(), &by).unwrap();
    (settled.into_after(), vec![late.unwrap(), found])
}

#[test]
fn of_two_witnesses_both_are_shown_and_it_is_said_whose_word_decided() {
    let (record, mut attempts) = with_two_witnesses();
    let indent = " ".repeat(28);
    let finder_decided = [
        format!("{indent}  says         the worker that sent it, too late; the finder's word decided"),
        format!("{indent}  says         who found its claim lapsed; its word decided"),
        format!("{indent}  found        2026-01-01T00:00:30.000Z, 29.9s after it was claimed"),
    ];
    check(&record, &attempts, &finder_decided.each_ref().map(String::as_str));
    let facts = of_delivery(&record, &attempts, &Beside::default());
    assert_eq!(
        (&facts["attempts"][0]["decided"], &facts["attempts"][1]["decided"]),
        (&false.into(), &true.into())
    );

    // The next attempt began before the worker's due time: still the finder's word.
    let (record, next) = attempted(&record, 500, 30_200);
    attempts.extend(next);
    check(&record, &attempts, &finder_decided.each_ref().map(String::as_str));
}

#[test]
fn where_the_finder_lost_the_race_the_workers_word_decided() {
    let claimed = claimed(&record(None), "t100", at(100));
    let settled = settle(&claimed, &report(503, 100), &terms(), &writer("t100", at(19_000)), 0.5).unwrap();
    let found = interrupted(&claimed, &terms(), &writer("f", at(30_000)), 0.1).unwrap();
    let (record, attempts) = (settled.change.into_after(), [settled.attempt.unwrap(), found]);
    assert_eq!(attempts.each_ref().map(|attempt| attempt.witness), [Witness::Worker, Witness::Finder]);
    let indent = " ".repeat(28);
    check(
        &record,
        &attempts,
        &[
            &format!("{indent}  says         the worker that sent it; its word decided"),
            &format!("{indent}  says         who found its claim lapsed; the worker's word decided"),
        ],
    );
}

#[test]
fn a_late_acknowledgement_says_that_it_is_one_and_shows_what_was_answered() {
    let (record, attempts) = with_two_witnesses();
    let number = attempts[0].number;
    let answer = Excerpt { bytes: b"{\"ok\":\"\\u0000\0\"}".to_vec(), full_length: 9_999, complete: false };
    let late =
        record.acknowledged_late(&writer("t100", at(31_000)), number, Some(answer)).unwrap().into_after();
    assert_eq!(report(200, 1).outcome, Outcome::Delivered);
    let indent = " ".repeat(28);
    check(
        &late,
        &attempts,
        &[
            "  2026-01-01T00:00:31.000Z  attempt 1      delivered: the recipient acknowledged it, after its claim was lost (late)",
            &format!(
                "{indent}  said         \"{{\"ok\":\"\\\\u0000\\u0000\"}}\" (9999 bytes or more; the answer did not end)"
            ),
            "  next         nothing: the recipient acknowledged attempt 1, late: its claim had been lost, but the effect is real",
        ],
    );
}
