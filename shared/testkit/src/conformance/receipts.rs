//! Receipts: who received last may delete and hide; nobody else.

use waybill_domain::time::DurationMs;
use waybill_service::ports::{Inbox, Receipt};

use super::QueueCandidate;
use super::messages::{VISIBILITY, ids, receive, send};

/// Hidden for the visibility timeout, then there again: the same message, with another receipt.
pub async fn what_is_not_acknowledged_comes_again<C: QueueCandidate>(c: C) {
    let id = send(&c, "work", 0).await;
    let first = receive(&c, 10).await;
    c.pass_until_just_before(VISIBILITY).await;
    assert_eq!(receive(&c, 10).await, [], "just before the visibility timeout");
    c.pass_the_rest().await;
    let second = receive(&c, 10).await;
    assert_eq!(ids(&second), [&id]);
    assert_eq!((second[0].body.as_str(), second[0].receive_count), ("work", 2));
    assert_ne!(first[0].receipt, second[0].receipt);
}

/// Acknowledged is gone, and only this one.
pub async fn what_is_acknowledged_never_comes_again<C: QueueCandidate>(c: C) {
    send(&c, "done", 0).await;
    let done = receive(&c, 1).await;
    let other = send(&c, "other", 0).await;
    c.queue().acknowledge(&done[0].receipt).await.expect("an answer");
    c.pass(VISIBILITY).await;
    assert_eq!(ids(&receive(&c, 10).await), [&other]);
}

/// To acknowledge twice is no error.
pub async fn a_second_acknowledgement_is_no_error<C: QueueCandidate>(c: C) {
    send(&c, "done", 0).await;
    let done = receive(&c, 1).await;
    c.queue().acknowledge(&done[0].receipt).await.expect("an answer");
    c.queue().acknowledge(&done[0].receipt).await.expect("an answer");
}

/// A worker that outlived its visibility may still delete while nobody else received.
pub async fn an_acknowledgement_counts_until_the_next_receive<C: QueueCandidate>(c: C) {
    send(&c, "slow", 0).await;
    let slow = receive(&c, 1).await;
    c.pass(VISIBILITY.plus(VISIBILITY)).await;
    c.queue().acknowledge(&slow[0].receipt).await.expect("an answer");
    assert_eq!(receive(&c, 10).await, []);
}

/// A stale receipt deletes nothing: the message is somebody else's now.
pub async fn a_stale_receipt_deletes_nothing<C: QueueCandidate>(c: C) {
    let id = send(&c, "work", 0).await;
    let stale = stale_receipt(&c).await;
    c.queue().acknowledge(&stale).await.expect("no error either");
    c.pass(VISIBILITY).await;
    assert_eq!(ids(&receive(&c, 10).await), [&id]);
}

/// A stale receipt neither shows nor hides.
pub async fn a_stale_receipt_changes_no_visibility<C: QueueCandidate>(c: C) {
    let id = send(&c, "work", 0).await;
    let stale = stale_receipt(&c).await;
    c.queue().hide_until(&stale, c.now()).await.expect("no error either");
    assert_eq!(receive(&c, 10).await, [], "a stale receipt showed what somebody else hides");
    c.queue().hide_until(&stale, c.now().plus(DurationMs::from_secs(60))).await.expect("no error either");
    c.pass(VISIBILITY).await;
    assert_eq!(ids(&receive(&c, 10).await), [&id], "a stale receipt hid what is visible");
}

/// The receipt of a message that is gone never touches one that was sent since.
pub async fn a_receipt_never_fits_another_message<C: QueueCandidate>(c: C) {
    send(&c, "first", 0).await;
    let gone = receive(&c, 1).await;
    c.queue().acknowledge(&gone[0].receipt).await.expect("an answer");
    let next = send(&c, "next", 0).await;
    receive(&c, 1).await;
    c.queue().acknowledge(&gone[0].receipt).await.expect("an answer");
    c.pass(VISIBILITY).await;
    assert_eq!(ids(&receive(&c, 10).await), [&next]);
}

/// Whoever works longer can hide longer: until then, and not a moment more.
pub async fn hiding_until_later_keeps_it_hidden_until_then<C: QueueCandidate>(c: C) {
    let id = send(&c, "long", 0).await;
    let long = receive(&c, 1).await;
    c.queue().hide_until(&long[0].receipt, c.now().plus(DurationMs::from_secs(5))).await.expect("an answer");
    c.pass_until_just_before(DurationMs::from_secs(5)).await;
    assert_eq!(receive(&c, 10).await, []);
    c.pass_the_rest().await;
    assert_eq!(ids(&receive(&c, 10).await), [&id]);
}

/// To hide until now, or until a time that has passed, is to show.
pub async fn hiding_until_the_past_shows_it_at_once<C: QueueCandidate>(c: C) {
    let id = send(&c, "returned", 0).await;
    let first = receive(&c, 1).await;
    c.queue().hide_until(&first[0].receipt, c.now()).await.expect("an answer");
    let second = receive(&c, 1).await;
    assert_eq!(ids(&second), [&id]);
    let past = c.now().minus(DurationMs::from_secs(3600));
    c.queue().hide_until(&second[0].receipt, past).await.expect("an answer");
    assert_eq!(ids(&receive(&c, 1).await), [&id]);
}

/// To hide is not to receive: the receipt still deletes.
pub async fn a_receipt_still_deletes_after_hiding<C: QueueCandidate>(c: C) {
    send(&c, "long", 0).await;
    let long = receive(&c, 1).await;
    let receipt = &long[0].receipt;
    c.queue().hide_until(receipt, c.now().plus(DurationMs::from_secs(5))).await.expect("an answer");
    c.queue().acknowledge(receipt).await.expect("an answer");
    c.pass(DurationMs::from_secs(5)).await;
    assert_eq!(receive(&c, 10).await, []);
}

/// The receipt of a receiving that another one followed. The message is hidden.
async fn stale_receipt<C: QueueCandidate>(c: &C) -> Receipt {
    let first = receive(c, 1).await;
    c.pass(VISIBILITY).await;
    assert_eq!(receive(c, 1).await.len(), 1, "it comes again");
    first[0].receipt.clone()
}
