//! Evidence of attempts: written once, never changed, never lost.

use waybill_domain::attempt::Witness;
use waybill_service::ports::Ledger;

use super::fixture::*;

/// Every field comes back.
pub async fn evidence_comes_back_equal<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let key = record.delivery.key();
    store(&ledger, &record).await;
    let evidence = attempt(1, Witness::Worker, "answered 503 “später” \u{0}");
    ledger.add_attempt(&key, &evidence).await.expect("an answer");
    assert_eq!(ledger.attempts(&key).await.expect("an answer"), [evidence]);
}

/// What is there already stays as it is, and that is no error.
pub async fn evidence_is_never_overwritten<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let key = record.delivery.key();
    store(&ledger, &record).await;
    let first = attempt(1, Witness::Worker, "first");
    ledger.add_attempt(&key, &first).await.expect("an answer");
    ledger.add_attempt(&key, &attempt(1, Witness::Worker, "second")).await.expect("an answer");
    assert_eq!(ledger.attempts(&key).await.expect("an answer"), [first]);
}

/// By number, as numbers go; the worker's before the finder's; both stay.
pub async fn evidence_is_read_by_number_then_witness<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let key = record.delivery.key();
    store(&ledger, &record).await;
    let order = [
        attempt(1, Witness::Worker, "a"),
        attempt(2, Witness::Worker, "late"),
        attempt(2, Witness::Finder, "found"),
        attempt(3, Witness::Finder, "b"),
        attempt(10, Witness::Worker, "c"),
    ];
    for evidence in [4, 2, 0, 3, 1].map(|n| &order[n]) {
        ledger.add_attempt(&key, evidence).await.expect("an answer");
    }
    assert_eq!(ledger.attempts(&key).await.expect("an answer"), order);
}

/// C109: no change of the record touches the evidence, a release included.
pub async fn c109_evidence_outlives_a_release<L: Ledger>(ledger: L) {
    use waybill_domain::ending::DeadLetterReason::AttemptsExhausted;
    let record = pending_event("evt");
    let key = record.delivery.key();
    let evidence = attempt(1, Witness::Worker, "a");
    store(&ledger, &record).await;
    ledger.add_attempt(&key, &evidence).await.expect("an answer");
    let dead = land(&ledger, dead_lettered(&record, AttemptsExhausted, t(2))).await;
    let policy = waybill_domain::policy::Policy::default();
    land(&ledger, dead.release("rdr_1".to_owned(), &policy, t(3), t(3), &LOOK).expect("a release")).await;
    assert_eq!(ledger.attempts(&key).await.expect("an answer"), [evidence]);
}

/// Evidence belongs to one delivery of one tenant.
pub async fn evidence_of_one_delivery_is_not_another_s<L: Ledger>(ledger: L) {
    let (ours, sibling) = (pending_event("evt"), pending_event("evt-2"));
    let mut delivery = delivery("northwind", "evt", "books");
    delivery.id = ours.delivery.id.clone();
    let theirs = pending(delivery);
    for record in [&ours, &sibling, &theirs] {
        store(&ledger, record).await;
    }
    ledger.add_attempt(&ours.delivery.key(), &attempt(1, Witness::Worker, "ours")).await.expect("an answer");
    for other in [&sibling, &theirs] {
        assert_eq!(ledger.attempts(&other.delivery.key()).await.expect("an answer"), []);
    }
}
