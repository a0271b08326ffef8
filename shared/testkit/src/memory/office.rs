//! Orders, audit and revisions in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waybill_domain::audit::{Entry, NOTHING_BEFORE};
use waybill_domain::authority::Book;
use waybill_domain::identity::ConfigRevision;
use waybill_domain::order::{Order, OrderChange, OrderId};
use waybill_service::office::{Entered, Office, Revision, Revisions};
use waybill_service::ports::{Cursor, Page, PortResult};

use super::clauses::Clause;
use super::listing::{key, page};

/// An office in memory. Copies of it share one store.
#[derive(Debug, Clone, Default)]
pub struct MemoryOffice {
    store: Arc<Mutex<Store>>,
}

#[derive(Debug, Default)]
struct Store {
    orders: BTreeMap<(Book, OrderId), Order>,
    entries: BTreeMap<Book, Vec<Entry>>,
    /// The newest entry of each book, kept apart: so it shows if the end of a book was cut off.
    heads: BTreeMap<Book, Entry>,
    revisions: Vec<Revision>,
    documents: BTreeMap<String, String>,
    dropped: Option<Clause>,
    journal: Vec<OrderWrite>,
    /// How often anything was written.
    writes: u64,
}

/// One write of an order that landed.
#[derive(Debug, Clone)]
pub struct OrderWrite {
    /// The order before it; `None` where it was placed.
    pub before: Option<Order>,
    /// The order after it.
    pub after: Order,
}

impl MemoryOffice {
    /// An office that leaves a clause of its conditional writes out, if one is named.
    pub fn without(clause: Option<Clause>) -> Self {
        let office = Self::default();
        office.store().dropped = clause;
        office
    }

    /// The writes of orders since the last call, in order.
    pub fn take_journal(&self) -> Vec<OrderWrite> {
        std::mem::take(&mut self.store().journal)
    }

    /// How often anything was written.
    pub fn writes(&self) -> u64 {
        self.store().writes
    }

    /// Every order, looked at without asking a port.
    pub fn peek_orders(&self) -> Vec<Order> {
        self.store().orders.values().cloned().collect()
    }

    /// The order of this identifier, looked at without asking a port.
    pub fn peek_order(&self, id: &str) -> Option<Order> {
        self.store().orders.values().find(|order| order.id.as_str() == id).cloned()
    }

    /// Every book's entries and its head, looked at without asking a port.
    pub fn peek_books(&self) -> Vec<(Book, Vec<Entry>, Option<Entry>)> {
        let store = self.store();
        let of = |(book, entries): (&Book, &Vec<Entry>)| {
            (book.clone(), entries.clone(), store.heads.get(book).cloned())
        };
        store.entries.iter().map(of).collect()
    }

    /// The revision in force and its document, looked at without asking a port.
    pub fn peek_in_force(&self) -> Option<(Revision, String)> {
        let store = self.store();
        let revision = store.revisions.last()?.clone();
        let document = store.documents.get(revision.revision.as_str())?.clone();
        Some((revision, document))
    }

    /// The revisions that were in force, looked at without asking a port.
    pub fn peek_history(&self) -> Vec<Revision> {
        self.store().revisions.clone()
    }

    /// Alters what stands in a book without a trace. No honest caller does this.
    pub fn tamper(&self, book: &Book, alter: impl FnOnce(&mut Vec<Entry>)) {
        alter(self.store().entries.entry(book.clone()).or_default());
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const ENTERING: [Clause; 3] = [Clause::EntrySequence, Clause::EntryPrevious, Clause::EntryFollows];
const INSTALLING: [Clause; 3] = [Clause::InstallSequence, Clause::InstallPrevious, Clause::InstallFollows];

impl Store {
    fn compares(&self, clause: Clause) -> bool {
        self.dropped != Some(clause)
    }

    fn follows(&self, entry: &Entry, [sequence, previous, both]: [Clause; 3]) -> bool {
        if !self.compares(both) {
            return true;
        }
        let head = self.heads.get(&entry.book);
        (!self.compares(sequence) || entry.seq == head.map_or(1, |head| head.seq + 1))
            && (!self.compares(previous) || entry.previous == head.map_or(NOTHING_BEFORE, |head| &head.hash))
    }

    fn is_expected(&self, change: &OrderChange, clause: Clause) -> bool {
        let place = (change.after.book.clone(), change.after.id.clone());
        !self.compares(clause) || self.orders.get(&place).map(|order| order.revision) == change.expected
    }

    fn put(&mut self, order: &Order) {
        let before = self.orders.insert((order.book.clone(), order.id.clone()), order.clone());
        self.writes += 1;
        self.journal.push(OrderWrite { before, after: order.clone() });
    }

    fn add(&mut self, entry: &Entry) {
        self.writes += 1;
        self.entries.entry(entry.book.clone()).or_default().push(entry.clone());
        self.heads.insert(entry.book.clone(), entry.clone());
    }
}

impl Office for MemoryOffice {
    async fn head(&self, book: &Book) -> PortResult<Option<Entry>> {
        Ok(self.store().heads.get(book).cloned())
    }

    async fn enter(&self, entry: &Entry, change: Option<&OrderChange>) -> PortResult<Entered> {
        let mut store = self.store();
        if change.is_some_and(|change| !store.is_expected(change, Clause::EnterOrder)) {
            return Ok(Entered::Overtaken);
        }
        if !store.follows(entry, ENTERING) {
            return Ok(Entered::HeadMoved);
        }
        store.add(entry);
        if let Some(change) = change {
            store.put(&change.after);
        }
        Ok(Entered::Landed)
    }

    async fn progress(&self, change: &OrderChange) -> PortResult<bool> {
        let mut store = self.store();
        let is_expected = store.is_expected(change, Clause::ProgressOrder);
        if is_expected {
            store.put(&change.after);
        }
        Ok(is_expected)
    }

    async fn order(&self, book: &Book, id: &OrderId) -> PortResult<Option<Order>> {
        Ok(self.store().orders.get(&(book.clone(), id.clone())).cloned())
    }

    async fn open_orders(&self, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Order>> {
        let store = self.store();
        let open = store.orders.values().filter(|order| order.is_open());
        let keyed =
            open.map(|order| (key([created(order), order.book.as_str(), order.id.as_str()]), order.clone()));
        Ok(page(keyed.collect(), limit, from))
    }

    async fn orders(
        &self,
        book: Option<&Book>,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Order>> {
        let store = self.store();
        let wanted = store.orders.values().filter(|order| book.is_none_or(|book| *book == order.book));
        let keyed = wanted.map(|order| {
            let parts = [order.book.as_str(), &newest_first(created(order)), order.id.as_str()];
            (key(parts), order.clone())
        });
        Ok(page(keyed.collect(), limit, from))
    }

    async fn entries(&self, book: &Book, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Entry>> {
        let store = self.store();
        let entries = store.entries.get(book).into_iter().flatten();
        Ok(page(entries.map(|entry| (format!("{:020}", entry.seq), entry.clone())).collect(), limit, from))
    }

    async fn books(&self) -> PortResult<Vec<Book>> {
        Ok(self.store().heads.keys().cloned().collect())
    }
}

/// Identifiers sort by time behind their prefix.
fn created(order: &Order) -> &str {
    order.id.as_str().split_once('_').map_or("", |(_, digits)| digits)
}

/// ASCII text that sorts the other way round.
fn newest_first(digits: &str) -> String {
    digits.bytes().map(|byte| char::from(0x7f - (byte & 0x7f))).collect()
}

impl Revisions for MemoryOffice {
    async fn in_force(&self) -> PortResult<Option<Revision>> {
        Ok(self.store().revisions.last().cloned())
    }

    async fn document(&self, revision: &ConfigRevision) -> PortResult<Option<String>> {
        Ok(self.store().documents.get(revision.as_str()).cloned())
    }

    async fn install(&self, revision: &Revision, document: &str, entry: &Entry) -> PortResult<Entered> {
        let mut store = self.store();
        let is_next = revision.number == store.revisions.len() as u64 + 1;
        if store.compares(Clause::InstallNumber) && !is_next {
            return Ok(Entered::Overtaken);
        }
        if !store.follows(entry, INSTALLING) {
            return Ok(Entered::HeadMoved);
        }
        store.add(entry);
        store.documents.entry(revision.revision.to_string()).or_insert_with(|| document.to_owned());
        store.revisions.push(revision.clone());
        Ok(Entered::Landed)
    }

    async fn history(&self, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Revision>> {
        let store = self.store();
        let newest_first = store.revisions.iter().rev();
        let keyed = newest_first.map(|r| (format!("{:020}", u64::MAX - r.number), r.clone()));
        Ok(page(keyed.collect(), limit, from))
    }
}
