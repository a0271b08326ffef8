//! Messages: sent once, visible when it is time, buried as they are.

use std::collections::{BTreeMap, BTreeSet};

use waybill_domain::identity::MessageId;
use waybill_domain::time::DurationMs;
use waybill_service::ports::{Burial, Inbox, Outgoing, PortError, Queue, Received};

use super::{Buried, QueueCandidate};

/// How long the exam hides what it receives.
pub(super) const VISIBILITY: DurationMs = DurationMs::from_secs(3);

/// Received with the body and the ID that it was sent with, for the first time.
pub async fn a_message_comes_as_it_was_sent<C: QueueCandidate>(c: C) {
    let body = "{\"waybill\":1, \"note\":\"Žižkov \\u2028 🎉\"}\n\t<&>";
    let id = send(&c, body, 0).await;
    let received = receive(&c, 10).await;
    assert_eq!(received.len(), 1);
    let Received { message_id, body: came, receive_count, .. } = &received[0];
    assert_eq!((message_id, came.as_str(), *receive_count), (&id, body, 1));
}

/// An empty queue answers at once.
pub async fn an_empty_queue_answers_nothing<C: QueueCandidate>(c: C) {
    assert_eq!(receive(&c, 10).await, []);
}

/// No two messages share an ID, even with the same body.
pub async fn message_ids_are_all_different<C: QueueCandidate>(c: C) {
    let sent = futures::future::join_all((0..50).map(|_| send(&c, "same", 0))).await;
    assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), 50);
}

/// Never more than asked for; the rest stays visible.
pub async fn no_more_is_received_than_asked_for<C: QueueCandidate>(c: C) {
    for body in ["a", "b", "c"] {
        send(&c, body, 0).await;
    }
    assert_eq!(receive(&c, 2).await.len(), 2);
    assert_eq!(receive(&c, 2).await.len(), 1);
}

/// C21: a delay is held to the last millisecond, and rounded up, never down.
pub async fn c21_a_delay_is_never_early<C: QueueCandidate>(c: C) {
    for delay_ms in [1, 999, 1000, 1001, 1500, 2000] {
        let id = send(&c, "delayed", delay_ms).await;
        c.pass_until_just_before(DurationMs::from_ms(delay_ms)).await;
        assert_eq!(receive(&c, 10).await, [], "just before its delay of {delay_ms} ms was over");
        let rounded_up = delay_ms.div_ceil(1000) * 1000;
        c.pass(DurationMs::from_ms(rounded_up - delay_ms)).await;
        c.pass_the_rest().await;
        let received = receive(&c, 10).await;
        assert_eq!(ids(&received), [&id], "{rounded_up} ms after it was sent with {delay_ms} ms");
        c.queue().acknowledge(&received[0].receipt).await.expect("an answer");
    }
}

/// The whole window can be used.
pub async fn a_delay_of_the_whole_window_is_taken<C: QueueCandidate>(c: C) {
    send(&c, "far", c.queue().window().as_ms()).await;
    assert_eq!(receive(&c, 10).await, []);
}

/// C19: what the queue cannot hold back is refused, not cut, and its neighbours go through.
pub async fn c19_a_delay_over_the_window_is_refused_and_sends_nothing<C: QueueCandidate>(c: C) {
    let over = c.queue().window().plus(DurationMs::from_ms(1));
    let outgoing = |body: &str, delay| Outgoing { body: body.to_owned(), delay };
    let (before, refused, after) = futures::join!(
        c.queue().send(outgoing("before", DurationMs::ZERO)),
        c.queue().send(outgoing("refused", over)),
        c.queue().send(outgoing("after", DurationMs::ZERO)),
    );
    assert!(matches!(refused, Err(PortError::NeedsPerson { .. })), "answered {refused:?}");
    let sent = BTreeSet::from([before.expect("an answer"), after.expect("an answer")]);
    let received = receive(&c, 10).await;
    assert_eq!(received.iter().map(|message| message.message_id.clone()).collect::<BTreeSet<_>>(), sent);
}

/// C23: of many that are sent together, each is answered in its place, and one that is refused keeps
/// none back.
pub async fn c23_what_is_sent_together_is_answered_one_by_one<C: QueueCandidate>(c: C) {
    let over = c.queue().window().plus(DurationMs::from_ms(1));
    let outgoing = |n: usize| Outgoing {
        body: format!("body {n}"),
        delay: if n == 3 { over } else { DurationMs::ZERO },
    };
    let mut sent = BTreeMap::new();
    for (n, answer) in c.queue().send_all((0..25).map(outgoing).collect()).await.into_iter().enumerate() {
        match answer {
            Ok(id) => drop(sent.insert(id, format!("body {n}"))),
            Err(error) => assert!(n == 3 && matches!(error, PortError::NeedsPerson { .. }), "{n}: {error:?}"),
        }
    }
    assert_eq!(sent.len(), 24);
    let received = receive(&c, 30).await.into_iter().map(|message| (message.message_id, message.body));
    assert_eq!(received.collect::<BTreeMap<_, _>>(), sent);
    assert!(c.queue().send_all(Vec::new()).await.is_empty());
}

/// However many receive at once, each message goes to one of them.
pub async fn concurrent_receivers_share_no_message<C: QueueCandidate>(c: C) {
    let sent: BTreeSet<MessageId> =
        futures::future::join_all((0..40).map(|_| send(&c, "work", 0))).await.into_iter().collect();
    let received = futures::future::join_all((0..16).map(|_| receive(&c, 5))).await.concat();
    assert_eq!(received.len(), 40, "some were received twice, or not at all");
    assert_eq!(received.into_iter().map(|message| message.message_id).collect::<BTreeSet<_>>(), sent);
}

/// C37: what is buried keeps its body to the byte, and every attribute.
pub async fn c37_a_burial_keeps_body_and_attributes<C: QueueCandidate>(c: C) {
    let body = "not json \u{d7ff} \u{10ffff} \n\t 🎉 \"<&>";
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let attributes = vec![
        ("reason", "undecodable: expected `{` at “1”".to_owned()),
        ("traceparent", trace.to_owned()),
        ("attempts_made", "7".to_owned()),
    ];
    let expected = Buried {
        body: body.to_owned(),
        attributes: attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
    };
    c.queue().bury(Burial { body: body.to_owned(), attributes }).await.expect("an answer");
    assert_eq!(c.browse_dlq().await, [expected]);
    assert_eq!(receive(&c, 10).await, [], "a burial is no wake-up");
}

/// What is buried twice lies there twice: to look for repeats is not the queue's business.
pub async fn burials_lie_in_their_order<C: QueueCandidate>(c: C) {
    for body in ["a", "b", "a"] {
        c.queue().bury(Burial { body: body.to_owned(), attributes: Vec::new() }).await.expect("an answer");
    }
    let bodies: Vec<String> = c.browse_dlq().await.into_iter().map(|buried| buried.body).collect();
    assert_eq!(bodies, ["a", "b", "a"]);
}

/// A message that is received again and again is moved, with its body, and not delivered once more.
pub async fn a_message_received_too_often_is_moved<C: QueueCandidate>(c: C) {
    let id = send(&c, "{\"poison\":\"ž\"}", 0).await;
    for count in 1..=c.max_receives() {
        let received = receive(&c, 10).await;
        assert_eq!(ids(&received), [&id], "receive {count}");
        assert_eq!(received[0].receive_count, count);
        c.pass(VISIBILITY).await;
    }
    assert_eq!(c.browse_dlq().await, []);
    let neighbour = send(&c, "healthy", 0).await;
    assert_eq!(ids(&receive(&c, 1).await), [&neighbour], "a moved message takes nobody's place");
    let bodies: BTreeMap<_, _> = c.browse_dlq().await.into_iter().map(|b| (b.body, b.attributes)).collect();
    assert_eq!(bodies.keys().collect::<Vec<_>>(), ["{\"poison\":\"ž\"}"]);
    c.pass(VISIBILITY).await;
    assert_eq!(ids(&receive(&c, 10).await), [&neighbour], "it is gone from the main queue");
}

pub(super) async fn send<C: QueueCandidate>(c: &C, body: &str, delay_ms: u64) -> MessageId {
    let outgoing = Outgoing { body: body.to_owned(), delay: DurationMs::from_ms(delay_ms) };
    c.queue().send(outgoing).await.expect("an answer")
}

pub(super) async fn receive<C: QueueCandidate>(c: &C, most: usize) -> Vec<Received> {
    c.queue().receive(most, VISIBILITY).await.expect("an answer")
}

pub(super) fn ids(received: &[Received]) -> Vec<&MessageId> {
    received.iter().map(|message| &message.message_id).collect()
}
