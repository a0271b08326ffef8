//! Orders, audit and revisions in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waybill_domain::audit::Entry;
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
        let head = self.entries.get(&entry.book).and_then(|entries| entries.last());
        entry.seq == head.map_or(1, |head| head.seq + 1)
            && head.is_none_or(|head| entry.previous == head.hash)
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
    }
}

impl Office for MemoryOffice {
    async fn head(&self, book: &Book) -> PortResult<Option<Entry>> {
        Ok(self.store().entries.get(book).and_then(|entries| entries.last()).cloned())
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
        let keyed = open.map(|order| (key([created(order), order.book.as_str()]), order.clone()));
        Ok(page(keyed.collect(), limit, from))
    }

    async fn orders(
        &self,
        book: Option<&Book>,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Order>> {
        let store = self.store();
        let mut wanted: Vec<&Order> =
            store.orders.values().filter(|order| book.is_none_or(|book| *book == order.book)).collect();
        wanted.sort_by(|a, b| (&a.book, created(b)).cmp(&(&b.book, created(a))));
        let keyed = wanted.into_iter().enumerate().map(|(n, order)| (format!("{n:09}"), order.clone()));
        Ok(page(keyed.collect(), limit, from))
    }

    async fn entries(&self, book: &Book, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Entry>> {
        let store = self.store();
        let entries = store.entries.get(book).into_iter().flatten();
        Ok(page(entries.map(|entry| (format!("{:020}", entry.seq), entry.clone())).collect(), limit, from))
    }

    async fn books(&self) -> PortResult<Vec<Book>> {
        Ok(self.store().entries.keys().cloned().collect())
    }
}

/// Identifiers sort by time behind their prefix.
fn created(order: &Order) -> &str {
    order.id.as_str().split_once('_').map_or("", |(_, digits)| digits)
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
        store.documents.insert(revision.revision.to_string(), document.to_owned());
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
