//! A page of dead letters: whose turn it is, what of it is taken in hand, and where the next one begins.

use std::collections::BTreeMap;

use waybill_domain::identity::{DeliveryId, DeliveryKey, EventId, TenantId};
use waybill_domain::redrive::{Block, Fate, Lane, Run};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::build::at;
use crate::runs::{run, to};

const FAR: TimeMs = TimeMs::from_unix_ms(i64::MAX);

/// The lane whose turn it is, of these: whether all of it was judged, and when its next release is due.
#[track_caller]
fn check_turn(what: &str, lanes: &[(&str, bool, Option<u64>)], held: &str, expected: Option<&str>) {
    let lane = |(name, done, next_at): &(&str, bool, Option<u64>)| {
        (to(name), Lane { done: *done, next_at: next_at.map(at), ..Lane::default() })
    };
    let run = Run { lanes: lanes.iter().map(lane).collect(), ..run() };
    let turn = run.next_lane(at(60), |name| name.as_str() == held);
    assert_eq!(turn.map(|(name, _)| name.as_str()), expected, "{what}");
}

#[test]
fn the_lane_whose_release_is_due_first_has_its_turn() {
    check_turn("none", &[], "", None);
    check_turn("one that never released", &[("books", false, None)], "", Some("books"));
    check_turn("the first due", &[("books", false, Some(20)), ("crm", false, Some(10))], "", Some("crm"));
    check_turn(
        "not yet begun comes first",
        &[("books", false, Some(1)), ("crm", false, None)],
        "",
        Some("crm"),
    );
    check_turn("judged to its end", &[("books", true, None), ("crm", false, Some(10))], "", Some("crm"));
    check_turn("held", &[("books", false, None), ("crm", false, Some(10))], "books", Some("crm"));
    check_turn("held, and the only one", &[("books", false, None)], "books", None);
    check_turn("due before the end of this round", &[("books", false, Some(59))], "", Some("books"));
    check_turn("due at its end", &[("books", false, Some(60))], "", None);
    check_turn("due after it", &[("books", false, Some(61))], "", None);
}

fn key(n: usize) -> DeliveryKey {
    let tenant = TenantId::parse("acme").unwrap();
    let event = EventId::parse(format!("evt_{n}")).unwrap();
    DeliveryKey { delivery_id: DeliveryId::derive(&tenant, &event, &to("books")), tenant }
}

/// What a page comes to, ten seconds after T0, at one a second.
struct Page {
    fates: &'static [Fate],
    /// When the lane's next release was due, in seconds.
    next_s: Option<u64>,
    until: TimeMs,
    sample: Option<u64>,
    /// Where the next page begins.
    from: Option<&'static str>,
}

/// Which of it are in hand (when they go; none: they expire), what was counted as blocked, when the lane's next
/// release is due, where its next page begins, and whether it is done.
type Taken = (Vec<(usize, Option<TimeMs>)>, u64, Option<TimeMs>, Option<&'static str>, bool);

#[track_caller]
fn check(what: &str, page: Page, expected: &Taken) {
    let lane = Lane { next_at: page.next_s.map(at), from: Some("here".to_owned()), ..Lane::default() };
    let mut run = Run { sample: page.sample, lanes: BTreeMap::from([(to("books"), lane)]), ..run() };
    let fates: Vec<_> = page.fates.iter().enumerate().map(|(n, fate)| (key(n), *fate)).collect();
    run.take_page(&to("books"), &fates, page.from.map(str::to_owned), at(10), page.until);
    assert_eq!(run.hand_of, Some(to("books")), "{what}");
    let place = |of: &DeliveryKey| fates.iter().position(|(key, _)| key == of).unwrap();
    let in_hand = run.in_hand.iter().map(|one| (place(&one.delivery), one.due_at)).collect();
    let lane = &run.lanes[&to("books")];
    let taken = (in_hand, run.tally.blocked, lane.next_at, lane.from.clone(), lane.done);
    let (in_hand, blocked, next_at, from, done) = expected.clone();
    assert_eq!(taken, (in_hand, blocked, next_at, from.map(str::to_owned), done), "{what}");
}

#[test]
fn a_page_is_taken_in_hand_as_far_as_rate_room_and_time_allow() {
    const BLOCKED: Fate = Fate::Blocked(Block::Permanent);
    use Fate::{Expire, Release};
    let page = |fates| Page { fates, next_s: None, until: FAR, sample: None, from: None };
    let of = |s| Some(at(s));
    check(
        "one a second, from now on",
        page(&[Release, Release, Release]),
        &(vec![(0, of(10)), (1, of(11)), (2, of(12))], 0, of(13), None, true),
    );
    check(
        "from when its next is due",
        Page { next_s: Some(20), ..page(&[Release, Release]) },
        &(vec![(0, of(20)), (1, of(21))], 0, of(22), None, true),
    );
    check(
        "nothing is caught up",
        Page { next_s: Some(5), ..page(&[Release]) },
        &(vec![(0, of(10))], 0, of(11), None, true),
    );
    check(
        "what expires or is blocked takes no time",
        page(&[Release, BLOCKED, Expire, BLOCKED, Release]),
        &(vec![(0, of(10)), (2, None), (4, of(11))], 2, of(12), None, true),
    );
    check(
        "nothing to be released",
        Page { next_s: Some(12), ..page(&[BLOCKED, Expire]) },
        &(vec![(1, None)], 1, of(12), None, true),
    );
    check("nothing of a lane not begun", page(&[BLOCKED]), &(vec![], 1, None, None, true));
    check(
        "another page follows",
        Page { from: Some("there"), ..page(&[Release]) },
        &(vec![(0, of(10))], 0, of(11), Some("there"), false),
    );
    // What is not whole is read again: nothing of it is counted as blocked, and its beginning stays.
    check(
        "until the next round",
        Page { until: at(12), from: Some("there"), ..page(&[BLOCKED, Release, Release, Release]) },
        &(vec![(1, of(10)), (2, of(11))], 0, of(12), Some("here"), false),
    );
    check(
        "the sample is full",
        Page { sample: Some(1), ..page(&[Release, Release]) },
        &(vec![(0, of(10))], 0, of(11), Some("here"), false),
    );
    check(
        "just the sample",
        Page { sample: Some(2), ..page(&[Release, Release]) },
        &(vec![(0, of(10)), (1, of(11))], 0, of(12), None, true),
    );
}

#[test]
fn a_page_of_a_faster_run_is_spread_to_the_millisecond() {
    let rate = waybill_domain::redrive::ReleaseRate::parse("rate", "20/s").unwrap();
    let mut run = Run { rate, ..run() };
    let page: Vec<_> = (0..3).map(|n| (key(n), Fate::Release)).collect();
    run.take_page(&to("books"), &page, None, at(10), FAR);
    let due: Vec<_> = run.in_hand.iter().map(|one| one.due_at.unwrap().since(at(10))).collect();
    assert_eq!(due, [0, 50, 100].map(DurationMs::from_ms));
}
