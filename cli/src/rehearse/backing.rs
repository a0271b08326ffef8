//! What a rehearsal works on: a file of its own, or a table and queues of its own on AWS. Nothing
//! that serves anybody is touched, and nothing is left behind.
//!
//! [`Store`] is ledger and queue in one, whichever backend they are on, so that a rehearsal is
//! written once.

use std::sync::Arc;

use bytes::Bytes;
use tempfile::TempDir;
use waybill_domain::attempt::Attempt;
use waybill_domain::audit::Entry;
use waybill_domain::authority::Book;
use waybill_domain::budget::Usage;
use waybill_domain::delivery::{Change, Record};
use waybill_domain::identity::{DeliveryId, DeliveryKey, DestinationName, MessageId, TenantId};
use waybill_domain::order::{Order, OrderChange, OrderId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_embedded::EmbeddedStore;
use waybill_service::office::{Entered, Office};
use waybill_service::ports::{
    Applied, Budgets, Burial, Catalogue, Created, Cursor, DeadLetterFilter, DeadLetterGroup, Filter, Inbox,
    KeptUsage, Ledger, Outgoing, Page, PortResult, Queue, Receipt, Received, UsageSet, in_full,
};

#[cfg(feature = "aws")]
use super::aws::{AwsStore, Trial};
use super::clock::StoryClock;
use crate::backend::Backend;
use crate::exit::Failure;

/// Where a rehearsal takes place.
#[derive(Debug, Default)]
pub(crate) enum Backing {
    /// On a file of its own.
    #[default]
    Embedded,
    /// On a table and queues of its own.
    #[cfg(feature = "aws")]
    Aws(Trial),
}

impl Backing {
    /// Makes what has to be there before. Of the embedded backend only the kind counts: a rehearsal
    /// never works on a file that somebody named.
    pub(crate) async fn make(backend: &Backend) -> Result<Self, Failure> {
        match backend {
            Backend::Embedded(_) => Ok(Self::Embedded),
            #[cfg(feature = "aws")]
            Backend::Aws => super::aws::make().await.map(Self::Aws),
        }
    }

    /// A store whose time is the story's.
    pub(crate) fn store(&self, clock: &StoryClock) -> Result<Store, Failure> {
        match self {
            Self::Embedded => embedded(clock),
            #[cfg(feature = "aws")]
            Self::Aws(trial) => Ok(Store::Aws(AwsStore::of(trial, clock))),
        }
    }

    /// Takes away what was made.
    pub(crate) async fn remove(self) -> Result<(), Failure> {
        match self {
            Self::Embedded => Ok(()),
            #[cfg(feature = "aws")]
            Self::Aws(trial) => Ok(trial.remove().await?),
        }
    }
}

fn embedded(clock: &StoryClock) -> Result<Store, Failure> {
    let folder =
        tempfile::tempdir().map_err(|error| Failure::failed(format!("no folder to rehearse in: {error}")))?;
    let store = EmbeddedStore::open(&folder.path().join("rehearsal.db"), clock.clone())
        .map_err(|error| Failure::failed(in_full(&error)))?;
    Ok(Store::Embedded(store, Arc::new(folder)))
}

/// Ledger and queue of a rehearsal. Copies share one.
#[derive(Debug, Clone)]
pub(crate) enum Store {
    /// On a file, which lies in this folder.
    Embedded(EmbeddedStore<StoryClock>, #[allow(dead_code, reason = "kept until the end")] Arc<TempDir>),
    /// On a table and queues.
    #[cfg(feature = "aws")]
    Aws(AwsStore),
}

/// Asks whichever ledger it is.
macro_rules! ledger {
    ($store:expr, $ledger:ident => $asked:expr) => {
        match $store {
            Store::Embedded($ledger, _) => $asked.await,
            #[cfg(feature = "aws")]
            Store::Aws(AwsStore { ledger: $ledger, .. }) => $asked.await,
        }
    };
}

/// Asks whichever queue it is.
macro_rules! queue {
    ($store:expr, $queue:ident => $asked:expr) => {
        match $store {
            Store::Embedded($queue, _) => $asked.await,
            #[cfg(feature = "aws")]
            Store::Aws(AwsStore { queue: $queue, .. }) => $asked.await,
        }
    };
}

impl Store {
    /// The bodies of what lies in the dead-letter queue, up to so many.
    pub(crate) async fn dead_letter_bodies(&self, most: usize) -> PortResult<Vec<String>> {
        match self {
            Self::Embedded(store, _) => {
                let dead = store.dead_letter_messages(most).await?;
                Ok(dead.into_iter().map(|message| message.body).collect())
            }
            #[cfg(feature = "aws")]
            Self::Aws(AwsStore { queue, .. }) => queue.dead_letter_bodies(most).await,
        }
    }
}

impl Ledger for Store {
    async fn create(&self, record: &Record, payload: &Bytes) -> PortResult<Created> {
        ledger!(self, ledger => ledger.create(record, payload))
    }

    async fn load(&self, key: &DeliveryKey) -> PortResult<Option<Record>> {
        ledger!(self, ledger => ledger.load(key))
    }

    async fn payload(&self, key: &DeliveryKey) -> PortResult<Option<Bytes>> {
        ledger!(self, ledger => ledger.payload(key))
    }

    async fn apply(&self, change: &Change) -> PortResult<Applied> {
        ledger!(self, ledger => ledger.apply(change))
    }

    async fn add_attempt(&self, key: &DeliveryKey, attempt: &Attempt) -> PortResult<()> {
        ledger!(self, ledger => ledger.add_attempt(key, attempt))
    }

    async fn attempts(&self, key: &DeliveryKey) -> PortResult<Vec<Attempt>> {
        ledger!(self, ledger => ledger.attempts(key))
    }

    async fn due_for_look(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        ledger!(self, ledger => ledger.due_for_look(now, limit, from))
    }

    async fn held_destinations(&self) -> PortResult<Vec<DestinationName>> {
        ledger!(self, ledger => ledger.held_destinations())
    }

    async fn held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        ledger!(self, ledger => ledger.held(destination, limit, from))
    }
}

impl Budgets for Store {
    async fn usage(&self, destination: &DestinationName) -> PortResult<KeptUsage> {
        ledger!(self, ledger => ledger.usage(destination))
    }

    async fn set_usage(
        &self,
        destination: &DestinationName,
        expected: u64,
        usage: &Usage,
    ) -> PortResult<UsageSet> {
        ledger!(self, ledger => ledger.set_usage(destination, expected, usage))
    }
}

impl Catalogue for Store {
    async fn list(&self, filter: &Filter, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Record>> {
        ledger!(self, ledger => ledger.list(filter, limit, from))
    }

    async fn find(&self, id: &DeliveryId) -> PortResult<Vec<Record>> {
        ledger!(self, ledger => ledger.find(id))
    }

    async fn dead_letter_summary(&self, tenant: Option<&TenantId>) -> PortResult<Vec<DeadLetterGroup>> {
        ledger!(self, ledger => ledger.dead_letter_summary(tenant))
    }

    async fn oldest_dead_letter(&self) -> PortResult<Option<TimeMs>> {
        ledger!(self, ledger => ledger.oldest_dead_letter())
    }

    async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Record>> {
        ledger!(self, ledger => ledger.dead_letters(filter, limit, from))
    }
}

impl Queue for Store {
    fn window(&self) -> DurationMs {
        match self {
            Self::Embedded(store, _) => store.window(),
            #[cfg(feature = "aws")]
            Self::Aws(AwsStore { queue, .. }) => queue.window(),
        }
    }

    async fn send(&self, message: Outgoing) -> PortResult<MessageId> {
        queue!(self, queue => queue.send(message))
    }

    async fn bury(&self, burial: Burial) -> PortResult<MessageId> {
        queue!(self, queue => queue.bury(burial))
    }
}

impl Inbox for Store {
    async fn receive(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        queue!(self, queue => queue.receive(most, visibility))
    }

    async fn acknowledge(&self, receipt: &Receipt) -> PortResult<()> {
        queue!(self, queue => queue.acknowledge(receipt))
    }

    async fn hide_until(&self, receipt: &Receipt, until: TimeMs) -> PortResult<()> {
        queue!(self, queue => queue.hide_until(receipt, until))
    }

    async fn next_visible_at(&self) -> PortResult<Option<TimeMs>> {
        queue!(self, queue => queue.next_visible_at())
    }
}

/// Asks whichever office it is.
macro_rules! office {
    ($store:expr, $office:ident => $asked:expr) => {
        match $store {
            Store::Embedded($office, _) => $asked.await,
            #[cfg(feature = "aws")]
            Store::Aws(AwsStore { office: $office, .. }) => $asked.await,
        }
    };
}

impl Office for Store {
    async fn head(&self, book: &Book) -> PortResult<Option<Entry>> {
        office!(self, office => office.head(book))
    }

    async fn enter(&self, entry: &Entry, change: Option<&OrderChange>) -> PortResult<Entered> {
        office!(self, office => office.enter(entry, change))
    }

    async fn progress(&self, change: &OrderChange) -> PortResult<bool> {
        office!(self, office => office.progress(change))
    }

    async fn order(&self, book: &Book, id: &OrderId) -> PortResult<Option<Order>> {
        office!(self, office => office.order(book, id))
    }

    async fn open_orders(&self, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Order>> {
        office!(self, office => office.open_orders(limit, from))
    }

    async fn orders(
        &self,
        book: Option<&Book>,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Order>> {
        office!(self, office => office.orders(book, limit, from))
    }

    async fn entries(&self, book: &Book, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Entry>> {
        office!(self, office => office.entries(book, limit, from))
    }

    async fn books(&self) -> PortResult<Vec<Book>> {
        office!(self, office => office.books())
    }
}
