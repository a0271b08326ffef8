//! The table of a wake-up's way: what the record says, and the answer.

use crate::build::{T0, at, by, claimed, destination, look, message, pending, report, secs, terms};
use waybill_domain::admit::{Admission, Left, Scene, Suppressed, admit};
use waybill_domain::delivery::Record;
use waybill_domain::destination::{Destination, OnAmbiguous};
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::envelope::WakeUp;
use waybill_domain::hold::{Held, HoldReason, HoldRule};
use waybill_domain::identity::AttemptNumber;
use waybill_domain::outcome::Seen;
use waybill_domain::settle::settle;
use waybill_domain::time::{DurationMs, TimeMs};

struct Row<'a> {
    says: &'a str,
    record: Record,
    /// For another record's attempt or due time than `record`'s, where that matters.
    wakeup: Option<WakeUp>,
    copy: &'a str,
    destination: Option<Destination>,
    holds: Vec<HoldRule>,
    time_left: DurationMs,
    now: TimeMs,
    answer: Admission,
}

fn row(says: &str, record: Record, answer: Admission) -> Row<'_> {
    Row {
        says,
        record,
        wakeup: None,
        copy: "m1",
        destination: Some(destination()),
        holds: vec![],
        time_left: secs(60),
        now: T0,
        answer,
    }
}

fn check(row: Row<'_>) {
    let wakeup = row.wakeup.unwrap_or_else(|| WakeUp::for_next_attempt(&row.record));
    let scene = Scene {
        destination: row.destination.as_ref(),
        holds: &row.holds,
        time_left: row.time_left,
        now: row.now,
    };
    assert_eq!(admit(&row.record, &wakeup, &message(row.copy), scene), row.answer, "{}", row.says);
}

fn dead() -> Record {
    let ending = Ending::DeadLettered(DeadLetterReason::AttemptsExhausted);
    pending(None).end(&by("m1", "t1", T0), ending, &look()).unwrap().into_after()
}

fn succeeded() -> Record {
    claimed(&pending(None), T0).settle_delivered(&by("m1", "t1", T0), None).unwrap().into_after()
}

fn failed_at(record: &Record, now: TimeMs, retry_after: Option<u64>) -> Record {
    let report = report(Seen::Status(503), retry_after, now);
    let settlement =
        settle(&claimed(record, now), &report, &terms(OnAmbiguous::Retry), &by("m1", "t1", now), 0.0);
    settlement.unwrap().change.into_after()
}

fn held() -> Record {
    let held = Held { reason: HoldReason::Paused, since: T0 };
    pending(None).hold(&by("m1", "t1", T0), held).unwrap().into_after()
}

fn claim_first(timeout_s: u64) -> Admission {
    Admission::Claim { attempt: AttemptNumber::FIRST, timeout: secs(timeout_s) }
}

#[test]
fn the_first_matching_row_of_the_table_answers() {
    use Admission as A;
    use Suppressed as S;
    let paused = vec![HoldRule::Destination(destination().name)];
    let gated = vec![HoldRule::All];
    let removed = A::End(Ending::DeadLettered(DeadLetterReason::DestinationRemoved));
    let horizon = A::End(Ending::DeadLettered(DeadLetterReason::HorizonReached));
    let retried = failed_at(&pending(None), T0, None);
    let waiting = failed_at(&pending(None), T0, Some(120));
    let old = Some(WakeUp::for_next_attempt(&pending(None)));
    let mut other_due = WakeUp::for_next_attempt(&retried);
    other_due.due_at = at(1);

    let rows = [
        row("final, its copy", succeeded(), A::RepeatHandOff(S::Final)),
        Row { copy: "m2", ..row("final, another copy", succeeded(), A::Acknowledge(S::Final)) },
        row("dead-lettered, its copy", dead(), A::RepeatHandOff(S::DeadLettered)),
        Row { copy: "m2", ..row("dead-lettered, another copy", dead(), A::Acknowledge(S::DeadLettered)) },
        row(
            "live claim, its own copy",
            claimed(&pending(None), T0),
            A::Leave(Left::OwnClaim { until: at(20) }),
        ),
        Row {
            copy: "m2",
            ..row("live claim, another copy", claimed(&pending(None), T0), A::Acknowledge(S::Claimed))
        },
        Row { now: at(20), ..row("lapsed claim", claimed(&pending(None), T0), A::SettleInterrupted) },
        Row {
            now: at(4000),
            ..row(
                "lapsed claim, deadline passed: first the attempt is settled",
                claimed(&pending(Some(at(3600))), T0),
                A::SettleInterrupted,
            )
        },
        Row { now: at(3600), ..row("deadline reached", pending(Some(at(3600))), A::End(Ending::Expired)) },
        Row {
            now: at(3599),
            ..row("less than the window left", pending(Some(at(3600))), A::End(Ending::Expired))
        },
        Row { now: at(3598), ..row("just the window left", pending(Some(at(3600))), claim_first(2)) },
        Row { now: at(86_400), ..row("horizon reached", pending(None), horizon.clone()) },
        Row {
            now: at(86_400),
            wakeup: old.clone(),
            ..row("horizon reached, superseded copy", retried.clone(), horizon)
        },
        Row {
            wakeup: old.clone(),
            ..row("older attempt, its copy", retried.clone(), A::RepeatHandOff(S::Superseded))
        },
        Row {
            copy: "m2",
            wakeup: old.clone(),
            ..row("older attempt, another copy", retried.clone(), A::Acknowledge(S::Superseded))
        },
        Row {
            copy: "m2",
            wakeup: Some(other_due),
            ..row("another due time", retried.clone(), A::Acknowledge(S::Superseded))
        },
        Row {
            copy: "m2",
            wakeup: old,
            destination: None,
            ..row("superseded comes before removed", retried.clone(), A::Acknowledge(S::Superseded))
        },
        Row {
            destination: None,
            holds: gated.clone(),
            ..row("removed comes before any hold", pending(None), removed.clone())
        },
        Row {
            destination: None,
            holds: gated.clone(),
            ..row("removed, and held: a copy of it ends it, too", held(), removed.clone())
        },
        Row { destination: None, ..row("destination removed", pending(None), removed) },
        Row { holds: paused.clone(), ..row("paused", pending(None), A::Hold(HoldReason::Paused)) },
        Row { holds: gated, ..row("gated while held as paused", held(), A::Hold(HoldReason::Gate)) },
        Row { holds: paused.clone(), copy: "m2", ..row("held already", held(), A::Acknowledge(S::Held)) },
        row("held, no hold matches any more", held(), A::Lift),
        Row {
            holds: paused,
            ..row("paused and due later: the hold counts", waiting.clone(), A::Hold(HoldReason::Paused))
        },
        row("due later", waiting.clone(), A::Wait),
        Row {
            now: at(120),
            copy: "m2",
            ..row("due", waiting, A::Claim { attempt: AttemptNumber::after(1), timeout: secs(15) })
        },
        Row {
            time_left: secs(15),
            ..row("less time than one attempt needs", pending(None), A::Leave(Left::TimeShort))
        },
        Row { time_left: secs(16), ..row("just the time", pending(None), claim_first(15)) },
        Row {
            now: at(3590),
            ..row("the timeout is cut to what the deadline leaves", pending(Some(at(3600))), claim_first(10))
        },
    ];
    rows.into_iter().for_each(check);
}

#[test]
fn a_redelivery_counts_for_nothing() {
    // Neither the domain nor the service is even told the receive count.
    let consume = include_str!("../../shared/service/src/consume.rs");
    let settling = include_str!("../../shared/service/src/consume/settling.rs");
    let admit = include_str!("../../shared/domain/src/admit.rs");
    assert!([consume, settling, admit].iter().all(|source| !source.contains("receive_count")));
}
