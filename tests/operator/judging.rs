//! What a run may do with a dead letter.

use waybill_domain::delivery::Record;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::redrive::{Bench, Block, Fate, ReleaseRate, Reviews, judge};
use waybill_domain::time::DurationMs;
use waybill_testkit::conformance::fixture::{self, t};

use crate::world::{EXHAUSTED, REFUSED, World};

struct Row {
    name: &'static str,
    reason: DeadLetterReason,
    deadline_s: Option<u64>,
    /// Whether the destination is as it was when the attempt failed.
    unchanged: bool,
    configured: bool,
    redrives: u32,
    reviews: Reviews,
    fate: Fate,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            name: "",
            reason: EXHAUSTED,
            deadline_s: None,
            unchanged: true,
            configured: true,
            redrives: 0,
            reviews: Reviews::default(),
            fate: Fate::Release,
        }
    }
}

fn reviewed(what: &str) -> Reviews {
    let why = |flag| (what == flag).then(|| "seen by maria".to_owned());
    Reviews { permanent: why("permanent"), ambiguous: why("ambiguous"), beyond_limit: why("beyond_limit") }
}

#[test]
fn a_dead_letter_is_judged_by_deadline_destination_limit_and_reason() {
    const AMBIGUOUS: DeadLetterReason = DeadLetterReason::AmbiguousOutcome;
    let blocked = Fate::Blocked;
    let rows = [
        Row { name: "attempts used up", ..Row::default() },
        Row { name: "deadline ahead", deadline_s: Some(700), ..Row::default() },
        Row { name: "at the deadline", deadline_s: Some(600), fate: Fate::Expire, ..Row::default() },
        Row {
            name: "less than the window left",
            deadline_s: Some(601),
            fate: Fate::Expire,
            ..Row::default()
        },
        Row { name: "just the window left", deadline_s: Some(602), ..Row::default() },
        Row {
            name: "expired comes first",
            deadline_s: Some(1),
            reason: REFUSED,
            fate: Fate::Expire,
            ..Row::default()
        },
        Row { name: "refused for good", reason: REFUSED, fate: blocked(Block::Permanent), ..Row::default() },
        Row { name: "refused, and mended since", reason: REFUSED, unchanged: false, ..Row::default() },
        Row {
            name: "refused, and reviewed",
            reason: REFUSED,
            reviews: reviewed("permanent"),
            ..Row::default()
        },
        Row {
            name: "refused, another review",
            reason: REFUSED,
            reviews: reviewed("ambiguous"),
            fate: blocked(Block::Permanent),
            ..Row::default()
        },
        Row {
            name: "refused by the schema",
            reason: DeadLetterReason::PayloadInvalid,
            fate: blocked(Block::PayloadInvalid),
            ..Row::default()
        },
        Row {
            name: "refused by the schema, and reviewed",
            reason: DeadLetterReason::PayloadInvalid,
            reviews: reviewed("permanent"),
            ..Row::default()
        },
        Row {
            name: "refused by the schema, and only the destination changed",
            reason: DeadLetterReason::PayloadInvalid,
            unchanged: false,
            fate: blocked(Block::PayloadInvalid),
            ..Row::default()
        },
        Row { name: "perhaps applied", reason: AMBIGUOUS, fate: blocked(Block::Ambiguous), ..Row::default() },
        Row {
            name: "perhaps applied, reviewed",
            reason: AMBIGUOUS,
            reviews: reviewed("ambiguous"),
            ..Row::default()
        },
        Row { name: "released twice", redrives: 2, ..Row::default() },
        Row { name: "released thrice", redrives: 3, fate: blocked(Block::RedrivesUsedUp), ..Row::default() },
        Row {
            name: "released thrice, reviewed",
            redrives: 3,
            reviews: reviewed("beyond_limit"),
            ..Row::default()
        },
        Row {
            name: "no destination",
            configured: false,
            fate: blocked(Block::DestinationRemoved),
            ..Row::default()
        },
        Row { name: "destination came back", reason: DeadLetterReason::DestinationRemoved, ..Row::default() },
    ];
    for row in rows {
        check(row);
    }
}

fn check(row: Row) {
    let world = World::new();
    let destination = world.config.destinations.values().next().unwrap();
    let mut delivery = fixture::delivery("acme", "evt", destination.name.as_str());
    delivery.deadline = row.deadline_s.map(t);
    let record = dead(fixture::pending(delivery), &row, &destination.fingerprint());
    let bench = Bench { reviews: &row.reviews, max_redrives: 3, now: t(600) };
    let fate = judge(&record, row.configured.then_some(destination.as_ref()), bench);
    assert_eq!(fate, row.fate, "{}", row.name);
}

/// The record as a dead letter whose last attempt failed under the destination's configuration.
fn dead(record: Record, row: &Row, fingerprint: &str) -> Record {
    let mut json = serde_json::to_value(&record).unwrap();
    let ended = fixture::dead_lettered(&record, row.reason, t(1)).into_after();
    let ended = serde_json::to_value(ended).unwrap();
    json.clone_from(&ended);
    json["redrives"] = row.redrives.into();
    json["last_failure"] = serde_json::json!({
        "attempt": 1, "at": t(1), "status": 401, "note": "refused",
        "failure": fixture::failure(),
        "destination": if row.unchanged { fingerprint } else { "another" },
    });
    serde_json::from_value(json).unwrap()
}

#[test]
fn a_rate_is_a_number_and_a_unit() {
    for (text, millis_of_ten) in [("20/s", 500), ("1000/s", 10), ("600/m", 1000), ("3/h", 12_000_000)] {
        let rate = ReleaseRate::parse("rate", text).unwrap();
        assert_eq!(rate.span_of(10), DurationMs::from_ms(millis_of_ten), "{text}");
        assert_eq!(rate.to_string(), text);
    }
    for text in ["", "20", "0/s", "1001/s", "-1/s", "20/d", "2.5/s", "/s", "20/ s"] {
        let refused = ReleaseRate::parse("rate", text).unwrap_err();
        assert_eq!(refused.field, "rate", "{text}");
    }
}
