//! What a tick of the reconciler says that it did, and where it stops.

use futures::FutureExt as _;
use waybill_domain::delivery::{Change, Record};
use waybill_domain::destination::EventPattern;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::hold::{HoldReason, HoldRule};
use waybill_domain::repair::LookRules;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Clock as _, Ledger, Ports, Queue};
use waybill_service::reconcile::{Reconciler, TickLimits, TickReport};
use waybill_testkit::conformance::fixture;
use waybill_testkit::faults::{Call, Stage, Staged};
use waybill_testkit::memory::MemoryLedger;

use crate::logged::{logged, messages};
use crate::losses::Refusing;
use crate::world::{World, with};

pub(crate) const MINUTE: DurationMs = DurationMs::from_secs(60);

/// Six minutes after the beginning.
const DEADLINE: &str = r#""deadline":"2026-08-10T06:06:00Z""#;

/// Publishes so many events whose wake-ups are lost.
fn unwoken(world: &World, events: usize, fields: &str) -> Vec<Record> {
    let ids = (0..events).map(|n| world.published(&with(&format!("e{n}"), fields), []));
    let records = ids.map(|id| world.record(&id)).collect();
    world.ports.queue.purge();
    records
}

/// The same, and each is held by a person as long as that person says.
pub(crate) fn held(world: &mut World, events: usize, fields: &str) -> Vec<Record> {
    let types = EventPattern::parse("lease.paid").unwrap();
    world.config.holds = vec![HoldRule::Type { types, payload_version: None, tenant: None }];
    let ids: Vec<_> = (0..events).map(|n| world.published(&with(&format!("e{n}"), fields), [])).collect();
    world.work_until_quiet();
    ids.iter().map(|id| world.record(id)).collect()
}

fn dead_lettered(record: &Record, now: TimeMs) -> Change {
    fixture::dead_lettered(record, DeadLetterReason::AttemptsExhausted, now)
}

fn apply(ledger: &MemoryLedger, change: Change) {
    ledger.apply(&change).now_or_never().expect("the memory answers at once").expect("it is there");
}

pub(crate) fn tick(
    world: &World,
    ledger: &impl Ledger,
    queue: &impl Queue,
    limits: TickLimits,
) -> TickReport {
    let Ports { clock, dice, .. } = &world.ports;
    let reconciler = Reconciler { ledger, queue, clock, dice };
    let (report, lines) = logged(|| world.block(reconciler.tick(&world.config, limits)).unwrap());
    let TickReport { looked_at, working, held, .. } = report;
    let has_done_nothing = counts(report) == TickReport { looked_at, working, held, ..NOTHING };
    let says_what_it_did = messages(&lines).contains(&"reconciled".to_owned());
    assert_eq!(says_what_it_did, !has_done_nothing, "{report:?}");
    report
}

/// What was counted, without how long anything has waited.
pub(crate) fn counts(report: TickReport) -> TickReport {
    let oldest_held = [DurationMs::ZERO; HoldReason::ALL.len()];
    TickReport { oldest_due: DurationMs::ZERO, least_slack: None, oldest_held, ..report }
}

pub(crate) const NOTHING: TickReport = TickReport {
    looked_at: 0,
    woken: 0,
    ended: 0,
    told: 0,
    lifted: 0,
    working: 0,
    held: 0,
    raced: 0,
    failed: 0,
    oldest_due: DurationMs::ZERO,
    least_slack: None,
    oldest_held: [DurationMs::ZERO; HoldReason::ALL.len()],
    more: false,
};

#[test]
fn a_tick_counts_each_delivery_by_what_became_of_it() {
    type Before = fn(&mut World);
    let rows: [(&str, Before, TickReport); 8] = [
        (
            "stale",
            |world| {
                unwoken(world, 2, "");
                world.clock.advance(MINUTE.times(6));
            },
            TickReport { woken: 2, ..NOTHING },
        ),
        (
            "an attempt is being made",
            |world| {
                let records = unwoken(world, 2, "");
                world.clock.advance(MINUTE.times(6));
                for record in records {
                    apply(&world.ports.ledger, fixture::claim(&record, "worker", world.clock.now()));
                }
            },
            TickReport { working: 2, ..NOTHING },
        ),
        (
            "its worker died",
            |world| {
                for record in unwoken(world, 2, "") {
                    apply(&world.ports.ledger, fixture::claim(&record, "worker", world.clock.now()));
                }
                world.clock.advance(MINUTE.times(6));
            },
            TickReport { woken: 2, ..NOTHING },
        ),
        (
            "past its deadline",
            |world| {
                unwoken(world, 2, DEADLINE);
                world.clock.advance(MINUTE.times(6));
            },
            TickReport { ended: 2, ..NOTHING },
        ),
        (
            "too near to its deadline for an attempt",
            |world| {
                unwoken(world, 2, DEADLINE);
                world.clock.advance(DurationMs::from_secs(359));
            },
            TickReport { ended: 2, ..NOTHING },
        ),
        (
            "the DLQ was not told",
            |world| {
                for record in unwoken(world, 2, "") {
                    apply(&world.ports.ledger, dead_lettered(&record, world.clock.now()));
                }
                world.clock.advance(MINUTE.times(6));
            },
            TickReport { told: 2, ..NOTHING },
        ),
        ("held, and its hold matches", |world| drop(held(world, 2, "")), TickReport { held: 2, ..NOTHING }),
        (
            "held, and its hold was lifted",
            |world| {
                held(world, 2, "");
                world.config.holds.clear();
            },
            TickReport { lifted: 2, ..NOTHING },
        ),
    ];
    for (name, before, done) in rows {
        let mut world = World::new();
        before(&mut world);
        let report = tick(&world, &world.ports.ledger, &world.ports.queue, TickLimits::default());
        assert_eq!(counts(report), TickReport { looked_at: 2, ..done }, "{name}");
    }
}

#[test]
fn what_another_was_faster_with_is_raced_and_nothing_is_done_about_it() {
    type Before = fn(&mut World) -> Vec<Record>;
    type ByAnother = fn(&Record, TimeMs, &LookRules) -> Change;
    let looked: ByAnother = |record, now, rules| record.looked(now, rules).unwrap();
    let lifted: ByAnother = |record, now, rules| record.lift(now, rules).unwrap();
    let rows: [(&str, Before, ByAnother); 5] = [
        (
            "stale",
            |world| {
                let records = unwoken(world, 1, "");
                world.clock.advance(MINUTE.times(6));
                records
            },
            looked,
        ),
        (
            "past its deadline",
            |world| {
                let records = unwoken(world, 1, DEADLINE);
                world.clock.advance(MINUTE.times(6));
                records
            },
            looked,
        ),
        (
            "the DLQ was not told",
            |world| {
                let records = unwoken(world, 1, "");
                let end = |record| {
                    let change = dead_lettered(record, world.clock.now());
                    let ended = change.after().clone();
                    apply(&world.ports.ledger, change);
                    ended
                };
                let ended = records.iter().map(end).collect();
                world.clock.advance(MINUTE.times(6));
                ended
            },
            looked,
        ),
        (
            "held, and its hold was lifted",
            |world| {
                let records = held(world, 1, "");
                world.config.holds.clear();
                records
            },
            lifted,
        ),
        (
            "held past its deadline",
            |world| {
                let records = held(world, 1, DEADLINE);
                world.clock.advance(MINUTE.times(6));
                records
            },
            lifted,
        ),
    ];
    for (name, before, by_another) in rows {
        let mut world = World::new();
        let records = before(&mut world);
        let Ports { ledger, queue, clock, .. } = &world.ports;
        let (other, now, rules) = (ledger.clone(), clock.now(), world.config.look_rules(queue.window()));
        let stage = Stage::overtaken(Call::Apply, move || {
            records.iter().for_each(|record| apply(&other, by_another(record, now, &rules)));
        });
        let report = tick(&world, &Staged::new(ledger.clone(), &stage), queue, TickLimits::default());
        assert_eq!(counts(report), TickReport { looked_at: 1, raced: 1, ..NOTHING }, "{name}");
        assert!(queue.messages().is_empty() && queue.dead_letters().is_empty(), "{name}");
    }
}

#[test]
fn what_an_index_that_lags_still_names_is_looked_at_and_left() {
    let mut world = World::new();
    world.ports.ledger.let_indexes_lag(true);
    unwoken(&world, 2, "");
    world.clock.advance(MINUTE.times(6));
    assert_eq!(tick(&world, &world.ports.ledger, &world.ports.queue, TickLimits::default()).woken, 2);
    world.config.holds = vec![HoldRule::All];
    let again = tick(&world, &world.ports.ledger, &world.ports.queue, TickLimits::default());
    // Once for each of the two indexes.
    assert_eq!(counts(again), TickReport { looked_at: 4, raced: 2, ..NOTHING });
}

#[test]
fn what_cannot_be_woken_fails_alone_and_is_counted() {
    let world = World::new();
    unwoken(&world, 2, "");
    world.clock.advance(MINUTE.times(6));
    let refusing = Refusing(&world.ports.queue);
    let report = tick(&world, &world.ports.ledger, &refusing, TickLimits::default());
    assert_eq!(counts(report), TickReport { looked_at: 2, failed: 2, ..NOTHING });
}

#[test]
fn a_tick_stops_at_its_pages_and_at_its_time_and_says_that_there_is_more() {
    type Before = fn(&mut World);
    let due: Before = |world| {
        unwoken(world, 5, "");
        world.clock.advance(MINUTE.times(6));
    };
    let kept_back: Before = |world| drop(held(world, 5, ""));
    // Pages of two; each call of the ledger takes a second where the time is short.
    let pages = |pages| TickLimits { pages, page_size: 2, ..TickLimits::default() };
    type Row = (&'static str, Before, TickLimits, Option<u64>, usize, bool);
    let rows: [Row; 7] = [
        ("due, within its pages", due, pages(3), None, 5, false),
        ("due, beyond its pages", due, pages(2), None, 4, true),
        ("held, within its pages", kept_back, pages(3), None, 5, false),
        ("held, beyond its pages", kept_back, pages(2), None, 4, true),
        ("due, within its time", due, TickLimits::default(), Some(60), 5, false),
        ("due, beyond its time", due, TickLimits::default(), Some(9), 3, true),
        ("held, beyond its time", kept_back, TickLimits::default(), Some(5), 2, true),
    ];
    for (name, before, limits, time_s, looked_at, more) in rows {
        let mut world = World::new();
        before(&mut world);
        let until = time_s.map(|time_s| world.clock.now().plus(DurationMs::from_secs(time_s)));
        let pace = DurationMs::from_secs(u64::from(time_s.is_some()));
        let ledger = Staged::new(world.ports.ledger.clone(), &Stage::slow(&world.clock, pace));
        let report = tick(&world, &ledger, &world.ports.queue, TickLimits { until, ..limits });
        assert_eq!((report.looked_at, report.more), (looked_at, more), "{name}");
    }
}

#[test]
fn what_is_being_sent_is_not_late() {
    let world = World::new();
    let record = unwoken(&world, 1, "").remove(0);
    world.clock.advance(MINUTE.times(6));
    apply(&world.ports.ledger, fixture::claim(&record, "worker", world.clock.now()));
    assert_eq!(world.reconcile().oldest_due, DurationMs::ZERO);
}
