//! What a worker decides, seen from outside: the admission of every record that it loads.
//!
//! The admission is a pure function, so whoever sees what a worker sees knows what it decides.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use waybill_domain::admit::{Admission, Scene, admit};
use waybill_domain::attempt::Attempt;
use waybill_domain::budget::Usage;
use waybill_domain::delivery::{Change, Record};
use waybill_domain::envelope::WakeUp;
use waybill_domain::identity::{DeliveryKey, DestinationName, MessageId, WriteToken};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::Config;
use waybill_service::ports::{
    Applied, Budgets, Clock, Created, Cursor, KeptUsage, Ledger, Page, PortResult, UsageSet,
};

use crate::clock::SkewedClock;

use super::sabotage::is_success;

/// Told of every admission: by whom, of which record, for which copy, and what.
pub type OnAdmission = Arc<dyn Fn(&Record, &MessageId, &Admission) + Send + Sync>;

/// What one worker sees.
#[derive(Clone)]
pub struct Sight {
    clock: SkewedClock,
    config: Arc<Config>,
    case: Arc<Mutex<Option<Case>>>,
    is_late_look: Arc<AtomicBool>,
    /// It has written its conclusion: whatever it loads from now on is looked at as something held.
    has_concluded: Arc<AtomicBool>,
    told: Option<OnAdmission>,
}

#[derive(Debug, Clone)]
struct Case {
    message_id: MessageId,
    wakeup: WakeUp,
    ends_at: TimeMs,
    settled_before: Option<WriteToken>,
}

impl std::fmt::Debug for Sight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sight").field("case", &self.case).finish_non_exhaustive()
    }
}

impl Sight {
    /// The sight of a worker with this clock and configuration.
    pub fn new(clock: &SkewedClock, config: &Arc<Config>, told: Option<OnAdmission>) -> Self {
        Self {
            clock: clock.clone(),
            config: config.clone(),
            case: Arc::default(),
            is_late_look: Arc::default(),
            has_concluded: Arc::default(),
            told,
        }
    }

    /// The worker takes up a wake-up, and has `time_left`.
    pub fn take_up(&self, message_id: &MessageId, wakeup: WakeUp, time_left: DurationMs) {
        let ends_at = self.clock.now().plus(time_left);
        let case = Case { message_id: message_id.clone(), wakeup, ends_at, settled_before: None };
        *self.case.lock().unwrap_or_else(PoisonError::into_inner) = Some(case);
    }

    /// Every write that concludes leaves a token of its own; a claim and a lift leave the old one.
    fn applied(&self, change: &Change, applied: &Applied) {
        let case = self.case.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(case) = case.as_ref() else { return };
        let (after, stored) = match applied {
            Applied::Landed => (change.after(), change.after()),
            Applied::Lost(Some(stored)) => (change.after(), &**stored),
            Applied::Lost(None) => return,
        };
        let is_own = case.wakeup.facts.key() == after.delivery.key();
        if is_own && after.settled_token != case.settled_before && after.settled_token == stored.settled_token
        {
            self.has_concluded.store(true, Ordering::SeqCst);
        }
    }

    fn loaded(&self, record: &Record) {
        // The load after a success whose settle was lost is the late acknowledgement's.
        if self.is_late_look.swap(false, Ordering::SeqCst) {
            return;
        }
        let mut case = self.case.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(case), Some(told)) = (case.as_mut(), &self.told) else { return };
        // Whoever frees a slot looks at others, too.
        if case.wakeup.facts.key() != record.delivery.key() || self.has_concluded.load(Ordering::SeqCst) {
            return;
        }
        case.settled_before.clone_from(&record.settled_token);
        let now = self.clock.now();
        let destination = self.config.destination_of(&record.delivery);
        let scene = Scene {
            destination: destination.as_deref(),
            holds: &self.config.holds,
            time_left: case.ends_at.since(now),
            now,
        };
        told(record, &case.message_id, &admit(record, &case.wakeup, &case.message_id, scene));
    }
}

/// A worker's ledger, watched.
#[derive(Debug, Clone)]
pub struct Watched<L> {
    inner: L,
    sight: Sight,
}

impl<L> Watched<L> {
    /// Watches a ledger.
    pub fn new(inner: L, sight: &Sight) -> Self {
        Self { inner, sight: sight.clone() }
    }
}

impl<L: Ledger> Ledger for Watched<L> {
    async fn create(&self, record: &Record, payload: &Bytes) -> PortResult<Created> {
        self.inner.create(record, payload).await
    }

    async fn load(&self, key: &DeliveryKey) -> PortResult<Option<Record>> {
        let loaded = self.inner.load(key).await?;
        if let Some(record) = &loaded {
            self.sight.loaded(record);
        }
        Ok(loaded)
    }

    async fn payload(&self, key: &DeliveryKey) -> PortResult<Option<Bytes>> {
        self.inner.payload(key).await
    }

    async fn apply(&self, change: &Change) -> PortResult<Applied> {
        let applied = self.inner.apply(change).await?;
        self.sight.applied(change, &applied);
        if matches!(applied, Applied::Lost(_)) && is_success(change) {
            self.sight.is_late_look.store(true, Ordering::SeqCst);
        }
        Ok(applied)
    }

    async fn add_attempt(&self, key: &DeliveryKey, attempt: &Attempt) -> PortResult<()> {
        self.inner.add_attempt(key, attempt).await
    }

    async fn attempts(&self, key: &DeliveryKey) -> PortResult<Vec<Attempt>> {
        self.inner.attempts(key).await
    }

    async fn due_for_look(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.inner.due_for_look(now, limit, from).await
    }

    async fn held_destinations(&self) -> PortResult<Vec<DestinationName>> {
        self.inner.held_destinations().await
    }

    async fn held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.inner.held(destination, limit, from).await
    }
}

impl<L: Budgets> Budgets for Watched<L> {
    async fn usage(&self, destination: &DestinationName) -> PortResult<KeptUsage> {
        self.inner.usage(destination).await
    }

    async fn set_usage(
        &self,
        destination: &DestinationName,
        expected: u64,
        usage: &Usage,
    ) -> PortResult<UsageSet> {
        self.inner.set_usage(destination, expected, usage).await
    }
}
