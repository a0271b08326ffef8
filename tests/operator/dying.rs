//! A process that dies after so many calls: from then on every port is silent; or one whose calls take
//! their time.

use std::cell::Cell;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use waybill_domain::attempt::Attempt;
use waybill_domain::audit::Entry;
use waybill_domain::authority::Book;
use waybill_domain::budget::Usage;
use waybill_domain::delivery::{Change, Record};
use waybill_domain::identity::{DeliveryId, DeliveryKey, DestinationName, MessageId, TenantId};
use waybill_domain::order::{Order, OrderChange, OrderId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::office::{Entered, Office};
use waybill_service::ports::{
    Applied, Budgets, Burial, Catalogue, Created, Cursor, DeadLetterFilter, DeadLetterGroup, Filter,
    KeptUsage, Ledger, Outgoing, Page, PortError, PortResult, Queue, Receipt, Received, UsageSet,
};
use waybill_service::sweep::DeadLetterBox;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::memory::{MemoryLedger, MemoryOffice, MemoryQueue};

/// How many calls are left, and what each takes; shared by the ports of one process.
pub(crate) struct Life {
    left: AtomicUsize,
    pace: Option<(VirtualClock, DurationMs)>,
    /// What somebody else does right before the first change of a record.
    meanwhile: Mutex<Option<Meanwhile>>,
}

type Meanwhile = Box<dyn FnOnce() + Send>;

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Life {
    pub(crate) fn of(calls: usize) -> Self {
        Self { left: AtomicUsize::new(calls), pace: None, meanwhile: Mutex::default() }
    }

    /// One without an end, in which each call takes so long.
    pub(crate) fn slow(clock: &VirtualClock, each: DurationMs) -> Self {
        Self { pace: Some((clock.clone(), each)), ..Self::of(usize::MAX) }
    }

    /// One without an end, in which somebody else is quicker once: right before its first change of a record.
    pub(crate) fn overtaken(by: impl FnOnce() + Send + 'static) -> Self {
        Self { meanwhile: Mutex::new(Some(Box::new(by))), ..Self::of(usize::MAX) }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    fn call(&self) -> PortResult<()> {
        let left = Cell::new(0);
        let take = |calls: usize| {
            left.set(calls);
            Some(calls.saturating_sub(1))
        };
        if let Some((clock, each)) = &self.pace {
            clock.advance(*each);
        }
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        match left.get() {
            0 => Err(PortError::AskLater { port: "ledger", cause: "the process is dead".into() }),
            _ => Ok(()),
        }
    }
}

/// A port of a process that dies.
#[derive(Debug)]
pub(crate) struct Dying<'a, T>(pub(crate) &'a T, pub(crate) &'a Life);

impl Ledger for Dying<'_, MemoryLedger> {
    async fn create(&self, record: &Record, payload: &Bytes) -> PortResult<Created> {
        self.1.call()?;
        self.0.create(record, payload).await
    }

    async fn load(&self, key: &DeliveryKey) -> PortResult<Option<Record>> {
        self.1.call()?;
        self.0.load(key).await
    }

    async fn payload(&self, key: &DeliveryKey) -> PortResult<Option<Bytes>> {
        self.1.call()?;
        self.0.payload(key).await
    }

    async fn apply(&self, change: &Change) -> PortResult<Applied> {
        self.1.call()?;
        let meanwhile = self.1.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        self.0.apply(change).await
    }

    async fn add_attempt(&self, key: &DeliveryKey, attempt: &Attempt) -> PortResult<()> {
        self.1.call()?;
        self.0.add_attempt(key, attempt).await
    }

    async fn attempts(&self, key: &DeliveryKey) -> PortResult<Vec<Attempt>> {
        self.1.call()?;
        self.0.attempts(key).await
    }

    async fn due_for_look(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.1.call()?;
        self.0.due_for_look(now, limit, from).await
    }

    async fn held_destinations(&self) -> PortResult<Vec<DestinationName>> {
        self.1.call()?;
        self.0.held_destinations().await
    }

    async fn held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.1.call()?;
        self.0.held(destination, limit, from).await
    }
}

impl Budgets for Dying<'_, MemoryLedger> {
    async fn usage(&self, destination: &DestinationName) -> PortResult<KeptUsage> {
        self.1.call()?;
        self.0.usage(destination).await
    }

    async fn set_usage(
        &self,
        destination: &DestinationName,
        expected: u64,
        usage: &Usage,
    ) -> PortResult<UsageSet> {
        self.1.call()?;
        self.0.set_usage(destination, expected, usage).await
    }
}

impl Catalogue for Dying<'_, MemoryLedger> {
    async fn list(&self, filter: &Filter, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Record>> {
        self.1.call()?;
        self.0.list(filter, limit, from).await
    }

    async fn find(&self, id: &DeliveryId) -> PortResult<Vec<Record>> {
        self.1.call()?;
        self.0.find(id).await
    }

    async fn dead_letter_summary(&self, tenant: Option<&TenantId>) -> PortResult<Vec<DeadLetterGroup>> {
        self.1.call()?;
        self.0.dead_letter_summary(tenant).await
    }

    async fn oldest_dead_letter(&self) -> PortResult<Option<TimeMs>> {
        self.1.call()?;
        self.0.oldest_dead_letter().await
    }

    async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Record>> {
        self.1.call()?;
        self.0.dead_letters(filter, limit, from).await
    }
}

impl Queue for Dying<'_, MemoryQueue> {
    fn window(&self) -> DurationMs {
        self.0.window()
    }

    async fn send(&self, message: Outgoing) -> PortResult<MessageId> {
        self.1.call()?;
        self.0.send(message).await
    }

    async fn bury(&self, burial: Burial) -> PortResult<MessageId> {
        self.1.call()?;
        self.0.bury(burial).await
    }
}

impl DeadLetterBox for Dying<'_, MemoryQueue> {
    async fn take(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        self.1.call()?;
        self.0.take(most, visibility).await
    }

    async fn remove(&self, receipt: &Receipt) -> PortResult<()> {
        self.1.call()?;
        self.0.remove(receipt).await
    }

    async fn show(&self, receipt: &Receipt) -> PortResult<()> {
        self.1.call()?;
        self.0.show(receipt).await
    }
}

impl Office for Dying<'_, MemoryOffice> {
    async fn head(&self, book: &Book) -> PortResult<Option<Entry>> {
        self.1.call()?;
        self.0.head(book).await
    }

    async fn enter(&self, entry: &Entry, change: Option<&OrderChange>) -> PortResult<Entered> {
        self.1.call()?;
        self.0.enter(entry, change).await
    }

    async fn progress(&self, change: &OrderChange) -> PortResult<bool> {
        self.1.call()?;
        self.0.progress(change).await
    }

    async fn order(&self, book: &Book, id: &OrderId) -> PortResult<Option<Order>> {
        self.1.call()?;
        self.0.order(book, id).await
    }

    async fn open_orders(&self, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Order>> {
        self.1.call()?;
        self.0.open_orders(limit, from).await
    }

    async fn orders(
        &self,
        book: Option<&Book>,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Order>> {
        self.1.call()?;
        self.0.orders(book, limit, from).await
    }

    async fn entries(&self, book: &Book, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Entry>> {
        self.1.call()?;
        self.0.entries(book, limit, from).await
    }

    async fn books(&self) -> PortResult<Vec<Book>> {
        self.1.call()?;
        self.0.books().await
    }
}
