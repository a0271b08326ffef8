//! What makes a poller's life easy, and SQS does not do: messages come in the order of their
//! visibility, and the queue tells when the next one becomes visible.

use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Inbox as _, Queue as _};

use super::QueueCandidate;
use super::messages::{receive, send};

/// Earliest visible first; among those, in the order of sending.
pub async fn the_earliest_visible_is_received_first<C: QueueCandidate>(c: C) {
    for (body, delay_ms) in [("later", 2000), ("first", 0), ("second", 0), ("soon", 1000), ("third", 0)] {
        send(&c, body, delay_ms).await;
    }
    c.pass(DurationMs::from_secs(2)).await;
    let received = receive(&c, 10).await;
    let bodies: Vec<&str> = received.iter().map(|message| message.body.as_str()).collect();
    assert_eq!(bodies, ["first", "second", "third", "soon", "later"]);
}

/// An empty queue has no next message.
pub async fn an_empty_queue_has_no_next_message<C: QueueCandidate>(c: C) {
    assert_eq!(c.queue().next_visible_at().await.expect("an answer"), None);
}

/// What is delayed by the whole window is hidden to its end.
pub async fn the_whole_window_is_used_to_its_end<C: QueueCandidate>(c: C) {
    let window = c.queue().window();
    let before = c.now();
    send(&c, "far", window.as_ms()).await;
    let visible_at = c.queue().next_visible_at().await.expect("an answer").expect("a message");
    assert!(visible_at >= before.plus(window), "visible {} early", before.plus(window).since(visible_at));
}

/// A poller learns how long it may sleep.
pub async fn the_next_visible_time_is_told<C: QueueCandidate>(c: C) {
    let now = c.now();
    send(&c, "delayed", 2000).await;
    assert_eq!(next_in_ms(&c, now).await, 2000);
    send(&c, "at once", 0).await;
    assert_eq!(next_in_ms(&c, now).await, 0);
    assert_eq!(receive(&c, 10).await.len(), 1);
    assert_eq!(next_in_ms(&c, now).await, 2000, "what is hidden for longer is not the next");
}

async fn next_in_ms<C: QueueCandidate>(c: &C, since: TimeMs) -> u64 {
    let next = c.queue().next_visible_at().await.expect("an answer");
    next.expect("a message").since(since).as_ms()
}
