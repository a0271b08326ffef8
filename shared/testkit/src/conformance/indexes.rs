//! What the reconciler asks: what is due for a look, and what is held.

use waybill_domain::delivery::Record;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::time::TimeMs;
use waybill_service::ports::{Cursor, Ledger};

use super::fixture::*;

/// Only what has come, earliest first; a look that is due at this very moment has come.
pub async fn due_for_look_shows_what_has_come_earliest_first<L: Ledger>(ledger: L) {
    let records: Vec<Record> = [30, 10, 40, 20].map(|at| queued_at(at, "acme")).into();
    for record in &records {
        store(&ledger, record).await;
    }
    assert_eq!(due(&ledger, t(309)).await, []);
    assert_eq!(due(&ledger, t(330)).await, keys([&records[1], &records[3], &records[0]]));
    assert_eq!(due(&ledger, t(340)).await.len(), 4);
}

/// Pages fit together without gap or repetition, also where many looks come at one moment.
pub async fn due_for_look_is_paged_without_gap_or_repetition<L: Ledger>(ledger: L) {
    let mut expected = Vec::new();
    for (event, tenant) in [("a", "acme"), ("b", "northwind"), ("c", "acme"), ("d", "acme"), ("e", "acme")] {
        let record = pending(delivery(tenant, event, "books"));
        store(&ledger, &record).await;
        expected.push(record.delivery.key());
    }
    let mut pages = Vec::new();
    let mut from: Option<Cursor> = None;
    loop {
        let page = ledger.due_for_look(t(300), 2, from.as_ref()).await.expect("an answer");
        pages.push(page.items.len());
        expected.retain(|key| !page.items.contains(key));
        from = page.next;
        if from.is_none() {
            break;
        }
        assert!(pages.len() < 5, "paging does not end");
    }
    assert_eq!(expected, [], "were never shown");
    assert_eq!(pages.iter().sum::<usize>(), 5, "something was shown twice");
}

/// A page goes on where the last one ended, whatever has happened to the items before.
pub async fn due_for_look_goes_on_after_what_it_showed_has_moved<L: Ledger>(ledger: L) {
    let records: Vec<Record> = [10, 20, 30, 40].map(|at| queued_at(at, "acme")).into();
    for record in &records {
        store(&ledger, record).await;
    }
    let first = ledger.due_for_look(t(400), 2, None).await.expect("an answer");
    assert_eq!(first.items, keys([&records[0], &records[1]]));
    for record in &records[..2] {
        land(&ledger, record.looked(t(400), &LOOK).expect("a look")).await;
    }
    store(&ledger, &queued_at(5, "northwind")).await;
    let second = ledger.due_for_look(t(400), 2, first.next.as_ref()).await.expect("an answer");
    assert_eq!(second.items, keys([&records[2], &records[3]]));
}

/// A claim is not progress: whoever holds it may die.
pub async fn a_claim_does_not_change_when_it_is_looked_at<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    store_as(&ledger, &record, |record| claim(record, "tok", t(1))).await;
    assert_eq!(due(&ledger, t(299)).await, []);
    assert_eq!(due(&ledger, t(300)).await, keys([&record]));
}

/// What succeeded is never looked at again, however old.
pub async fn success_leaves_the_open_index<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let claimed = store_as(&ledger, &record, |record| claim(record, "tok", t(1))).await;
    land(&ledger, delivered(&claimed, "tok", t(2))).await;
    assert_eq!(due(&ledger, t(10_000_000)).await, []);
}

/// A failure moves the look to after its due time.
pub async fn a_failure_moves_the_look<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let claimed = store_as(&ledger, &record, |record| claim(record, "tok", t(1))).await;
    land(&ledger, failed(&claimed, "tok", t(2), &retry(t(100)))).await;
    assert_eq!(due(&ledger, t(399)).await, []);
    assert_eq!(due(&ledger, t(400)).await, keys([&record]));
}

/// A look moves it on before anything is sent.
pub async fn a_look_moves_the_next_one<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let looked = store_as(&ledger, &record, |record| record.looked(t(300), &LOOK).expect("a look")).await;
    let next = looked.look_at.expect("another look");
    assert_eq!(due(&ledger, next.minus(one_ms())).await, []);
    assert_eq!(due(&ledger, next).await, keys([&record]));
}

/// A dead letter stays in the open index until the DLQ was told.
pub async fn a_dead_letter_is_looked_at_until_the_dlq_was_told<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let dead = store_as(&ledger, &record, |r| dead_lettered(r, DeadLetterReason::HorizonReached, t(1))).await;
    assert_eq!(due(&ledger, t(301)).await, keys([&record]));
    land(&ledger, dead.told().expect("told")).await;
    assert_eq!(due(&ledger, t(10_000_000)).await, []);
}

/// A held delivery costs no look; a lifted one stands in the open index again.
pub async fn a_hold_leaves_the_open_index_and_a_lift_comes_back<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let waiting = store_as(&ledger, &record, |record| held(record, t(1))).await;
    assert_eq!(due(&ledger, t(10_000_000)).await, []);
    assert_eq!(all_held(&ledger, 10).await, keys([&record]));
    let lifted = land(&ledger, waiting.lift(t(500), &LOOK).expect("a lift")).await;
    assert_eq!(all_held(&ledger, 10).await, []);
    assert_eq!(due(&ledger, lifted.look_at.expect("a look")).await, keys([&record]));
}

/// Each destination by itself, earliest deadline first, those without one last; paged in this order too.
pub async fn held_of_a_destination_is_ordered_by_deadline<L: Ledger>(ledger: L) {
    let wanted = [
        ("a", "books", Some(100)),
        ("b", "books", Some(2000)),
        ("c", "books", None),
        ("d", "crm", Some(50)),
        ("e", "crm", None),
    ];
    let records = wanted.map(|(event, destination, deadline)| {
        let mut delivery = delivery("acme", event, destination);
        delivery.deadline = deadline.map(|at| t(1000 + at));
        pending(delivery)
    });
    for n in [4, 2, 0, 3, 1] {
        store_as(&ledger, &records[n], |record| held(record, t(1))).await;
    }
    store(&ledger, &pending(delivery("acme", "not held", "idle"))).await;
    let (books, crm) = (&records[0].delivery.destination, &records[3].delivery.destination);
    assert_eq!(ledger.held_destinations().await.expect("an answer"), [books.clone(), crm.clone()]);
    for page in [10, 2, 1] {
        assert_eq!(held_of(&ledger, books, page).await, keys(&records[..3]), "in pages of {page}");
        assert_eq!(held_of(&ledger, crm, page).await, keys(&records[3..]), "in pages of {page}");
    }
}

/// A record that is first looked at 300 s after `at` seconds.
fn queued_at(at: u64, tenant: &str) -> Record {
    let mut delivery = delivery(tenant, &format!("evt-{at}"), "books");
    delivery.first_queued_at = t(at);
    pending(delivery)
}

fn one_ms() -> waybill_domain::time::DurationMs {
    waybill_domain::time::DurationMs::from_ms(1)
}

fn keys<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<DeliveryKey> {
    records.into_iter().map(|record| record.delivery.key()).collect()
}

async fn due<L: Ledger>(ledger: &L, now: TimeMs) -> Vec<DeliveryKey> {
    let page = ledger.due_for_look(now, 100, None).await.expect("an answer");
    assert_eq!(page.next, None, "everything fits on one page");
    page.items
}

async fn all_held<L: Ledger>(ledger: &L, page: usize) -> Vec<DeliveryKey> {
    let mut found = Vec::new();
    for destination in ledger.held_destinations().await.expect("an answer") {
        found.extend(held_of(ledger, &destination, page).await);
    }
    found
}

async fn held_of<L: Ledger>(ledger: &L, destination: &DestinationName, page: usize) -> Vec<DeliveryKey> {
    let (mut found, mut from): (Vec<_>, Option<Cursor>) = (Vec::new(), None);
    for _ in 0..20 {
        let page = ledger.held(destination, page, from.as_ref()).await.expect("an answer");
        found.extend(page.items);
        from = page.next;
        if from.is_none() {
            return found;
        }
    }
    panic!("paging does not end: {found:?}");
}
