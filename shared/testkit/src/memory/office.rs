//! Orders, audit and revisions in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waybill_domain::audit::{Entry, NOTHING_BEFORE};
use waybill_domain::authority::Book;
use waybill_domain::identity::ConfigRevision;
use waybill_domain::order::{Order, OrderChange, OrderId};
use waybill_service::office::{Entered, Office, Revision, Revisions};
use waybill_service::ports::{Cursor, Page, PortResult};

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
}

impl MemoryOffice {
    /// Alters what stands in a book without a trace. No honest caller does this.
    pub fn tamper(&self, book: &Book, alter: impl FnOnce(&mut Vec<Entry>)) {
        alter(self.store().entries.entry(book.clone()).or_default());
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    fn follows(&self, entry: &Entry) -> bool {
        let head = self.heads.get(&entry.book);
        entry.seq == head.map_or(1, |head| head.seq + 1)
            && entry.previous == head.map_or(NOTHING_BEFORE, |head| &head.hash)
    }

    fn is_expected(&self, change: &OrderChange) -> bool {
        let place = (change.after.book.clone(), change.after.id.clone());
        self.orders.get(&place).map(|order| order.revision) == change.expected
    }

    fn put(&mut self, order: &Order) {
        self.orders.insert((order.book.clone(), order.id.clone()), order.clone());
    }

    fn add(&mut self, entry: &Entry) {
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
        if change.is_some_and(|change| !store.is_expected(change)) {
            return Ok(Entered::Overtaken);
        }
        if !store.follows(entry) {
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
        let is_expected = store.is_expected(change);
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
        if revision.number != store.revisions.len() as u64 + 1 {
            return Ok(Entered::Overtaken);
        }
        if !store.follows(entry) {
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
