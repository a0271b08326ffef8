//! The queue in memory: visibility timeouts, receipts, duplicates, loss, and a dead-letter queue.
//!
//! A message that is received again has the same identifier and another receipt. Deleting it
//! deletes every copy of it, as SQS's duplicates are one message.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waybill_domain::identity::MessageId;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{
    Burial, Clock, Inbox, Outgoing, PortError, PortResult, Queue, Receipt, Received,
};

use waybill_service::sweep::DeadLetterBox;

use crate::clock::VirtualClock;

use super::events::{Buried, QueueEvent, QueueRules};
use super::message::Message;

/// A queue in memory. Copies of it share one store.
#[derive(Debug, Clone)]
pub struct MemoryQueue {
    clock: VirtualClock,
    rules: QueueRules,
    store: Arc<Mutex<Store>>,
}

#[derive(Debug, Default)]
struct Store {
    messages: Vec<Message>,
    buried: Vec<Buried>,
    /// Until when dead letters that were looked at are hidden, and by which receipt.
    hidden: BTreeMap<MessageId, (TimeMs, String)>,
    deleted: Vec<Message>,
    journal: Vec<QueueEvent>,
    counted: u64,
}

impl MemoryQueue {
    /// An empty queue whose time is `clock`'s.
    pub fn new(clock: &VirtualClock, rules: QueueRules) -> Self {
        Self { clock: clock.clone(), rules, store: Arc::default() }
    }

    /// The next receive also gets this message, hidden or even deleted as it may be: SQS delivers
    /// more than once. Whether there was such a message.
    pub fn duplicate(&self, message_id: &MessageId) -> bool {
        let mut store = self.store();
        if let Some(message) = store.messages.iter_mut().find(|m| m.message_id == *message_id) {
            message.duplicates += 1;
            return true;
        }
        let Some(at) = store.deleted.iter().position(|m| m.message_id == *message_id) else { return false };
        let mut message = store.deleted.swap_remove(at);
        message.visible_at = self.clock.now();
        message.receipts.clear();
        store.messages.push(message);
        true
    }

    /// The message is gone, and nobody deleted it. Whether there was such a message.
    pub fn lose(&self, message_id: &MessageId) -> bool {
        let mut store = self.store();
        let before = store.messages.len();
        store.messages.retain(|m| m.message_id != *message_id);
        store.messages.len() < before
    }

    /// The message becomes visible now, whatever its delay or its visibility timeout says.
    pub fn hurry(&self, message_id: &MessageId) {
        let now = self.clock.now();
        if let Some(message) = self.store().messages.iter_mut().find(|m| m.message_id == *message_id) {
            message.visible_at = now;
        }
    }

    /// The message becomes visible at `until`, if that is later than it would.
    pub fn postpone(&self, message_id: &MessageId, until: TimeMs) {
        if let Some(message) = self.store().messages.iter_mut().find(|m| m.message_id == *message_id) {
            message.visible_at = message.visible_at.max(until);
        }
    }

    /// Moves a message into the dead-letter queue, as a queue does with one that nobody could work on.
    pub fn move_natively(&self, message_id: &MessageId) -> bool {
        let mut store = self.store();
        let Some(at) = store.messages.iter().position(|m| m.message_id == *message_id) else { return false };
        let message = store.messages.remove(at);
        store.bury(message.message_id, message.body, Vec::new(), true);
        true
    }

    /// The console's redrive: every dead letter comes back to the main queue, as a new message.
    pub fn redrive_all_from_console(&self) {
        let now = self.clock.now();
        let mut store = self.store();
        for buried in std::mem::take(&mut store.buried) {
            store.add(buried.body, now);
        }
    }

    /// Every message is gone; dead letters stay.
    pub fn purge(&self) {
        self.store().messages.clear();
    }

    /// What the dead-letter queue holds.
    pub fn dead_letters(&self) -> Vec<Buried> {
        self.store().buried.clone()
    }

    /// The messages that are not deleted: identifier, body, and when they are visible.
    pub fn messages(&self) -> Vec<(MessageId, String, TimeMs)> {
        self.store().messages.iter().map(|m| (m.message_id.clone(), m.body.clone(), m.visible_at)).collect()
    }

    /// The identifiers of messages that were deleted.
    pub fn deleted(&self) -> Vec<MessageId> {
        self.store().deleted.iter().map(|m| m.message_id.clone()).collect()
    }

    /// Whether a message stands in the queue, hidden or not.
    pub fn holds(&self, message_id: &MessageId) -> bool {
        self.store().messages.iter().any(|m| m.message_id == *message_id)
    }

    /// When the next message can be received; it may have passed.
    pub fn next_at(&self) -> Option<TimeMs> {
        let store = self.store();
        let now = self.clock.now();
        store.messages.iter().map(|m| if m.duplicates > 0 { now } else { m.visible_at }).min()
    }

    /// What happened since the last call, in order.
    pub fn take_journal(&self) -> Vec<QueueEvent> {
        std::mem::take(&mut self.store().journal)
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    fn next_id(&mut self) -> MessageId {
        self.counted += 1;
        MessageId::parse(format!("m{}", self.counted)).expect("a number is printable")
    }

    fn hidden_by(&self, receipt: &Receipt) -> Option<MessageId> {
        let found = self.hidden.iter().find(|(_, (_, by))| *by == receipt.0);
        found.map(|(id, _)| id.clone())
    }

    fn add(&mut self, body: String, visible_at: TimeMs) -> MessageId {
        let message_id = self.next_id();
        self.journal.push(QueueEvent::Sent {
            message_id: message_id.clone(),
            body: body.clone(),
            visible_at,
        });
        self.messages.push(Message::new(message_id.clone(), body, visible_at));
        message_id
    }

    fn bury(
        &mut self,
        message_id: MessageId,
        body: String,
        attributes: Vec<(&'static str, String)>,
        natively: bool,
    ) {
        let buried = Buried { message_id, body, attributes, natively };
        self.journal.push(QueueEvent::Buried(buried.clone()));
        self.buried.push(buried);
    }
}

impl Queue for MemoryQueue {
    fn window(&self) -> DurationMs {
        self.rules.window
    }

    async fn send(&self, message: Outgoing) -> PortResult<MessageId> {
        if message.delay > self.rules.window {
            let cause = format!("a delay of {} is over the queue's {}", message.delay, self.rules.window);
            return Err(PortError::NeedsPerson { port: "queue", cause: cause.into() });
        }
        // In whole seconds, rounded up: a queue delay is never early.
        let delay = DurationMs::from_secs(message.delay.whole_secs_up());
        let visible_at = self.clock.now().plus(delay);
        Ok(self.store().add(message.body, visible_at))
    }

    async fn bury(&self, burial: Burial) -> PortResult<MessageId> {
        let mut store = self.store();
        let message_id = store.next_id();
        store.bury(message_id.clone(), burial.body, burial.attributes, false);
        Ok(message_id)
    }
}

impl Inbox for MemoryQueue {
    async fn receive(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        let now = self.clock.now();
        let mut store = self.store();
        if let Some(most_receives) = self.rules.max_receives {
            let is_spent = |m: &Message| m.visible_at <= now && m.receive_count >= most_receives;
            while let Some(at) = store.messages.iter().position(is_spent) {
                let message = store.messages.remove(at);
                store.bury(message.message_id, message.body, Vec::new(), true);
            }
        }
        // Stable: of messages that became visible together, the one sent first.
        store.messages.sort_by_key(|m| m.visible_at);
        let receivable = store.messages.iter_mut().filter(|m| m.visible_at <= now || m.duplicates > 0);
        Ok(receivable.take(most).map(|message| message.receive(now, visibility)).collect())
    }

    async fn acknowledge(&self, receipt: &Receipt) -> PortResult<()> {
        let stale_too = self.rules.stale_receipts_delete;
        let mut store = self.store();
        let found = store.messages.iter().position(|m| m.answers_to(receipt, stale_too));
        if let Some(at) = found {
            let message = store.messages.remove(at);
            store.journal.push(QueueEvent::Deleted(message.message_id.clone()));
            store.deleted.push(message);
        }
        Ok(())
    }

    async fn hide_until(&self, receipt: &Receipt, until: TimeMs) -> PortResult<()> {
        let mut store = self.store();
        if let Some(message) = store.messages.iter_mut().find(|m| m.answers_to(receipt, false)) {
            message.visible_at = until;
        }
        Ok(())
    }

    async fn next_visible_at(&self) -> PortResult<Option<TimeMs>> {
        Ok(self.next_at())
    }
}

impl DeadLetterBox for MemoryQueue {
    async fn take(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        let now = self.clock.now();
        let mut store = self.store();
        let is_hidden = |store: &Store, id: &MessageId| store.hidden.get(id).is_some_and(|(at, _)| *at > now);
        let visible: Vec<Buried> =
            store.buried.iter().filter(|b| !is_hidden(&store, &b.message_id)).take(most).cloned().collect();
        let mut taken = Vec::new();
        for Buried { message_id, body, .. } in visible {
            store.counted += 1;
            let receipt = format!("{message_id}#{}", store.counted);
            store.hidden.insert(message_id.clone(), (now.plus(visibility), receipt.clone()));
            taken.push(Received { message_id, receipt: Receipt(receipt), body, receive_count: 1 });
        }
        Ok(taken)
    }

    async fn remove(&self, receipt: &Receipt) -> PortResult<()> {
        let mut store = self.store();
        if let Some(id) = store.hidden_by(receipt) {
            store.buried.retain(|buried| buried.message_id != id);
            store.hidden.remove(&id);
        }
        Ok(())
    }

    async fn show(&self, receipt: &Receipt) -> PortResult<()> {
        let mut store = self.store();
        if let Some(id) = store.hidden_by(receipt) {
            store.hidden.remove(&id);
        }
        Ok(())
    }
}
