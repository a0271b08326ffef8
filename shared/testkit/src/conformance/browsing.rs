//! The dead-letter queue as the sweep browses it: what is looked at is hidden, and a receipt is good
//! for one look.

use waybill_domain::time::DurationMs;
use waybill_service::ports::{Burial, Inbox, Outgoing, Queue, Receipt, Received};
use waybill_service::sweep::DeadLetterBox;

use super::QueueCandidate;

const LOOK: DurationMs = DurationMs::from_secs(30);

/// An empty box shows nothing, and nothing of the main queue.
pub async fn an_empty_box_shows_nothing<C: QueueCandidate>(candidate: C)
where
    C::Queue: DeadLetterBox,
{
    let outgoing = Outgoing { body: "a wake-up".to_owned(), delay: DurationMs::ZERO };
    candidate.queue().send(outgoing).await.expect("an answer");
    assert_eq!(bodies(&take(&candidate, 10).await), [""; 0]);
}

/// A dead letter is shown with its body and its ID, and stays where it is.
pub async fn a_dead_letter_is_shown_as_it_was_buried<C: QueueCandidate>(candidate: C)
where
    C::Queue: DeadLetterBox,
{
    let body = "{\"reason\":\"gone\",\"é\":1.0}".to_owned();
    let attributes = vec![("reason", "gone".to_owned())];
    let burial = Burial { body: body.clone(), attributes };
    let message_id = candidate.queue().bury(burial).await.expect("an answer");
    let taken = take(&candidate, 10).await;
    assert_eq!(taken.len(), 1);
    assert_eq!((&taken[0].message_id, &taken[0].body), (&message_id, &body));
    // What hides it from the next look may hide it here as well.
    show(&candidate, &taken[0].receipt).await;
    assert_eq!(candidate.browse_dlq().await.len(), 1, "looking removes nothing");
    assert!(receive(&candidate).await.is_empty(), "it does not come back to the main queue");
}

/// What the redrive policy moved is shown with the body that it had.
pub async fn a_message_moved_by_the_redrive_policy_is_shown<C: QueueCandidate>(candidate: C)
where
    C::Queue: DeadLetterBox,
{
    let outgoing = Outgoing { body: "a wake-up".to_owned(), delay: DurationMs::ZERO };
    candidate.queue().send(outgoing).await.expect("an answer");
    for _ in 0..=candidate.max_receives() {
        candidate.queue().receive(1, DurationMs::from_secs(1)).await.expect("an answer");
        candidate.pass(DurationMs::from_secs(1)).await;
        candidate.pass_the_rest().await;
    }
    assert_eq!(bodies(&take(&candidate, 10).await), ["a wake-up"]);
}

/// What is looked at is hidden for as long as was asked, and then shown again.
pub async fn what_is_looked_at_is_hidden_until_then<C: QueueCandidate>(candidate: C)
where
    C::Queue: DeadLetterBox,
{
    bury(&candidate, &["a"]).await;
    let first = take(&candidate, 10).await;
    assert_eq!(bodies(&first), ["a"]);
    assert!(take(&candidate, 10).await.is_empty());
    candidate.pass_until_just_before(LOOK).await;
    assert!(take(&candidate, 10).await.is_empty());
    candidate.pass_the_rest().await;
    let second = take(&candidate, 10).await;
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].message_id, first[0].message_id);
    assert_ne!(second[0].receipt, first[0].receipt);
}

/// No more are taken than were asked for; what is left is taken by the next.
pub async fn each_is_taken_once_while_it_is_hidden<C: QueueCandidate>(candidate: C)
where
    C::Queue: DeadLetterBox,
{
    bury(&candidate, &["a", "b", "c", "d", "e"]).await;
    let mut taken = Vec::new();
    // SQS may answer fewer than there are, and waits for a moment where there are none.
    for _ in 0..10 {
        let some = take(&candidate, 2).await;
        assert!(some.len() <= 2, "{some:?}");
        taken.extend(some);
    }
    assert_eq!(bodies(&taken), ["a", "b", "c", "d", "e"]);
}

/// What is removed is gone; removing it again is no error.
pub async fn what_is_removed_is_gone<C: QueueCandidate>(candidate: C)
where
    C::Queue: DeadLetterBox,
{
    bury(&candidate, &["a", "b"]).await;
    let taken = take_all(&candidate, 2).await;
    let a = taken.iter().find(|message| message.body == "a").expect("it is there");
    for _ in 0..2 {
        candidate.queue().remove(&a.receipt).await.expect("an answer");
    }
    let left: Vec<String> = candidate.browse_dlq().await.into_iter().map(|dead| dead.body).collect();
    assert!(left.iter().all(|body| body == "b"), "{left:?}");
    candidate.pass(LOOK).await;
    candidate.pass_the_rest().await;
    assert_eq!(bodies(&take_all(&candidate, 1).await), ["b"]);
}

/// What is shown again can be looked at at once.
pub async fn what_is_shown_again_is_there_at_once<C: QueueCandidate>(candidate: C)
where
    C::Queue: DeadLetterBox,
{
    bury(&candidate, &["a"]).await;
    let taken = take_all(&candidate, 1).await;
    show(&candidate, &taken[0].receipt).await;
    assert_eq!(bodies(&take_all(&candidate, 1).await), ["a"]);
}

/// A receipt is good until the next look: after that it removes nothing and shows nothing.
pub async fn a_stale_receipt_removes_nothing_and_shows_nothing<C: QueueCandidate>(candidate: C)
where
    C::Queue: DeadLetterBox,
{
    bury(&candidate, &["a"]).await;
    let stale = take_all(&candidate, 1).await.remove(0).receipt;
    candidate.pass(LOOK).await;
    candidate.pass_the_rest().await;
    let good = take_all(&candidate, 1).await.remove(0).receipt;
    // Whether a stale receipt is refused or passed over is the queue's affair.
    let _ = candidate.queue().show(&stale).await;
    assert!(take(&candidate, 10).await.is_empty(), "a stale receipt showed it");
    let _ = candidate.queue().remove(&stale).await;
    show(&candidate, &good).await;
    assert_eq!(bodies(&take_all(&candidate, 1).await), ["a"], "a stale receipt removed it");
}

async fn bury<C: QueueCandidate>(candidate: &C, bodies: &[&str]) {
    for body in bodies {
        let burial = Burial { body: (*body).to_owned(), attributes: Vec::new() };
        candidate.queue().bury(burial).await.expect("an answer");
    }
}

async fn take<C: QueueCandidate>(candidate: &C, most: usize) -> Vec<Received>
where
    C::Queue: DeadLetterBox,
{
    candidate.queue().take(most, LOOK).await.expect("an answer")
}

/// So many, in as many calls as it takes.
async fn take_all<C: QueueCandidate>(candidate: &C, count: usize) -> Vec<Received>
where
    C::Queue: DeadLetterBox,
{
    let mut taken = Vec::new();
    for _ in 0..50 {
        taken.extend(take(candidate, 10).await);
        if taken.len() >= count {
            break;
        }
    }
    assert_eq!(taken.len(), count, "{taken:?}");
    taken
}

async fn show<C: QueueCandidate>(candidate: &C, receipt: &Receipt)
where
    C::Queue: DeadLetterBox,
{
    candidate.queue().show(receipt).await.expect("an answer");
}

async fn receive<C: QueueCandidate>(candidate: &C) -> Vec<Received> {
    candidate.queue().receive(10, DurationMs::from_secs(1)).await.expect("an answer")
}

fn bodies(messages: &[Received]) -> Vec<&str> {
    let mut bodies: Vec<&str> = messages.iter().map(|message| message.body.as_str()).collect();
    bodies.sort_unstable();
    bodies
}
