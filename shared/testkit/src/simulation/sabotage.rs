//! Rules broken on purpose, from outside: wrappers around ports that lie as a broken build would.
//!
//! A simulator that finds nothing proves nothing until it has been seen to find something.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use waybill_domain::address::RecipientUrl;
use waybill_domain::attempt::{Attempt, SendWindow, Sending};
use waybill_domain::delivery::{Change, Record, RecordData, State};
use waybill_domain::identity::{DeliveryKey, DestinationName, MessageId, WriteToken};
use waybill_domain::look_up::Finding;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{
    Applied, Burial, Created, Cursor, Inbox, Ledger, Outgoing, Page, PortResult, Queue, Receipt, Received,
    Recipient, Request,
};

use crate::faults::Staged;
use crate::memory::{Clause, MemoryLedger, MemoryQueue};

/// A rule that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// A settle whose condition failed while the claim is still its own is taken for landed
    /// (trace 7: the settled token is not compared).
    SettleTakenForLanded,
    /// A settle overwrites whatever is stored: the claim's token is not compared.
    LateOwnerOverwrites,
    /// A clause of a conditional write is left out.
    Drops(Clause),
    /// The message is deleted before the queue is told what follows.
    AcknowledgesBeforeHandOff,
    /// The copy that the record keeps does not repeat the hand-off (trace 2).
    NeverRepeatsHandOff,
    /// Right before the first byte, the deadline is not looked at.
    ForgetsDeadlineAtSend,
    /// Right before the first byte, the lease is not looked at.
    ForgetsLeaseAtSend,
    /// A claim's own copy is deleted under the live claim (trace 1).
    AcknowledgesOwnClaim,
    /// The queue loses wake-ups and says that it has them.
    QueueDropsSends,
    /// The dead-letter queue loses dead letters and says that it has them.
    QueueDropsBurials,
    /// Evidence is not written.
    EvidenceIsDropped,
    /// What is given back stays leased.
    SlotsAreNotGivenBack,
    /// Whoever gives a slot back frees another's, too.
    ReleasesAnothersSlot,
    /// Every wake-up is sent twice.
    DoublesWakeUps,
    /// Workers do not see what is held.
    IgnoresHolds,
    /// Workers do not see how far a hold is eased: what it lets go, they let go all at once.
    IgnoresLimits,
    /// Workers go on to hold what is eased.
    HoldsWhatIsEased,
    /// What is held goes in any order.
    ReleasesInAnyOrder,
    /// A run does not write down what it takes in hand before it releases it.
    ForgetsWhatIsInHand,
    /// A recipient that can be asked is not: what is in doubt is sent again.
    SendsInDoubt,
    /// A success does not end the row of failures.
    SuccessIsNotCounted,
    /// Nobody lifts a suspension, neither a probe nor a person.
    SuspensionIsNeverLifted,
    /// Nobody sees that a destination is suspended.
    IgnoresSuspensions,
    /// Workers do not see that a probe is under way, or was a moment ago.
    ProbesSideBySide,
}

/// A port of one actor, as a broken build would use it.
#[derive(Debug, Clone)]
pub struct Sabotaged<P> {
    pub(super) inner: P,
    pub(super) sabotage: Option<Sabotage>,
    hand: Hand,
}

/// What a worker has in hand: its message, and the token of its claim.
#[derive(Debug, Clone, Default)]
pub struct Hand {
    message: Arc<Mutex<Option<Received>>>,
    claim: Arc<Mutex<Option<WriteToken>>>,
}

impl Hand {
    /// Takes a message in hand.
    pub fn take(&self, message: Received) {
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }

    fn note_claim(&self, change: &Change) {
        if let Some(claim) = &change.after().claim {
            *self.claim.lock().unwrap_or_else(PoisonError::into_inner) = Some(claim.token.clone());
        }
    }

    /// Whether a change ends the claim that was made with this hand.
    fn settles(&self, change: &Change) -> bool {
        let claim = self.claim.lock().unwrap_or_else(PoisonError::into_inner);
        change.after().claim.is_none() && claim.is_some() && change.after().settled_token == *claim
    }

    fn message(&self) -> Option<Received> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<P> Sabotaged<P> {
    /// The port, honest where `sabotage` is none.
    pub fn new(inner: P, sabotage: Option<Sabotage>, hand: &Hand) -> Self {
        Self { inner, sabotage, hand: hand.clone() }
    }

    pub(super) fn breaks(&self, rule: Sabotage) -> bool {
        self.sabotage == Some(rule)
    }
}

/// The ledger of the simulator, behind its fault points.
#[derive(Debug, Clone)]
pub struct StagedLedger {
    /// With fault points.
    pub staged: Staged<MemoryLedger>,
    /// Without, for saboteurs only.
    pub bare: MemoryLedger,
}

impl Ledger for Sabotaged<StagedLedger> {
    async fn create(&self, record: &Record, payload: &Bytes) -> PortResult<Created> {
        self.inner.staged.create(record, payload).await
    }

    async fn load(&self, key: &DeliveryKey) -> PortResult<Option<Record>> {
        let loaded = self.inner.staged.load(key).await?;
        let in_hand = self.hand.message().map(|message| message.message_id);
        Ok(loaded.map(|record| match self.breaks(Sabotage::NeverRepeatsHandOff) {
            true if record.copy.is_some() && record.copy == in_hand => without_copy(&record),
            _ => record,
        }))
    }

    async fn payload(&self, key: &DeliveryKey) -> PortResult<Option<Bytes>> {
        self.inner.staged.payload(key).await
    }

    async fn apply(&self, change: &Change) -> PortResult<Applied> {
        self.hand.note_claim(change);
        let applied = self.inner.staged.apply(change).await?;
        let Applied::Lost(Some(stored)) = &applied else { return Ok(applied) };
        if !self.hand.settles(change) {
            return Ok(applied);
        }
        if self.breaks(Sabotage::LateOwnerOverwrites) {
            self.inner.bare.overwrite(change.after().clone());
            return Ok(Applied::Landed);
        }
        let claim_token = stored.claim.as_ref().map(|claim| &claim.token);
        let is_still_ours = claim_token.is_some() && claim_token == change.after().settled_token.as_ref();
        if is_still_ours && self.breaks(Sabotage::SettleTakenForLanded) {
            return Ok(Applied::Landed);
        }
        Ok(applied)
    }

    async fn add_attempt(&self, key: &DeliveryKey, attempt: &Attempt) -> PortResult<()> {
        if self.breaks(Sabotage::EvidenceIsDropped) {
            return Ok(());
        }
        self.inner.staged.add_attempt(key, attempt).await
    }

    async fn attempts(&self, key: &DeliveryKey) -> PortResult<Vec<Attempt>> {
        self.inner.staged.attempts(key).await
    }

    async fn due_for_look(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.inner.staged.due_for_look(now, limit, from).await
    }

    async fn held_destinations(&self) -> PortResult<Vec<DestinationName>> {
        self.inner.staged.held_destinations().await
    }

    async fn held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        let mut page = self.inner.staged.held(destination, limit, from).await?;
        if self.breaks(Sabotage::ReleasesInAnyOrder) {
            page.items.reverse();
        }
        Ok(page)
    }
}

/// A record is read-only; as a document it is not.
fn without_copy(record: &Record) -> Record {
    let data = RecordData { copy: None, ..RecordData::clone(record) };
    let document = serde_json::to_value(data).expect("a record is a document");
    serde_json::from_value(document).expect("a record's document is a record")
}

impl Queue for Sabotaged<Staged<MemoryQueue>> {
    fn window(&self) -> DurationMs {
        Queue::window(&self.inner)
    }

    async fn send(&self, message: Outgoing) -> PortResult<MessageId> {
        self.acknowledge_first().await?;
        if self.breaks(Sabotage::QueueDropsSends) {
            return Ok(MessageId::parse("dropped").expect("a word is printable"));
        }
        if self.breaks(Sabotage::DoublesWakeUps) {
            self.inner.send(message.clone()).await?;
        }
        self.inner.send(message).await
    }

    async fn bury(&self, burial: Burial) -> PortResult<MessageId> {
        self.acknowledge_first().await?;
        if self.breaks(Sabotage::QueueDropsBurials) {
            return Ok(MessageId::parse("dropped").expect("a word is printable"));
        }
        self.inner.bury(burial).await
    }
}

impl Sabotaged<Staged<MemoryQueue>> {
    async fn acknowledge_first(&self) -> PortResult<()> {
        match self.hand.message() {
            Some(message) if self.breaks(Sabotage::AcknowledgesBeforeHandOff) => {
                self.inner.acknowledge(&message.receipt).await
            }
            _ => Ok(()),
        }
    }
}

impl Inbox for Sabotaged<Staged<MemoryQueue>> {
    async fn receive(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        self.inner.receive(most, visibility).await
    }

    async fn acknowledge(&self, receipt: &Receipt) -> PortResult<()> {
        self.inner.acknowledge(receipt).await
    }

    async fn hide_until(&self, receipt: &Receipt, until: TimeMs) -> PortResult<()> {
        if self.breaks(Sabotage::AcknowledgesOwnClaim) {
            return self.inner.acknowledge(receipt).await;
        }
        self.inner.hide_until(receipt, until).await
    }

    async fn next_visible_at(&self) -> PortResult<Option<TimeMs>> {
        self.inner.next_visible_at().await
    }
}

impl<P: Recipient> Recipient for Sabotaged<P> {
    async fn look_up(&self, request: Request, url: RecipientUrl, window: SendWindow) -> Finding {
        if self.breaks(Sabotage::SendsInDoubt) {
            return Finding::NotApplied;
        }
        self.inner.look_up(request, url, window).await
    }

    async fn send(&self, request: Request, mut window: SendWindow) -> Sending {
        let never = TimeMs::from_unix_ms(i64::MAX);
        if self.breaks(Sabotage::ForgetsDeadlineAtSend) {
            window.limit_at = never;
        }
        if self.breaks(Sabotage::ForgetsLeaseAtSend) {
            // Time that was slept away does not count either.
            window.started_at = never;
            window.lease_until = never;
        }
        self.inner.send(request, window).await
    }
}

/// Whether `change` is a success.
pub(super) fn is_success(change: &Change) -> bool {
    change.after().state == State::Succeeded
}
