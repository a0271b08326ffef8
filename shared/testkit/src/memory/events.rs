//! How a queue in memory behaves, and what it tells of itself.

use waybill_domain::identity::MessageId;
use waybill_domain::time::{DurationMs, TimeMs};

/// How this queue behaves where queues differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueRules {
    /// The longest delay.
    pub window: DurationMs,
    /// Whether a stale receipt deletes its message, as SQS's may.
    pub stale_receipts_delete: bool,
    /// How often a message is received before it is moved into the dead-letter queue instead.
    pub max_receives: Option<u32>,
}

impl Default for QueueRules {
    fn default() -> Self {
        Self { window: DurationMs::from_secs(900), stale_receipts_delete: false, max_receives: None }
    }
}

/// A message in the dead-letter queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Buried {
    /// Which message.
    pub message_id: MessageId,
    /// Its body.
    pub body: String,
    /// Its attributes.
    pub attributes: Vec<(&'static str, String)>,
    /// Whether the queue moved it by itself, because it was received too often.
    pub natively: bool,
}

/// What happened to the queue.
#[derive(Debug, Clone, PartialEq)]
pub enum QueueEvent {
    /// A wake-up was sent.
    Sent {
        /// Which message it became.
        message_id: MessageId,
        /// The body.
        body: String,
        /// When it becomes visible.
        visible_at: TimeMs,
    },
    /// A message was put into the dead-letter queue, or moved there natively.
    Buried(Buried),
    /// A message was deleted.
    Deleted(MessageId),
}
