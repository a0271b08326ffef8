//! A destination's budget: who gets a slot, when it comes back, and how soon the next may start.

use waybill_domain::authority::Book;
use waybill_domain::budget::{Budget, Rate, Usage, Wanted};
use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId, WriteToken};
use waybill_domain::suspension::{Heard, Sign, SuspendRules};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::build::{T0, secs};

pub(crate) const LEASE: DurationMs = DurationMs::from_secs(25);

fn slots(concurrency: u32) -> Budget {
    Budget::of(Some(concurrency), None).unwrap()
}

pub(crate) fn paced(concurrency: u32, rate: &str) -> Budget {
    Budget::of(Some(concurrency), Some(Rate::parse("rate", rate).unwrap())).unwrap()
}

pub(crate) fn delivery(name: &str) -> DeliveryId {
    let tenant = TenantId::parse("acme").unwrap();
    DeliveryId::derive(&tenant, &EventId::parse(name).unwrap(), &DestinationName::parse("books").unwrap())
}

/// `a`, `b`… are deliveries and the tokens of their claims; what begins with `r` is a redrive.
pub(crate) fn wanted(name: &str) -> Wanted {
    Wanted { token: token(name), delivery: delivery(name), is_redrive: name.starts_with('r') }
}

pub(crate) fn token(name: &str) -> WriteToken {
    WriteToken::parse(name).unwrap()
}

pub(crate) fn ms(ms: u64) -> TimeMs {
    T0.plus(DurationMs::from_ms(ms))
}

/// What happens, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// These ask together; these get a slot.
    Take(&'static str, &'static str),
    /// These are done with.
    Release(&'static str),
    /// A held one is about to be released: when it may start, in milliseconds from the beginning.
    Reserve(&'static str, Option<u64>),
    /// So many milliseconds after the beginning.
    At(u64),
    /// So many slots are free.
    Free(usize),
}

#[track_caller]
pub(crate) fn check(what: &str, budget: Budget, steps: &[Step]) {
    let (mut usage, mut now) = (Usage::default(), T0);
    let each = |names: &'static str| names.split_whitespace();
    for step in steps {
        match *step {
            Step::Take(asking, granted) => {
                let all: Vec<Wanted> = each(asking).map(wanted).collect();
                let answers = usage.take(&budget, &all, now, LEASE);
                let got: Vec<&str> =
                    each(asking).zip(answers).filter(|(_, a)| a.is_some()).map(|(n, _)| n).collect();
                assert_eq!(got, each(granted).collect::<Vec<_>>(), "{what}: {step:?}");
            }
            Step::Release(names) => usage.release(&each(names).map(token).collect::<Vec<_>>()),
            Step::Reserve(name, from) => {
                let got = usage.reserve(&budget, &delivery(name), name.starts_with('r'), now);
                assert_eq!(got, from.map(ms), "{what}: {step:?}");
            }
            Step::At(at) => now = ms(at),
            Step::Free(free) => assert_eq!(usage.free(&budget, now), free, "{what}: {step:?}"),
        }
    }
}

#[test]
fn a_slot_is_leased_by_a_token_and_comes_back_once() {
    use Step::*;
    let until = LEASE.as_ms();
    check("in order, as many as there are", slots(2), &[Take("a b c", "a b"), Free(0)]);
    check("one at the least", Budget::of(Some(0), None).unwrap(), &[Take("a b", "a")]);
    check("given back", slots(1), &[Take("a", "a"), Take("b", ""), Release("a"), Take("b", "b")]);
    check(
        "a second release frees nothing of others",
        slots(1),
        &[Take("a", "a"), Release("a"), Take("b", "b"), Release("a"), Take("c", "")],
    );
    check("nor does one that never was", slots(1), &[Take("a", "a"), Release("x"), Take("b", "")]);
    check("a repeated write takes once", slots(2), &[Take("a", "a"), Take("a", "a"), Free(1)]);
    check(
        "what crashed comes back with its lease",
        slots(1),
        &[
            Take("a", "a"),
            At(until - 1),
            Take("b", ""),
            At(until),
            Free(1),
            Take("b", "b"),
            Release("a"),
            Take("c", ""),
        ],
    );
}

#[test]
fn what_is_released_gets_what_was_reserved_for_it() {
    use Step::*;
    check(
        "newcomers do not overtake it",
        slots(1),
        &[
            Take("a", "a"),
            Release("a"),
            Reserve("held", Some(0)),
            Take("b", ""),
            Take("held", "held"),
            Take("b", ""),
        ],
    );
    check(
        "no more than there is room for",
        slots(2),
        &[Take("a", "a"), Reserve("b", Some(0)), Reserve("c", None)],
    );
    check("once, whoever releases", slots(2), &[Reserve("a", Some(0)), Reserve("a", None), Free(1)]);
    check(
        "a wake-up that never comes gives it back",
        slots(1),
        &[Reserve("a", Some(0)), At(29_999), Take("b", ""), Free(0), At(30_000), Free(1), Take("b", "b")],
    );
}

#[test]
fn where_a_limit_was_lowered_what_was_reserved_before_finds_what_room_there_is_now() {
    let mut usage = Usage::default();
    for name in ["a", "b", "c"] {
        assert_eq!(usage.reserve(&slots(3), &delivery(name), false, T0), Some(T0));
    }
    let take = |usage: &mut Usage, name| usage.take(&slots(2), &[wanted(name)], T0, LEASE)[0].is_some();
    let granted = ["a", "b", "c"].map(|name| take(&mut usage, name));
    assert_eq!((granted, usage.in_use(T0)), ([true, true, false], 2));
    usage.release(&[token("a")]);
    assert!(take(&mut usage, "c"));
}

#[test]
fn redrives_get_at_most_half_and_at_least_one() {
    use Step::*;
    check("half of four", slots(4), &[Take("r1 r2 r3 a b c", "r1 r2 a b")]);
    check("half of five, rounded down", slots(5), &[Take("r1 r2 r3 a b c d", "r1 r2 a b c")]);
    check("one of one", slots(1), &[Take("r1", "r1"), Take("a", "")]);
    check("a reservation counts", slots(2), &[Reserve("r1", Some(0)), Take("r2 a", "a")]);
    check(
        "one that is done with makes room for another",
        slots(2),
        &[Take("r1 r2", "r1"), Release("r1"), Take("r2", "r2")],
    );
    check("half of the rate too", paced(100, "4/s"), &[Take("r1 r2 r3 a b c", "r1 r2 a b")]);
    check("and one of one", paced(100, "1/s"), &[Take("r1", "r1"), Take("a", "")]);
}

#[test]
fn a_refusal_is_remembered_until_it_cannot_matter_any_more() {
    let mut usage = Usage::default();
    assert!(!usage.is_wanted(T0));
    assert_eq!(usage.take(&slots(1), &[wanted("a"), wanted("b")], T0, LEASE).len(), 2);
    assert!(usage.is_wanted(T0));
    // A refusal that is remembered long enough already changes nothing, and needs no write.
    let before = usage.clone();
    assert_eq!(usage.take(&slots(1), &[wanted("c")], T0.plus(secs(20)), LEASE), [None]);
    assert_eq!(usage, before);
    let over = T0.plus(LEASE).plus(secs(60));
    assert!(usage.is_wanted(over.minus(secs(1))) && !usage.is_wanted(over));
}

/// It is moved when it would end within twenty seconds of what it should, or too late: a clock went back.
#[test]
fn who_waits_moves_what_is_remembered_only_when_that_is_worth_a_write() {
    let end = |now: TimeMs| now.plus(LEASE).plus(secs(60));
    let remembered = |usage: &Usage, until: TimeMs| {
        let ms = DurationMs::from_ms(1);
        usage.is_wanted(until.minus(ms)) && !usage.is_wanted(until)
    };
    let rows = [
        (T0.plus(secs(19)), end(T0)),
        (T0.plus(secs(20)), end(T0)),
        (T0.plus(secs(21)), end(T0.plus(secs(21)))),
        (T0.minus(secs(1)), end(T0.minus(secs(1)))),
    ];
    for (again, until) in rows {
        let mut usage = Usage::default();
        usage.someone_waits(T0, LEASE);
        assert!(remembered(&usage, end(T0)));
        usage.someone_waits(again, LEASE);
        assert!(remembered(&usage, until), "{again}");
    }
}

#[test]
fn what_nobody_comes_for_is_not_reserved_any_more_and_the_others_still_are() {
    let mut usage = Usage::default();
    for name in ["a", "b"] {
        assert_eq!(usage.reserve(&slots(2), &delivery(name), false, T0), Some(T0));
    }
    assert_eq!((usage.leased(), usage.reservations()), (0, 2));
    usage.unreserve(&[delivery("a"), delivery("c")]);
    assert!(!usage.is_reserved(&delivery("a")) && usage.is_reserved(&delivery("b")));
    assert_eq!(usage.free(&slots(2), T0), 1);
}

#[test]
fn an_unbounded_destination_is_counted_by_nobody() {
    let mut usage = Usage::default();
    assert!(Budget::UNBOUNDED.is_unbounded() && !slots(1000).is_unbounded());
    let many: Vec<Wanted> = ["a", "b", "c"].map(wanted).into();
    assert_eq!(usage.take(&Budget::UNBOUNDED, &many, T0, LEASE), [Some(T0.plus(LEASE)); 3]);
    assert_eq!(usage.reserve(&Budget::UNBOUNDED, &delivery("d"), false, T0), Some(T0));
    assert_eq!(usage, Usage::default());
}

#[test]
fn what_is_kept_of_a_budget_reads_back_and_nothing_is_kept_of_nothing() {
    assert_eq!(serde_json::to_string(&Usage::default()).unwrap(), "{}");
    let (budget, all) = (paced(4, "2/s"), ["a", "r1", "b"].map(wanted));
    let mut usage = Usage::default();
    assert!(usage.take(&budget, &all, T0, LEASE).contains(&None), "b waits");
    assert!(usage.reserve(&budget, &delivery("r2"), true, ms(1000)).is_some());
    let gone = Heard { token: token("a"), sign: Some(Sign::Gone), started_at: T0 };
    let mut suspended = usage.clone();
    suspended.health.hear(&SuspendRules { after: None, on_gone: true }, &Book::Across, &gone, T0);
    for usage in [usage, suspended] {
        let written = serde_json::to_string(&usage).unwrap();
        assert_eq!(serde_json::from_str::<Usage>(&written).unwrap(), usage, "{written}");
    }
}

#[test]
fn sixteen_slots_cost_one_write_unit() {
    let names: Vec<String> = (0..16).map(|n| format!("01JD0000000000000000000{n:03}")).collect();
    let wanted: Vec<Wanted> = names.iter().map(|name| wanted(name)).collect();
    let mut usage = Usage::default();
    assert!(usage.take(&paced(16, "20/s"), &wanted, T0, LEASE).iter().all(Option::is_some));
    usage.someone_waits(T0, LEASE);
    let written = serde_json::to_string(&usage).unwrap();
    assert!(written.len() < 960, "{} bytes: {written}", written.len());
}

#[test]
fn a_destination_without_either_has_no_budget() {
    assert_eq!(Budget::of(None, None), None);
    let rate = Rate::parse("rate", "20/s").ok();
    assert_eq!(Budget::of(None, rate).unwrap().concurrency, Budget::USUAL_CONCURRENCY);
    assert_eq!(Budget::of(Some(3), rate).unwrap().concurrency, 3);
}
