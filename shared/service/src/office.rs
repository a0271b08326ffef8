//! What is kept of operators' acts: orders, the audit, and the revisions of the configuration.
//!
//! An act is one write: the order's change and its audit entry, both or neither. So a command that is
//! killed and run again makes one entry and one change, or finds that both stand.

use std::collections::BTreeMap;
use std::future::Future;

use serde::{Deserialize, Serialize};
use waybill_domain::audit::Entry;
use waybill_domain::authority::Book;
use waybill_domain::identity::ConfigRevision;
use waybill_domain::order::{Order, OrderChange, OrderId, Signed};
use waybill_domain::time::TimeMs;

use crate::ports::{Cursor, Page, PortResult};

/// How many open orders are read at once.
const OPEN_AT_ONCE: usize = 100;

/// What became of an act.
#[derive(Debug, Clone, PartialEq)]
pub enum Entered {
    /// Entry and change stand, durably.
    Landed,
    /// The entry does not follow the book's head any more: nothing was changed.
    HeadMoved,
    /// The order (or the revision in force) is another than was expected: nothing was changed.
    Overtaken,
}

/// Orders and their audit. What an answer said stands: reads are strong unless they say otherwise.
pub trait Office: Send + Sync {
    /// The newest entry of a book.
    fn head(&self, book: &Book) -> impl Future<Output = PortResult<Option<Entry>>> + Send;

    /// Adds the entry to its book, if it follows the book's head, and with it makes the change, if the
    /// stored order has the expected revision; both or neither.
    fn enter(
        &self,
        entry: &Entry,
        change: Option<&OrderChange>,
    ) -> impl Future<Output = PortResult<Entered>> + Send;

    /// Makes the change of an order that is no act of anybody's: how far it was carried out. Whether it
    /// landed.
    fn progress(&self, change: &OrderChange) -> impl Future<Output = PortResult<bool>> + Send;

    /// The order.
    fn order(&self, book: &Book, id: &OrderId) -> impl Future<Output = PortResult<Option<Order>>> + Send;

    /// Every open order, across books, oldest first. What this lists may lag behind by seconds; what
    /// it answers of each order is strong.
    fn open_orders(
        &self,
        limit: usize,
        from: Option<&Cursor>,
    ) -> impl Future<Output = PortResult<Page<Order>>> + Send;

    /// Every open order of one book: what who may read this book alone can ask for.
    fn open_orders_of(&self, book: &Book) -> impl Future<Output = PortResult<Vec<Order>>> + Send {
        async move {
            let (mut open, mut from): (Vec<Order>, Option<Cursor>) = (Vec::new(), None);
            loop {
                let page = self.open_orders(OPEN_AT_ONCE, from.as_ref()).await?;
                open.extend(page.items.into_iter().filter(|order| order.book == *book && order.is_open()));
                from = page.next;
                if from.is_none() {
                    return Ok(open);
                }
            }
        }
    }

    /// The orders of a book, or of all books, newest first within each, open or not.
    fn orders(
        &self,
        book: Option<&Book>,
        limit: usize,
        from: Option<&Cursor>,
    ) -> impl Future<Output = PortResult<Page<Order>>> + Send;

    /// The entries of a book, oldest first.
    fn entries(
        &self,
        book: &Book,
        limit: usize,
        from: Option<&Cursor>,
    ) -> impl Future<Output = PortResult<Page<Entry>>> + Send;

    /// The books that have entries, in order.
    fn books(&self) -> impl Future<Output = PortResult<Vec<Book>>> + Send;
}

/// One configuration in the history of those that were in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// Its place in the history, from 1 on. The greatest is in force.
    pub number: u64,
    /// What it says, by digest. An earlier configuration that came back has its own again.
    pub revision: ConfigRevision,
    /// Who put it in force, when and why.
    pub signed: Signed,
    /// When each of its schedules came into force for a tenant, and stayed (`name:tenant`).
    #[serde(default)]
    pub schedules: BTreeMap<String, TimeMs>,
    /// What these had for event IDs before, for as long as a window of then may be owed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub former: BTreeMap<String, Vec<Former>>,
}

/// An event ID's template that a schedule had for a tenant, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    /// The template.
    pub event_id: String,
    /// From when on it was in force.
    pub since: TimeMs,
    /// When another one came into force.
    pub until: TimeMs,
}

/// The history of the configuration.
pub trait Revisions: Send + Sync {
    /// The revision in force.
    fn in_force(&self) -> impl Future<Output = PortResult<Option<Revision>>> + Send;

    /// What a revision says.
    fn document(&self, revision: &ConfigRevision) -> impl Future<Output = PortResult<Option<String>>> + Send;

    /// Puts a revision in force, if its number follows the one in force, and adds the entry to its
    /// book, if it follows the book's head; both or neither.
    fn install(
        &self,
        revision: &Revision,
        document: &str,
        entry: &Entry,
    ) -> impl Future<Output = PortResult<Entered>> + Send;

    /// Those that were in force, newest first.
    fn history(
        &self,
        limit: usize,
        from: Option<&Cursor>,
    ) -> impl Future<Output = PortResult<Page<Revision>>> + Send;
}
