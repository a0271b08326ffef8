//! Which transition is legal from which record: every pair, and what each keeps.

use crate::build::{
    T0, at, by, claimed, delivered, delivery, look, message, pending, policy, report, revision, secs, terms,
};
use waybill_domain::attempt::NotSent;
use waybill_domain::delivery::{Change, Record, State};
use waybill_domain::destination::OnAmbiguous;
use waybill_domain::ending::{DeadLetterReason, Disposition, Ending};
use waybill_domain::hold::{Held, HoldReason};
use waybill_domain::identity::AttemptNumber;
use waybill_domain::outcome::{FailureClass, Seen};
use waybill_domain::settle::{interrupted, settle, settle_by};
use waybill_domain::transition::{ClaimEnd, IllegalTransition};

const EXHAUSTED: Ending = Ending::DeadLettered(DeadLetterReason::AttemptsExhausted);

fn retryable() -> Record {
    let record = claimed(&pending(Some(at(3600))), T0);
    let settlement = settle(
        &record,
        &report(Seen::Status(503), None, T0),
        &terms(OnAmbiguous::Retry),
        &by("m1", "t1", T0),
        0.5,
    );
    settlement.unwrap().change.into_after()
}

fn succeeded() -> Record {
    claimed(&pending(None), T0).settle_delivered(&by("m1", "t1", T0), None).unwrap().into_after()
}

fn dead() -> Record {
    pending(None).end(&by("m1", "t1", T0), EXHAUSTED, &look()).unwrap().into_after()
}

fn expired() -> Record {
    pending(Some(at(1))).end(&by("m1", "t1", at(1)), Ending::Expired, &look()).unwrap().into_after()
}

fn held() -> Record {
    let held = Held { reason: HoldReason::Paused, since: T0 };
    pending(None).hold(&by("m1", "t1", T0), held).unwrap().into_after()
}

type Attempted = fn(&Record) -> Result<Change, IllegalTransition>;

/// Every transition, tried at T0 by the copy m1 with the token t1.
const TRANSITIONS: [(&str, Attempted); 12] = [
    ("claim", |r| r.claim(message("m1"), crate::build::token("t1"), T0, secs(15), revision())),
    ("settle_delivered", |r| r.settle_delivered(&by("m1", "t1", T0), None)),
    ("settle_not_sent", |r| r.settle_not_sent(&by("m1", "t1", T0), NotSent::LeaseTooShort, &look())),
    ("end", |r| r.end(&by("m1", "t1", T0), EXHAUSTED, &look())),
    ("hold", |r| r.hold(&by("m1", "t1", T0), Held { reason: HoldReason::Gate, since: T0 })),
    ("lift", |r| r.lift(T0, &look())),
    ("looked", |r| r.looked(T0, &look())),
    ("told", Record::told),
    ("settle_confirmed", |r| r.settle_confirmed(&by("m1", "t1", T0), None)),
    ("confirmed_late", |r| r.confirmed_late(&by("m1", "t1", T0), AttemptNumber::FIRST, None)),
    ("acknowledged_late", |r| r.acknowledged_late(&by("m1", "t1", T0), AttemptNumber::FIRST, None)),
    ("release", |r| r.release("rdr_1".into(), &policy(7), T0, T0, &look())),
];

#[test]
fn only_legal_transitions_can_be_made() {
    let rows: [(&str, Record, &[&str]); 8] = [
        ("pending", pending(None), &["claim", "end", "hold", "looked"]),
        ("claimed by t1", claimed(&pending(None), T0), &["settle_delivered", "settle_not_sent", "looked"]),
        ("held", held(), &["claim", "end", "hold", "lift"]),
        (
            "retryable",
            retryable(),
            &["claim", "end", "hold", "looked", "confirmed_late", "acknowledged_late"],
        ),
        (
            "claimed again",
            claimed(&retryable(), T0),
            &["settle_delivered", "settle_not_sent", "looked", "confirmed_late", "acknowledged_late"],
        ),
        ("succeeded", succeeded(), &[]),
        ("dead-lettered", dead(), &["looked", "told", "confirmed_late", "acknowledged_late", "release"]),
        ("expired", expired(), &["looked", "told", "confirmed_late", "acknowledged_late"]),
    ];
    for (name, record, legal) in rows {
        for (transition, attempted) in TRANSITIONS {
            let result = attempted(&record);
            assert_eq!(result.is_ok(), legal.contains(&transition), "{name}: {transition}: {result:?}");
            match result {
                Ok(change) => {
                    assert_eq!(change.expected().state, record.state);
                    assert_eq!(change.expected().revision, record.revision);
                    assert_eq!(change.after().revision, record.revision + 1);
                    assert_eq!(change.after().delivery, record.delivery, "what was asked for never changes");
                    assert!(change.after().attempts_made >= record.attempts_made);
                }
                Err(illegal) => {
                    assert!(
                        illegal.to_string().contains(record.state.as_str()),
                        "{illegal} names both states"
                    );
                }
            }
        }
    }
}

#[test]
fn a_claim_is_settled_by_its_own_token_or_once_it_has_lapsed() {
    let record = claimed(&pending(None), T0);
    let claim = record.claim.clone().unwrap();
    assert_eq!(claim.lease_until, at(15 + 5), "the attempt's timeout and the margin");
    assert!(record.settle_delivered(&by("m1", "t2", T0), None).is_err(), "another token");

    let terms = terms(OnAmbiguous::Retry);
    let settle_lapsed = |now| {
        let by = by("m2", "t2", now);
        settle_by(&record, &interrupted(&record, &terms, &by, 0.0)?, ClaimEnd::Lapsed, &terms, &by)
    };
    assert!(settle_lapsed(at(19)).is_err(), "the claim is alive");
    let after = settle_lapsed(at(20)).unwrap().into_after();
    assert_eq!((after.state, after.attempts_made), (State::Retryable, 1), "it counts");
    assert_eq!(after.copy, Some(message("m2")), "who settles owes the hand-off");
    assert_eq!(after.last_failure.as_ref().unwrap().failure.class, FailureClass::Interrupted);
}

#[test]
fn a_claim_touches_no_index_key() {
    let before = pending(Some(at(3600)));
    let after = claimed(&before, T0);
    assert_eq!(
        (after.state, after.look_at, after.due_at, after.hold.is_some(), after.ended_at),
        (before.state, before.look_at, before.due_at, before.hold.is_some(), before.ended_at)
    );
}

#[test]
fn a_settle_keeps_its_copy_and_its_token() {
    let after = retryable();
    assert_eq!(after.copy, Some(message("m1")));
    assert_eq!(after.settled_token, Some(crate::build::token("t1")));
    assert_eq!(after.claim, None);
}

#[test]
fn what_was_not_sent_counts_no_attempt_and_moves_the_due_time() {
    let record = claimed(&retryable(), at(10));
    let rows =
        [(NotSent::LeaseTooShort, at(10)), (NotSent::DeadlinePassed, at(10)), (NotSent::NoResources, at(15))];
    for (why, due_at) in rows {
        let after = record.settle_not_sent(&by("m1", "t1", at(10)), why, &look()).unwrap().into_after();
        assert_eq!((after.state, after.attempts_made), (State::Retryable, 1));
        assert!(after.due_at > record.due_at, "the copy that came for the old due time never claims again");
        assert_eq!(after.due_at, due_at, "{why:?}");
    }
}

#[test]
fn c109_a_release_goes_on_counting_under_a_fresh_budget() {
    let dead = dead();
    let released = dead.release("rdr_1".into(), &policy(7), at(60), at(90), &look()).unwrap().into_after();
    assert_eq!(released.state, State::Retryable);
    assert_eq!(released.attempts_made, dead.attempts_made);
    assert_eq!(released.attempts_before, dead.attempts_made, "backoff begins anew");
    assert_eq!(released.attempt_limit, dead.attempts_made + 7);
    assert_eq!(released.due_at, at(90));
    assert_eq!(released.horizon_at, at(90 + 86_400));
    assert_eq!((released.redrives, released.redrive_run.as_deref()), (1, Some("rdr_1")));
    assert_eq!(released.last_failure, dead.last_failure, "nothing is erased");
    assert!(released.look_at.is_some(), "back in the open index");
}

#[test]
fn a_late_acknowledgement_overrules_every_conclusion_and_is_marked_late() {
    for record in [retryable(), claimed(&retryable(), T0), dead(), expired()] {
        let sent = record.claim.as_ref().map_or(record.attempts_made, |claim| claim.attempt.get());
        let late = record.acknowledged_late(&by("m1", "t9", at(60)), AttemptNumber::FIRST, None);
        let after = late.unwrap().into_after();
        assert_eq!((after.state, after.attempts_made), (State::Succeeded, sent), "what may have left counts");
        assert_eq!(
            after.disposition,
            Some(Disposition::Delivered { attempt: AttemptNumber::FIRST, late: true, by_look_up: false })
        );
        assert_eq!((after.look_at, after.claim.as_ref()), (None, None), "nothing is left to be done");
    }
}

#[test]
fn an_ending_stays_in_the_open_index_until_the_dlq_was_told() {
    for record in [dead(), expired()] {
        assert!(record.look_at.is_some() && !record.dlq_told);
        let told = record.told().unwrap().into_after();
        assert!(told.look_at.is_none() && told.dlq_told);
    }
}

#[test]
fn a_hold_keeps_state_and_due_time_and_leaves_the_open_index() {
    let before = retryable();
    let held = Held { reason: HoldReason::Quarantine, since: at(1) };
    let after = before.hold(&by("m1", "t2", at(1)), held).unwrap().into_after();
    assert_eq!((after.state, after.due_at), (before.state, before.due_at));
    assert_eq!((after.look_at, after.attempts_made), (None, before.attempts_made));
    let lifted = after.lift(at(2), &look()).unwrap().into_after();
    assert_eq!((lifted.state, lifted.due_at), (before.state, before.due_at), "never before Retry-After");
    assert!(lifted.look_at.is_some());
}

#[test]
fn delivered_is_final() {
    let record = claimed(&pending(None), T0);
    let settlement = settle(&record, &delivered(), &terms(OnAmbiguous::Retry), &by("m1", "t1", at(3)), 0.5);
    let settlement = settlement.unwrap();
    assert_eq!(settlement.attempt, None, "success leaves no evidence but the record");
    let after = settlement.change.into_after();
    assert_eq!((after.state, after.attempts_made, after.ended_at), (State::Succeeded, 1, Some(at(3))));
}

#[test]
fn a_new_delivery_waits_for_not_before_and_its_horizon_counts_from_there() {
    let mut parked = delivery(None);
    parked.not_before = Some(at(90 * 86_400));
    let record = Record::new(parked, &policy(7), revision(), &look());
    assert_eq!(record.due_at, at(90 * 86_400));
    assert_eq!(record.horizon_at, at(91 * 86_400));
    assert_eq!(record.look_at, Some(at(90 * 86_400 - 900)), "the queue's window before it is due");
}
