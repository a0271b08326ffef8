//! One message, its receipts and its duplicates.

use waybill_domain::identity::MessageId;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Receipt, Received};

#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) message_id: MessageId,
    pub(super) body: String,
    pub(super) visible_at: TimeMs,
    pub(super) receive_count: u32,
    /// Receipts that count: of the last receiving and of duplicates since.
    pub(super) receipts: Vec<Receipt>,
    /// Copies that are delivered although the message is hidden.
    pub(super) duplicates: u32,
}

impl Message {
    pub(super) fn new(message_id: MessageId, body: String, visible_at: TimeMs) -> Self {
        Self { message_id, body, visible_at, receive_count: 0, receipts: Vec::new(), duplicates: 0 }
    }

    pub(super) fn receive(&mut self, now: TimeMs, visibility: DurationMs) -> Received {
        self.receive_count += 1;
        let receipt = Receipt(format!("{}#{}", self.message_id, self.receive_count));
        if self.visible_at <= now {
            self.receipts.clear();
            self.visible_at = now.plus(visibility);
        } else {
            self.duplicates -= 1;
        }
        self.receipts.push(receipt.clone());
        Received {
            message_id: self.message_id.clone(),
            receipt,
            body: self.body.clone(),
            receive_count: self.receive_count,
        }
    }

    pub(super) fn answers_to(&self, receipt: &Receipt, stale_too: bool) -> bool {
        let is_of_this = receipt.0.split_once('#').is_some_and(|(id, _)| id == self.message_id.as_str());
        self.receipts.contains(receipt) || (stale_too && is_of_this)
    }
}
