//! Orders and the audit: an act is one transaction of three items: the entry, its book's head, and
//! the order.
//!
//! These are the only transactions of Waybill's; none is on the way of a delivery. Every item lies under
//! a key that begins with its tenant (`*` across tenants), so that IAM's leading keys can hold an
//! operator to one.

use aws_sdk_dynamodb::error::SdkError;
use futures::future::try_join_all;
use waybill_domain::audit::Entry;
use waybill_domain::authority::Book;
use waybill_domain::identity::TenantId;
use waybill_domain::order::{Order, OrderChange, OrderId};
use waybill_service::office::{Entered, Office};
use waybill_service::ports::{Cursor, Page, PortResult};

use crate::clients::Clients;
use crate::fault::{Fault, LEDGER, of_sdk};
use crate::office_items::{BOOKS, ENTRY, HEAD, OPEN_ORDERS, ORDER, audit, from_text, orders, place, seq};
use crate::range::{self, text};
use crate::table::{self, HELD, LAST};

/// Orders, audit and configurations in the ledger's table, documents in the bucket.
#[derive(Debug, Clone)]
pub struct AwsOffice {
    pub(crate) clients: Clients,
    pub(crate) table: String,
    pub(crate) bucket: String,
}

impl AwsOffice {
    /// In this table and this bucket.
    pub fn new(clients: Clients, table: impl Into<String>, bucket: impl Into<String>) -> Self {
        Self { clients, table: table.into(), bucket: bucket.into() }
    }
}

impl Office for AwsOffice {
    async fn head(&self, book: &Book) -> PortResult<Option<Entry>> {
        self.item(&audit(book), HEAD).await?.map(|item| from_text(&item, ENTRY)).transpose()
    }

    async fn enter(&self, entry: &Entry, change: Option<&OrderChange>) -> PortResult<Entered> {
        let mut puts = Vec::from(self.of_entry(entry)?);
        let overtaken = puts.len();
        puts.extend(change.map(|change| self.of_order(change)).transpose()?);
        self.transact(puts, overtaken).await
    }

    async fn progress(&self, change: &OrderChange) -> PortResult<bool> {
        let put = self.of_order(change)?;
        let writing = self
            .clients
            .dynamo
            .put_item()
            .table_name(&self.table)
            .set_item(Some(put.item))
            .set_condition_expression(put.condition_expression)
            .set_expression_attribute_names(put.expression_attribute_names)
            .set_expression_attribute_values(put.expression_attribute_values);
        match writing.send().await {
            Ok(_) => Ok(true),
            Err(SdkError::ServiceError(refusal)) if refusal.err().is_conditional_check_failed_exception() => {
                Ok(false)
            }
            Err(error) => Err(of_sdk(LEDGER, error)),
        }
    }

    async fn order(&self, book: &Book, id: &OrderId) -> PortResult<Option<Order>> {
        self.item(&orders(book), &place(id)).await?.map(|item| from_text(&item, ORDER)).transpose()
    }

    async fn open_orders(&self, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Order>> {
        let from = range::place("open", from)?.map_or_else(|| "!".to_owned(), range::after);
        let (found, last) = self.indexed(OPEN_ORDERS, from, limit).await?;
        let next = last.map(|order| range::cursor("open", &order));
        // The index may lag: what it lists is read strongly, and may be closed by now.
        let keys = found.iter().map(|item| Ok((text(item, table::PK)?, text(item, table::SK)?)));
        let keys = keys.collect::<PortResult<Vec<_>>>()?;
        let read = try_join_all(keys.into_iter().map(|(partition, sort)| self.item(partition, sort))).await?;
        let orders = read.iter().flatten().map(|item| from_text::<Order>(item, ORDER));
        let mut items = orders.collect::<PortResult<Vec<_>>>()?;
        items.retain(Order::is_open);
        Ok(Page { items, next })
    }

    /// Strongly read, and under keys of the book's alone: the index of what is open is nobody's.
    async fn open_orders_of(&self, book: &Book) -> PortResult<Vec<Order>> {
        let (open, all) = (Some(HELD.partition), ("!", LAST));
        let (items, _) = self.items_with(open, &orders(book), all, false, usize::MAX - 1).await?;
        items.iter().map(|item| from_text(item, ORDER)).collect()
    }

    async fn orders(
        &self,
        book: Option<&Book>,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Order>> {
        let books = match book {
            Some(book) => vec![book.clone()],
            None => self.books().await?,
        };
        let from = range::place("orders", from)?.and_then(|place| place.split_once('/'));
        let begin = from.map_or(0, |(name, _)| books.iter().position(|b| b.as_str() == name).unwrap_or(0));
        let mut found: Vec<Order> = Vec::new();
        for book in &books[begin..] {
            let to = match from {
                Some((name, place)) if name == book.as_str() => range::before(place),
                _ => LAST.to_owned(),
            };
            let (items, is_more) = self.items(&orders(book), ("!", &to), true, limit - found.len()).await?;
            for item in &items {
                found.push(from_text(item, ORDER)?);
            }
            let is_last_book = books.last() == Some(book);
            if found.len() >= limit && (is_more || !is_last_book) {
                let next = found.last().map(|order| format!("{}/{}", order.book, place(&order.id)));
                return Ok(Page { items: found, next: next.map(|at| range::cursor("orders", &at)) });
            }
        }
        Ok(Page { items: found, next: None })
    }

    async fn entries(&self, book: &Book, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Entry>> {
        let from = range::place("entries", from)?.map_or_else(|| "0".to_owned(), range::after);
        // Digits sort before the head's name.
        let (items, is_more) = self.items(&audit(book), (&from, "9~"), false, limit).await?;
        let entries = items.iter().map(|item| from_text::<Entry>(item, ENTRY));
        let entries = entries.collect::<PortResult<Vec<_>>>()?;
        let next = entries.last().filter(|_| is_more).map(|last| range::cursor("entries", &seq(last.seq)));
        Ok(Page { items: entries, next })
    }

    async fn books(&self) -> PortResult<Vec<Book>> {
        let (mut books, mut is_across) = (Vec::new(), false);
        let mut from = Some("!".to_owned());
        while let Some(place) = from {
            let (found, last) = self.indexed(BOOKS, place, BOOKS_AT_ONCE).await?;
            for item in &found {
                match text(item, HELD.sort)? {
                    name if name == Book::Across.as_str() => is_across = true,
                    name => books.push(Book::Tenant(TenantId::parse(name).map_err(|fault| {
                        Fault::Refused(format!("a book's name cannot be read: {fault}")).at(LEDGER)
                    })?)),
                }
            }
            from = last.as_deref().map(range::after);
        }
        books.extend(is_across.then_some(Book::Across));
        Ok(books)
    }
}

/// How many books are read at once.
const BOOKS_AT_ONCE: usize = 500;
