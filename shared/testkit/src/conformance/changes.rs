//! Records and payloads: created once, changed by compare-and-set, read back as they are.

use bytes::Bytes;
use waybill_domain::attempt::NotSent;
use waybill_domain::delivery::State;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::PolicyName;
use waybill_service::ports::{Applied, Created, Ledger};

use super::fixture::*;

/// What was created can be loaded, equal in every field.
pub async fn a_new_record_is_answered_new_and_loads_equal<L: Ledger>(ledger: L) {
    let mut full = delivery("acme", "lease_881:\u{2028}pay 7319 🎉", "books");
    full.not_before = Some(t(60));
    full.deadline = Some(t(7200));
    full.policy = Some(PolicyName::parse("nightly").expect("a name"));
    let record = pending(full);
    store(&ledger, &record).await;
    assert_eq!(stored(&ledger, &record.delivery.key()).await, Some(record));
}

/// An unknown delivery is no error.
pub async fn an_unknown_delivery_is_absent<L: Ledger>(ledger: L) {
    store(&ledger, &pending_event("other")).await;
    let key = pending_event("unknown").delivery.key();
    assert_eq!(ledger.load(&key).await.expect("an answer"), None);
    assert_eq!(ledger.payload(&key).await.expect("an answer"), None);
    assert_eq!(ledger.attempts(&key).await.expect("an answer"), []);
}

/// Several records come in the order in which they were asked for, each as it is now; one that there is not
/// is absent.
pub async fn several_records_are_read_at_once<L: Ledger>(ledger: L) {
    let records = ["a", "b", "c"].map(pending_event);
    for record in &records {
        store(&ledger, record).await;
    }
    let claimed = land(&ledger, claim(&records[1], "tok", t(1))).await;
    let unknown = pending_event("unknown");
    let keys = [&records[2], &unknown, &records[1], &records[0]].map(|record| record.delivery.key());
    let read = ledger.load_all(&keys).await.expect("an answer");
    let read: Vec<_> = read.into_iter().map(|one| one.expect("it is read")).collect();
    let [a, _, c] = records;
    assert_eq!(read, [Some(c), None, Some(claimed), Some(a)]);
    assert!(ledger.load_all(&[]).await.expect("an answer").is_empty());
}

/// A second create answers the stored record and changes neither it nor the payload.
pub async fn a_second_create_answers_what_is_stored_and_changes_nothing<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let key = record.delivery.key();
    ledger.create(&record, &Bytes::from_static(b"first")).await.expect("an answer");
    let claimed = land(&ledger, claim(&record, "tok", t(1))).await;

    let mut other = record.delivery.clone();
    other.deadline = Some(t(9000));
    let answer = ledger.create(&pending(other), &Bytes::from_static(b"second")).await.expect("an answer");

    assert_eq!(answer, Created::Exists(Box::new(claimed.clone())));
    assert_eq!(stored(&ledger, &key).await, Some(claimed));
    assert_eq!(ledger.payload(&key).await.expect("an answer"), Some(Bytes::from_static(b"first")));
}

/// Of many who create at once, exactly one is told that it is new, and its payload is kept.
pub async fn of_many_concurrent_creates_exactly_one_is_new<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let payloads: Vec<Bytes> = (0..16).map(|n| Bytes::from(format!("payload {n}"))).collect();
    let created =
        futures::future::join_all(payloads.iter().map(|payload| ledger.create(&record, payload))).await;
    let new: Vec<usize> =
        (0..16).filter(|n| matches!(created[*n].as_ref().expect("an answer"), Created::New)).collect();
    assert_eq!(new.len(), 1, "{new:?} were told that theirs is new");
    let kept = ledger.payload(&record.delivery.key()).await.expect("an answer");
    assert_eq!(kept.as_ref(), Some(&payloads[new[0]]));
}

/// C23, C101, C103: a payload is bytes, not text and not JSON.
pub async fn c23_c101_c103_payload_bytes_come_back_as_they_were<L: Ledger>(ledger: L) {
    let cases: [(&str, &[u8]); 7] = [
        ("empty", b""),
        ("zero bytes", b"\0{\"a\":\"\0\"}\0"),
        ("U+FFFF, U+FFFE, DEL and an emoji", "\u{ffff}\u{fffe}\u{7f}🎉".as_bytes()),
        ("no UTF-8", b"{\"a\":\"\xff\xfe\"}"),
        ("numbers", br#"{"a":1.0,"b":-0,"c":1E2,"d":1234567890123456789012345678901234567890}"#),
        ("an escaped zero", br#"{"a":"\u0000"}"#),
        ("a byte order mark and line ends", b"\xef\xbb\xbf{}\r\n"),
    ];
    for (name, bytes) in cases {
        payload_comes_back(&ledger, name, Bytes::from_static(bytes)).await;
    }
}

/// The largest payload that can be published.
pub async fn a_payload_of_4_mib_comes_back<L: Ledger>(ledger: L) {
    // No period of a power of two, so that a piece that is lost or moved shows.
    let bytes: Vec<u8> = (0..4 * 1024 * 1024_u32).map(|n| (n % 251) as u8).collect();
    payload_comes_back(&ledger, "4 MiB", Bytes::from(bytes)).await;
}

async fn payload_comes_back<L: Ledger>(ledger: &L, name: &str, payload: Bytes) {
    let record = pending_event(name);
    assert_eq!(ledger.create(&record, &payload).await.expect("an answer"), Created::New, "{name}");
    let read = ledger.payload(&record.delivery.key()).await.expect("an answer").expect("a payload");
    assert!(read == payload, "{name}: {} bytes became {} others", payload.len(), read.len());
}

/// A whole life: every change of the stored version lands, and is read back in full.
pub async fn changes_of_the_stored_version_land<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let key = record.delivery.key();
    store(&ledger, &record).await;
    let claimed = land(&ledger, claim(&record, "tok-1", t(1))).await;
    assert_eq!(stored(&ledger, &key).await.as_ref(), Some(&claimed));
    let waiting = land(&ledger, failed(&claimed, "tok-1", t(2), &retry(t(3)))).await;
    assert_eq!(stored(&ledger, &key).await.as_ref(), Some(&waiting));
    let claimed = land(&ledger, claim(&waiting, "tok-2", t(4))).await;
    let done = land(&ledger, delivered(&claimed, "tok-2", t(5))).await;
    assert_eq!((done.state, done.revision), (State::Succeeded, 4));
    assert_eq!(stored(&ledger, &key).await, Some(done));
}

/// The same state at another revision is another version.
pub async fn a_wrong_revision_alone_loses<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let claimed = store_as(&ledger, &record, |record| claim(record, "first", t(1))).await;
    let late = claim(&record, "second", t(1));
    assert_eq!(late.expected().state, claimed.state, "only the revision differs");
    assert_eq!(ledger.apply(&late).await.expect("an answer"), Applied::Lost(Some(Box::new(claimed.clone()))));
    assert_eq!(stored(&ledger, &record.delivery.key()).await, Some(claimed));
}

/// The same revision in another state is another version: two histories of one delivery.
pub async fn a_wrong_state_alone_loses<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let claimed = store_as(&ledger, &record, |record| claim(record, "tok", t(1))).await;
    let unclaimed =
        claimed.settle_not_sent(&writer("tok", t(2)), NotSent::LeaseTooShort, &LOOK).expect("a change");
    let here = land(&ledger, unclaimed).await;
    let elsewhere = failed(&claimed, "tok", t(2), &retry(t(2))).into_after();
    assert_eq!((here.state, elsewhere.state), (State::Pending, State::Retryable));

    let change = claim(&elsewhere, "other", t(3));
    assert_eq!(change.expected().revision, here.revision, "only the state differs");
    assert_eq!(ledger.apply(&change).await.expect("an answer"), Applied::Lost(Some(Box::new(here.clone()))));
    assert_eq!(stored(&ledger, &record.delivery.key()).await, Some(here));
}

/// A change never makes a record.
pub async fn a_change_of_an_absent_record_loses_and_makes_none<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let change = claim(&record, "tok", t(1));
    assert_eq!(ledger.apply(&change).await.expect("an answer"), Applied::Lost(None));
    assert_eq!(stored(&ledger, &record.delivery.key()).await, None);
}

/// A change that was made is not made twice: the repeat finds its own token stored.
pub async fn a_repeated_change_loses_to_itself<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    let change = claim(&record, "tok", t(1));
    store(&ledger, &record).await;
    let claimed = land(&ledger, change.clone()).await;
    assert_eq!(ledger.apply(&change).await.expect("an answer"), Applied::Lost(Some(Box::new(claimed))));
}

/// C05: of many claims at once exactly one lands, and all others are shown it.
pub async fn c05_of_many_concurrent_claims_exactly_one_lands<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    store(&ledger, &record).await;
    let claims: Vec<_> = (0..16).map(|n| claim(&record, &format!("tok-{n}"), t(1))).collect();
    let applied = futures::future::join_all(claims.iter().map(|change| ledger.apply(change))).await;
    let stored = stored(&ledger, &record.delivery.key()).await.expect("a record");
    for (change, applied) in claims.iter().zip(applied) {
        let won = change.after() == &stored;
        let expected = if won { Applied::Landed } else { Applied::Lost(Some(Box::new(stored.clone()))) };
        assert_eq!(applied.expect("an answer"), expected);
    }
    assert!(stored.claim.is_some(), "nobody's claim landed");
}

/// C15, the store's part: whoever comes next sees the claim, its copy and its end.
pub async fn c15_a_claim_is_seen_by_whoever_comes_next<L: Ledger>(ledger: L) {
    let record = pending_event("evt");
    store_as(&ledger, &record, |record| claim(record, "mine", t(0))).await;
    let answer = ledger.apply(&claim(&record, "theirs", t(1))).await.expect("an answer");
    let Applied::Lost(Some(shown)) = answer else { panic!("the second claim was answered {answer:?}") };
    let seen = shown.claim.as_ref().expect("the claim is shown");
    assert_eq!((&seen.token, &seen.message_id), (&token("mine"), &message("msg")));
    assert!(seen.is_live(t(19)) && !seen.is_live(t(20)), "15 s and the margin of 5 s");
    assert_eq!(stored(&ledger, &record.delivery.key()).await.as_ref(), Some(&*shown));
}

/// One ID under two tenants is two deliveries.
pub async fn one_id_of_two_tenants_is_two_deliveries<L: Ledger>(ledger: L) {
    let ours = pending_event("evt");
    let mut delivery = delivery("northwind", "evt", "books");
    delivery.id = ours.delivery.id.clone();
    let theirs = pending(delivery);
    ledger.create(&ours, &Bytes::from_static(b"ours")).await.expect("an answer");
    let created = ledger.create(&theirs, &Bytes::from_static(b"theirs")).await.expect("an answer");
    assert_eq!(created, Created::New);

    let dead = land(&ledger, dead_lettered(&ours, DeadLetterReason::DestinationRemoved, t(1))).await;
    assert_eq!(stored(&ledger, &ours.delivery.key()).await, Some(dead));
    assert_eq!(stored(&ledger, &theirs.delivery.key()).await.as_ref(), Some(&theirs));
    let payload = ledger.payload(&theirs.delivery.key()).await.expect("an answer");
    assert_eq!(payload, Some(Bytes::from_static(b"theirs")));
}
