//! What a ledger shows of one destination, as inputs of a reckoning.

use waybill_domain::capacity::measured::{FEWEST, Measured, ServiceTime, Tally, TooFew};
use waybill_domain::delivery::{Delivery, Record};
use waybill_domain::destination::OnAmbiguous;
use waybill_domain::hold::{Held, HoldReason};
use waybill_domain::outcome::Seen;
use waybill_domain::settle::settle;
use waybill_domain::time::{DurationMs, TimeMs};

use crate::build::{
    T0, at, by, claimed, delivery, look, message, pending, policy, report, revision, secs, terms, token,
};

/// Delivered at the first attempt, which it was claimed for at `from_s`, after `span`.
fn delivered_after(from_s: u64, span: DurationMs) -> Record {
    let end = by("m1", "t1", at(from_s).plus(span));
    claimed(&pending(None), at(from_s)).settle_delivered(&end, None).unwrap().into_after()
}

/// Failed after `failed_ms` at T0, and delivered a minute later after a second.
fn delivered_at_the_second(failed_ms: u64) -> (Record, Vec<waybill_domain::attempt::Attempt>) {
    let failed_at = T0.plus(DurationMs::from_ms(failed_ms));
    let record = claimed(&pending(None), T0);
    let told = report(Seen::Status(503), None, failed_at);
    let told = waybill_domain::attempt::SendReport { started_at: T0, ended_at: failed_at, ..told };
    let failed = settle(&record, &told, &terms(OnAmbiguous::Retry), &by("m1", "t1", failed_at), 0.5).unwrap();
    let evidence = failed.attempt.into_iter().collect();
    let again = failed.change.into_after().claim(message("m2"), token("t2"), at(60), secs(15), revision());
    let done = again.unwrap().into_after().settle_delivered(&by("m2", "t2", at(61)), None);
    (done.unwrap().into_after(), evidence)
}

#[test]
fn what_a_ledger_shows_is_measured_and_too_little_of_it_is_refused() {
    let mut tally = Tally::new(at(100));
    for n in 0..FEWEST - 1 {
        let few = |of| TooFew { seen: n, of };
        assert_eq!(tally.arrivals_per_s(), Err(few("deliveries came in")));
        assert_eq!(tally.service_time(1), Err(few("acknowledged requests with their time")));
        assert_eq!(tally.duplicates_percent(), Err(few("deliveries succeeded")));
        tally.arrival(&delivered_after(n, DurationMs::from_ms(100)));
    }
    tally.arrival(&delivered_after(0, DurationMs::from_ms(2100)));
    assert_eq!(tally.arrivals_per_s(), Ok(Measured { value: 0.2, over: 20 }), "20 in 100 s");
    let ms = DurationMs::from_ms;
    let hand_over = Err(TooFew { seen: 0, of: FOUND });
    let service = ServiceTime { mean: ms(200), p50: ms(100), p95: ms(100), hand_over };
    assert_eq!(tally.service_time(1), Ok(Measured { value: service, over: 20 }), "all were queued at once");
    assert_eq!(service.place(), ms(200));
    assert_eq!(tally.duplicates_percent(), Ok(Measured { value: 0.0, over: 20 }));
    assert_eq!((tally.open(), tally.nearest_limit()), (0, None));
    assert_eq!(tally.most_at_once(), 2, "the long one, and one after the other beside it");
}

const FOUND: &str = "deliveries found a free place as they came in";

fn ms_after(ms: u64) -> TimeMs {
    T0.plus(DurationMs::from_ms(ms))
}

fn queued(at_ms: u64) -> Record {
    let delivery = Delivery { first_queued_at: ms_after(at_ms), ..delivery(None) };
    Record::new(delivery, &policy(7), revision(), &look())
}

/// Claimed then, and delivered after `took_ms`.
fn sent(record: &Record, from_ms: u64, took_ms: u64) -> Record {
    let end = by("m1", "t1", ms_after(from_ms + took_ms));
    claimed(record, ms_after(from_ms)).settle_delivered(&end, None).unwrap().into_after()
}

fn held_at(record: &Record, reason: HoldReason, since_ms: u64) -> Record {
    let held = Held { reason, since: ms_after(since_ms) };
    record.hold(&by("m1", "t1", ms_after(since_ms)), held).unwrap().into_after()
}

/// One every second, each claimed after 20 ms and with its recipient for 209 ms.
fn as_they_come(count: u64) -> Vec<Record> {
    (0..count).map(|n| sent(&queued(n * 1000), n * 1000 + 20, 209)).collect()
}

/// At the same moment; two of them at once, each for 209 ms.
fn burst(count: u64, from_ms: u64) -> Vec<Record> {
    (0..count).map(|n| sent(&queued(from_ms), from_ms + n / 2 * 209, 209)).collect()
}

/// Queued one after the other, held for an hour, and then let go.
fn held_for_an_hour(count: u64, from_ms: u64) -> Vec<Record> {
    let hour_ms = 3_600_000;
    let story = |n: u64| {
        let at_ms = from_ms + n * 1000;
        let held = held_at(&queued(at_ms), HoldReason::Gate, at_ms + 5);
        sent(&held.lift(ms_after(hour_ms), &look()).unwrap().into_after(), hour_ms + n / 2 * 209, 209)
    };
    (0..count).map(story).collect()
}

/// Looked after once, for whatever reason it did not go.
fn looked_after(count: u64) -> Vec<Record> {
    let looked = |at_ms| queued(at_ms).looked(ms_after(at_ms + 300), &look()).unwrap().into_after();
    (0..count).map(|n| sent(&looked(n * 1000), n * 1000 + 400, 209)).collect()
}

#[test]
fn the_hand_over_is_that_of_deliveries_that_found_a_free_place() {
    type Row = (&'static str, u32, Vec<Record>, Vec<Record>, Result<(u64, u64), u64>);
    let rows: Vec<Row> = vec![
        // what is seen, and where; of the time that is looked at, from before it; hand-over in ms and of how
        // many, or of how many it is too few
        ("one after the other", 1, as_they_come(30), vec![], Ok((20, 30))),
        ("too few", 2, [as_they_come(FEWEST - 1), burst(3, 40_000)].concat(), vec![], Err(FEWEST - 1)),
        ("a burst", 2, burst(150, 0), vec![], Err(0)),
        ("a burst with room for all", 150, burst(150, 0), vec![], Ok((18 * 209, 150))),
        (
            "a burst after the others",
            2,
            [as_they_come(30), burst(150, 40_000)].concat(),
            vec![],
            Ok((20, 30)),
        ),
        ("held, more than have places", 2, held_for_an_hour(160, 0), vec![], Err(0)),
        ("held, and fewer than have places", 200, held_for_an_hour(160, 0), vec![], Err(0)),
        (
            "held, after the others",
            2,
            [as_they_come(30), held_for_an_hour(160, 40_000)].concat(),
            vec![],
            Ok((20, 30)),
        ),
        ("looked after", 2, looked_after(30), vec![], Err(0)),
        ("behind an older one", 1, as_they_come(30), vec![pending(None)], Err(0)),
        (
            "behind one that waits for its place",
            1,
            as_they_come(30),
            vec![held_at(&pending(None), HoldReason::Budget, 0)],
            Err(0),
        ),
        (
            "beside one that is held",
            1,
            as_they_come(30),
            vec![held_at(&pending(None), HoldReason::Paused, 0)],
            Ok((20, 30)),
        ),
    ];
    for (name, places, within, before, expected) in rows {
        let mut tally = Tally::new(ms_after(7_200_000));
        within.iter().for_each(|record| tally.arrival(record));
        before.iter().for_each(|record| tally.waiting(record));
        let Measured { value: service, .. } = tally.service_time(places).unwrap();
        let hand_over = service.hand_over.map(|it| (it.value.as_ms(), it.over)).map_err(|few| few.seen);
        assert_eq!(hand_over, expected, "{name}");
        let place_ms = 209 + expected.map_or(0, |(hand_over_ms, _)| hand_over_ms);
        assert_eq!(service.place().as_ms(), place_ms, "{name}");
    }
}

/// Come and gone within a millisecond, it is none of those that were there as it came.
#[test]
fn what_took_no_time_found_the_places_that_others_left() {
    let at_once: Vec<Record> = (0..30).map(|n| sent(&queued(n * 1000), n * 1000, 0)).collect();
    for (what, places, before, found) in [
        ("nobody else", 1, vec![], Ok(30)),
        ("behind an older one", 1, vec![pending(None)], Err(0)),
        ("beside an older one", 2, vec![pending(None)], Ok(30)),
    ] {
        let mut tally = Tally::new(ms_after(7_200_000));
        at_once.iter().for_each(|record| tally.arrival(record));
        before.iter().for_each(|record| tally.waiting(record));
        let hand_over = tally.service_time(places).unwrap().value.hand_over;
        assert_eq!(hand_over.map(|it| it.over).map_err(|few| few.seen), found, "{what}");
    }
}

#[test]
fn requests_that_failed_are_in_the_mean_as_often_as_they_are_made() {
    let mut tally = Tally::new(at(100));
    for _ in 0..20 {
        let (record, evidence) = delivered_at_the_second(3000);
        tally.arrival(&record);
        tally.evidence(&evidence);
    }
    let Measured { value: ServiceTime { mean, p50, p95, .. }, .. } = tally.service_time(1).unwrap();
    assert_eq!((mean, p50, p95), (secs(2), secs(1), secs(1)), "a second, and three before it");
    assert_eq!(tally.duplicates_percent(), Ok(Measured { value: 100.0, over: 20 }));
}

#[test]
fn what_waits_is_counted_with_the_nearest_end_that_is_still_to_come() {
    let mut tally = Tally::new(at(100));
    for deadline_s in [50, 100, 300, 200] {
        tally.arrival(&pending(Some(at(deadline_s))));
    }
    tally.waiting(&delivered_after(0, secs(1)));
    let held = Held { reason: HoldReason::Gate, since: T0 };
    tally.waiting(&pending(Some(at(250))).hold(&by("m1", "t1", T0), held).unwrap().into_after());
    assert_eq!((tally.open(), tally.nearest_limit().unwrap().at), (5, at(200)));
}
