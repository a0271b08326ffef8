//! Two versions over one ledger: what a newer one added is there after an older one worked.

use serde_json::{Value, json};
use waybill_domain::delivery::Record;
use waybill_domain::destination::OnAmbiguous;
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::outcome::Seen;
use waybill_domain::settle::settle;

use crate::build::{T0, by, claimed, look, pending, policy, report, terms};

/// A record as a newer version might write it.
fn of_a_newer_version() -> Record {
    let mut document = serde_json::to_value(pending(None)).unwrap();
    document["reviewed_by"] = json!({ "operator": "maria", "times": 2 });
    document["delivery"]["residency"] = json!(["eu", null]);
    serde_json::from_value(document).unwrap()
}

#[track_caller]
fn assert_kept(what: &str, after: &Record) {
    let document: Value = serde_json::to_value(after).unwrap();
    assert_eq!(document["reviewed_by"], json!({ "operator": "maria", "times": 2 }), "{what}");
    assert_eq!(document["delivery"]["residency"], json!(["eu", null]), "{what}");
}

#[test]
fn every_write_keeps_what_a_newer_version_added() {
    let record = of_a_newer_version();
    assert!(!record.newer.is_empty() && !record.delivery.newer.is_empty());
    let writer = by("m1", "t1", T0);
    let claimed = claimed(&record, T0);
    let failed = report(Seen::Status(503), None, T0);
    let settled = settle(&claimed, &failed, &terms(OnAmbiguous::Retry), &writer, 0.5).unwrap().change;
    let ending = Ending::DeadLettered(DeadLetterReason::AttemptsExhausted);
    let dead = settled.after().end(&writer, ending, &look()).unwrap().into_after();
    let released = dead.release("rdr_1".to_owned(), &policy(7), T0, T0, &look()).unwrap();
    let delivered = claimed.settle_delivered(&writer, None).unwrap();
    let looked = record.looked(T0, &look()).unwrap();
    let rows = [
        ("looked at", looked.after()),
        ("claimed", &claimed),
        ("settled", settled.after()),
        ("dead-lettered", &dead),
        ("released", released.after()),
        ("delivered", delivered.after()),
    ];
    for (what, after) in rows {
        assert_kept(what, after);
    }
}

#[test]
fn a_record_of_this_version_has_nothing_of_a_newer_one() {
    let record = pending(None);
    assert!(record.newer.is_empty() && record.delivery.newer.is_empty());
    let document = serde_json::to_value(&record).unwrap();
    assert!(document.get("newer").is_none() && document["delivery"].get("newer").is_none(), "{document}");
}
