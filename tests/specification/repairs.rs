//! The reconciler: when a record is looked at, what is done about it then, and what is parked until then.

use waybill_domain::delivery::{Delivery, Record};
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::handoff::{HandOff, hand_off};
use waybill_domain::hold::{Held, HoldReason, HoldRule};
use waybill_domain::repair::{HeldRepair, Repair, repair, repair_held};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::build::{T0, at, by, claimed, delivery, look, pending, policy, revision, secs};

const MS: DurationMs = DurationMs::from_ms(1);
const MINIMUM_WINDOW: DurationMs = DurationMs::from_secs(2);

/// Due at `due` seconds, with this deadline.
fn due(due: u64, deadline: Option<u64>) -> Record {
    let delivery = Delivery { not_before: Some(at(due)), ..delivery(deadline.map(at)) };
    Record::new(delivery, &policy(7), revision(), &look())
}

fn ended(ending: Ending) -> Record {
    pending(None).end(&by("m1", "t1", T0), ending, &look()).unwrap().into_after()
}

fn held(record: &Record) -> Record {
    let held = Held { reason: HoldReason::Gate, since: T0 };
    record.hold(&by("m1", "t1", T0), held).unwrap().into_after()
}

/// The queue can hold 900 s, stale is 300 s past due, the rescue comes 600 s before the deadline.
#[test]
fn a_record_is_looked_at_when_it_would_be_stale_when_its_wake_up_is_to_be_sent_or_in_time_for_its_rescue() {
    let rows = [
        ("stale", due(0, None), Some(at(300))),
        ("stale, long before its rescue", due(0, Some(3600)), Some(at(300))),
        ("the rescue comes first", due(0, Some(700)), Some(at(100))),
        ("the rescue is now: not again", due(0, Some(600)), Some(at(300))),
        ("the rescue has been: at the deadline at the latest", due(0, Some(200)), Some(at(200))),
        ("the wake-up can be sent at once", due(900, None), Some(at(1200))),
        ("parked until its wake-up can be sent", due(901, None), Some(at(1))),
        ("parked", due(2000, None), Some(at(1100))),
        ("parked, and the rescue comes first", due(2000, Some(1600)), Some(at(1000))),
        ("held", held(&pending(None)), None),
        (
            "delivered",
            claimed(&pending(None), T0).settle_delivered(&by("m1", "t1", T0), None).unwrap().into_after(),
            None,
        ),
        ("dead-lettered", ended(Ending::DeadLettered(DeadLetterReason::DestinationRemoved)), Some(at(300))),
        ("expired", ended(Ending::Expired), Some(at(300))),
        ("told", ended(Ending::Expired).told().unwrap().into_after(), None),
    ];
    for (what, record, expected) in rows {
        assert_eq!(record.look_at, expected, "{what}");
    }
}

#[test]
fn patience_doubles_with_each_look_without_progress() {
    for (looks, seconds) in
        [(0, 300), (1, 600), (2, 1200), (16, 300 << 16), (17, 300 << 16), (u32::MAX, 300 << 16)]
    {
        assert_eq!(look().patience(looks), secs(seconds), "{looks}");
    }
    let mut record = pending(None);
    for (now, next) in [(300, 900), (900, 2100), (2100, 4500)] {
        record = record.looked(at(now), &look()).unwrap().into_after();
        assert_eq!(record.look_at, Some(at(next)));
    }
}

#[test]
fn what_is_due_for_a_look_is_woken_ended_or_told() {
    let removed = Ending::DeadLettered(DeadLetterReason::DestinationRemoved);
    let worked_on = claimed(&pending(None), at(290));
    let late = due(0, Some(3600));
    let told = ended(removed).told().unwrap().into_after();
    let horizon = pending(None).horizon_at;
    let rows: [(&str, &Record, TimeMs, Repair); 14] = [
        ("not yet", &pending(None), at(300).minus(MS), Repair::NotDue),
        ("stale", &pending(None), at(300), Repair::Wake),
        ("held: by its own index", &held(&pending(None)), at(9000), Repair::NotDue),
        ("its DLQ was not told", &ended(removed), at(300), Repair::TellDlq),
        ("not yet to be told", &ended(removed), at(299), Repair::NotDue),
        ("told", &told, at(9000), Repair::NotDue),
        ("at work", &worked_on, at(300), Repair::Working),
        ("its claim lapsed", &worked_on, at(316), Repair::Wake),
        ("just time for an attempt", &late, at(3598), Repair::Wake),
        ("too late for one", &late, at(3598).plus(MS), Repair::End(Ending::Expired)),
        ("past its deadline", &late, at(3600), Repair::End(Ending::Expired)),
        ("past its deadline, and claimed", &claimed(&late, at(3590)), at(3600), Repair::Working),
        ("just before the horizon", &pending(None), horizon.minus(MINIMUM_WINDOW), Repair::Wake),
        (
            "the horizon",
            &pending(None),
            horizon,
            Repair::End(Ending::DeadLettered(DeadLetterReason::HorizonReached)),
        ),
    ];
    for (what, record, now, expected) in rows {
        assert_eq!(repair(record, MINIMUM_WINDOW, now), expected, "{what}");
    }
}

#[test]
fn what_is_held_stays_until_no_hold_matches_or_its_time_is_over() {
    let gate = [HoldRule::All];
    let (open, late) = (held(&pending(None)), held(&due(0, Some(3600))));
    let rows: [(&str, &Record, &[HoldRule], TimeMs, HeldRepair); 6] = [
        ("still held", &open, &gate, at(300), HeldRepair::Stay),
        ("lifted", &open, &[], at(300), HeldRepair::Lift),
        ("too late", &late, &gate, at(3599), HeldRepair::End(Ending::Expired)),
        ("too late, and lifted", &late, &[], at(3599), HeldRepair::End(Ending::Expired)),
        ("not held", &pending(None), &[], at(300), HeldRepair::Stay),
        ("ended", &ended(Ending::Expired), &[], at(300), HeldRepair::Stay),
    ];
    for (what, record, holds, now, expected) in rows {
        assert_eq!(repair_held(record, holds, MINIMUM_WINDOW, now), expected, "{what}");
    }
}

#[test]
fn a_wake_up_waits_in_the_queue_or_is_parked_until_the_queue_can_hold_it() {
    let delay_of = |record: &Record, now: TimeMs| match hand_off(record, secs(900), now) {
        HandOff::Parked => None,
        HandOff::WakeUp { delay, .. } => Some(delay),
        other => panic!("{other:?}"),
    };
    let rows = [
        ("due", due(0, None), T0, Some(secs(0))),
        ("overdue", due(0, None), at(50), Some(secs(0))),
        ("as long as the queue can hold, looked at before", due(900, Some(1300)), T0, Some(secs(900))),
        ("longer", due(900, Some(1300)), T0.minus(MS), None),
        ("longer, and looked at too late", due(900, None), T0.minus(secs(100)), Some(secs(900))),
    ];
    for (what, record, now, expected) in rows {
        assert_eq!(delay_of(&record, now), expected, "{what}");
    }
}
