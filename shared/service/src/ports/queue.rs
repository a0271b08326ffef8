//! The queue of wake-ups, and its DLQ.

use waybill_domain::envelope::DeadLetter;
use waybill_domain::identity::MessageId;
use waybill_domain::time::{DurationMs, TimeMs};

use super::PortResult;

/// A wake-up to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// The message body: an envelope.
    pub body: String,
    /// How long the queue holds it back, at least; at most [`Queue::window`].
    pub delay: DurationMs,
}

/// A message for the dead-letter queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Burial {
    /// The body: an envelope, or the raw body of what nobody could read.
    pub body: String,
    /// Message attributes: reason and counts, for whoever browses the DLQ.
    pub attributes: Vec<(&'static str, String)>,
}

impl Burial {
    /// A dead letter, with what a browser of the DLQ looks for as attributes.
    pub fn of(letter: &DeadLetter) -> Self {
        let mut attributes = vec![
            ("reason", letter.reason.clone()),
            ("attempts_made", letter.attempts_made.to_string()),
            ("ended_at", letter.ended_at.to_string()),
            ("tenant", letter.facts.tenant.to_string()),
            ("destination", letter.facts.destination.to_string()),
        ];
        let trace = letter.facts.traceparent.map(|parent| ("traceparent", parent.to_string()));
        attributes.extend(trace);
        Self { body: letter.encode(), attributes }
    }
}

/// Where wake-ups go.
pub trait Queue: Send + Sync {
    /// The longest delay that a message can have.
    fn window(&self) -> DurationMs;

    /// Sends one wake-up. When this is answered, the message is stored durably.
    fn send(&self, message: Outgoing) -> impl Future<Output = PortResult<MessageId>> + Send;

    /// Sends several; one answer each, in their order. What becomes of one changes nothing for the
    /// others. A queue that takes several in one request does so.
    fn send_all(&self, messages: Vec<Outgoing>) -> impl Future<Output = Vec<PortResult<MessageId>>> + Send {
        async move {
            let mut answers = Vec::with_capacity(messages.len());
            for message in messages {
                answers.push(self.send(message).await);
            }
            answers
        }
    }

    /// Puts one message into the dead-letter queue.
    fn bury(&self, burial: Burial) -> impl Future<Output = PortResult<MessageId>> + Send;
}

/// Where a polling worker gets its messages. (On Lambda the event source mapping does this.)
pub trait Inbox: Send + Sync {
    /// Up to `most` visible messages, earliest visible first, each hidden for `visibility`; empty
    /// at once if there are none. Where more are visible, a queue may prefer those of a tenant and
    /// destination that has few (as SQS's fair queues do), as long as the earliest are among them.
    fn receive(
        &self,
        most: usize,
        visibility: DurationMs,
    ) -> impl Future<Output = PortResult<Vec<Received>>> + Send;

    /// Deletes a message. A stale receipt (the message was received again since) deletes nothing.
    fn acknowledge(&self, receipt: &Receipt) -> impl Future<Output = PortResult<()>> + Send;

    /// Changes until when a received message is hidden; a time that has passed shows it at once.
    /// A stale receipt changes nothing.
    fn hide_until(&self, receipt: &Receipt, until: TimeMs) -> impl Future<Output = PortResult<()>> + Send;

    /// When the next message becomes visible, for a poller that sleeps exactly that long; `None`
    /// if the queue is empty. It may have passed.
    fn next_visible_at(&self) -> impl Future<Output = PortResult<Option<TimeMs>>> + Send;
}

/// A message, received once.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// Which message: the same at every redelivery, and what [`Queue::send`] answered.
    pub message_id: MessageId,
    /// Which receiving of it.
    pub receipt: Receipt,
    /// The body as it was sent.
    pub body: String,
    /// How often it was received, this time included. Kept as SQS keeps it; used for nothing.
    pub receive_count: u32,
}

/// The right to delete a received message, until it is received again. Opaque: only the queue
/// that made it reads it. (SQS calls it a receipt handle.)
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Receipt(pub String);
