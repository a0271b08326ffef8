//! What a run may do with a dead letter.

use serde_json::json;
use waybill_domain::delivery::Record;
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::outcome::{Failure, FailureClass, Seen, classify};
use waybill_domain::outcome::{Outcome, Verdict};
use waybill_domain::redrive::{Bench, Block, Fate, Reviews, judge};

use crate::build::{T0, at, by, destination, look, pending};
use crate::names;

const EXHAUSTED: DeadLetterReason = DeadLetterReason::AttemptsExhausted;
const REFUSED: DeadLetterReason = DeadLetterReason::Permanent(FailureClass::AuthenticationRejected);

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
        Row {
            name: "at the deadline, and no destination",
            deadline_s: Some(600),
            configured: false,
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
    rows.iter().for_each(check);
}

fn check(row: &Row) {
    let destination = destination();
    let record = dead(row, &destination.fingerprint());
    let bench = Bench { reviews: &row.reviews, max_redrives: 3, now: at(600) };
    let fate = judge(&record, row.configured.then_some(&destination), bench);
    assert_eq!(fate, row.fate, "{}", row.name);
}

fn refusal() -> Failure {
    match classify(Seen::Status(401), &Default::default()) {
        Outcome::Failed(failure) if failure.verdict == Verdict::Permanent => failure,
        other => panic!("{other:?}"),
    }
}

/// A dead letter whose last attempt failed under the destination's configuration, or under another.
fn dead(row: &Row, fingerprint: &str) -> Record {
    let open = pending(row.deadline_s.map(at));
    let ended = open.end(&by("m1", "t1", T0), Ending::DeadLettered(row.reason), &look()).unwrap();
    let mut document = serde_json::to_value(ended.after()).unwrap();
    document["redrives"] = row.redrives.into();
    document["last_failure"] = json!({
        "attempt": 1, "at": T0, "status": 401, "note": "refused", "failure": refusal(),
        "destination": if row.unchanged { fingerprint } else { "another" },
    });
    serde_json::from_value(document).unwrap()
}

#[test]
fn what_blocks_a_dead_letter_is_named_with_what_would_release_it() {
    use Block as B;
    let rows = [
        (B::Permanent, "permanent", "--permanent-reviewed"),
        (B::PayloadInvalid, "payload_invalid", "--permanent-reviewed"),
        (B::Ambiguous, "ambiguous", "--ambiguous-reviewed"),
        (B::RedrivesUsedUp, "redrives_used_up", "--beyond-limit"),
        (B::DestinationRemoved, "destination_removed", "configure the destination"),
    ];
    for (block, name, remedy) in rows {
        names::check(&[block], B::as_str, &[name]);
        assert!(block.remedy().contains(remedy), "{name}: {}", block.remedy());
    }
}
