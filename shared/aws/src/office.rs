//! Orders and the audit: an act is one transaction of three items: the entry, its book's head, and
//! the order.
//!
//! These are the only transactions of Waybill's; none is on the way of a delivery. Every item lies under
//! a key that begins with its tenant (`*` across tenants), so that IAM's leading keys can hold an
//! operator to one.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use futures::future::try_join_all;
use serde::de::DeserializeOwned;
use waybill_domain::audit::Entry;
use waybill_domain::authority::Book;
use waybill_domain::identity::TenantId;
use waybill_domain::order::{Order, OrderChange, OrderId};
use waybill_service::office::{Entered, Office};
use waybill_service::ports::{Cursor, Page, PortResult};

use crate::clients::Clients;
use crate::fault::{Fault, LEDGER, of_sdk};
use crate::range::{self, Item, text};
use crate::record::REVISION;
use crate::table::{self, HELD, LAST};

/// The attribute that holds an order's text.
const ORDER: &str = "order";
/// The attribute that holds an entry's text.
const ENTRY: &str = "entry";
/// The attribute by which a book's head is compared.
const HASH: &str = "hash";
/// The sort key of a book's head.
const HEAD: &str = "HEAD";

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

    pub(crate) async fn item(&self, partition: &str, sort: &str) -> PortResult<Option<Item>> {
        let getting = self
            .clients
            .dynamo
            .get_item()
            .table_name(&self.table)
            .key(table::PK, AttributeValue::S(partition.to_owned()))
            .key(table::SK, AttributeValue::S(sort.to_owned()))
            .consistent_read(true);
        Ok(getting.send().await.map_err(|error| of_sdk(LEDGER, error))?.item)
    }

    /// Up to `limit` items of a partition whose sort key lies between these, strongly read, and whether
    /// there are more.
    pub(crate) async fn items(
        &self,
        partition: &str,
        (from, to): (&str, &str),
        newest_first: bool,
        limit: usize,
    ) -> PortResult<(Vec<Item>, bool)> {
        self.items_with(None, partition, (from, to), newest_first, limit).await
    }

    /// The same, of those items alone that have this attribute, if one is named.
    async fn items_with(
        &self,
        attribute: Option<&str>,
        partition: &str,
        (from, to): (&str, &str),
        newest_first: bool,
        limit: usize,
    ) -> PortResult<(Vec<Item>, bool)> {
        let mut items = Vec::new();
        let mut next: Option<Item> = None;
        let filter = attribute.map(|attribute| format!("attribute_exists({attribute})"));
        if from > to {
            return Ok((items, false));
        }
        loop {
            let page = self
                .clients
                .dynamo
                .query()
                .table_name(&self.table)
                .consistent_read(true)
                .key_condition_expression("#p = :p AND #s BETWEEN :from AND :to")
                .expression_attribute_names("#p", table::PK)
                .expression_attribute_names("#s", table::SK)
                .expression_attribute_values(":p", AttributeValue::S(partition.to_owned()))
                .expression_attribute_values(":from", AttributeValue::S(from.to_owned()))
                .expression_attribute_values(":to", AttributeValue::S(to.to_owned()))
                .set_filter_expression(filter.clone())
                .scan_index_forward(!newest_first)
                .limit(i32::try_from(limit + 1).unwrap_or(i32::MAX))
                .set_exclusive_start_key(next.take())
                .send()
                .await
                .map_err(|error| of_sdk(LEDGER, error))?;
            next = page.last_evaluated_key;
            items.extend(page.items.unwrap_or_default());
            if next.is_none() || items.len() > limit {
                let is_more = items.len() > limit;
                items.truncate(limit);
                return Ok((items, is_more));
            }
        }
    }

    /// Writes items together or not at all. `overtaken` says from which of them on a failed condition
    /// means that the act was overtaken; before it, the book's head moved.
    pub(crate) async fn transact(
        &self,
        puts: Vec<Put>,
        overtaken: usize,
    ) -> PortResult<Entered> {
        let items = puts.into_iter().map(|put| TransactWriteItem::builder().put(put).build());
        let writing = self
            .clients
            .dynamo
            .transact_write_items()
            // The SDK draws a token for each call: what it repeats itself is done once. A token of ours
            // would answer a second call as the first one.
            .set_transact_items(Some(items.collect()));
        match writing.send().await {
            Ok(_) => Ok(Entered::Landed),
            Err(error) => refused(&error, overtaken).ok_or_else(|| of_sdk(LEDGER, error)),
        }
    }

    /// The items of an entry: its own, and its book's head.
    pub(crate) fn of_entry(&self, entry: &Entry) -> PortResult<[Put; 2]> {
        let (book, said) = (audit(&entry.book), to_text(entry)?);
        let put = |sort: &str| {
            Put::builder()
                .table_name(&self.table)
                .item(table::PK, AttributeValue::S(book.clone()))
                .item(table::SK, AttributeValue::S(sort.to_owned()))
                .item(HASH, AttributeValue::S(entry.hash.clone()))
                .item(ENTRY, AttributeValue::S(said.clone()))
                .expression_attribute_names("#c", if sort == HEAD { HASH } else { table::PK })
        };
        let is_first = entry.seq == 1;
        let head = put(HEAD)
            .item(HELD.partition, AttributeValue::S(BOOKS.to_owned()))
            .item(HELD.sort, AttributeValue::S(entry.book.to_string()));
        let head = match is_first {
            true => head.condition_expression("attribute_not_exists(#c)"),
            false => head
                .condition_expression("#c = :previous")
                .expression_attribute_values(":previous", AttributeValue::S(entry.previous.clone())),
        };
        let own = put(&seq(entry.seq)).condition_expression("attribute_not_exists(#c)");
        Ok([built(head)?, built(own)?])
    }

    fn of_order(&self, change: &OrderChange) -> PortResult<Put> {
        let order = &change.after;
        let mut put = Put::builder().table_name(&self.table).set_item(Some(order_item(order)?));
        put = match change.expected {
            None => put
                .condition_expression("attribute_not_exists(#c)")
                .expression_attribute_names("#c", table::PK),
            Some(revision) => put
                .condition_expression("#c = :was")
                .expression_attribute_names("#c", REVISION)
                .expression_attribute_values(":was", AttributeValue::N(revision.to_string())),
        };
        built(put)
    }

    /// Up to `limit` items of a partition in the index of what is held, from this place on, and the
    /// place of the last of them if there are more. The index may lag.
    async fn indexed(
        &self,
        partition: &str,
        from: String,
        limit: usize,
    ) -> PortResult<(Vec<Item>, Option<String>)> {
        let page = self
            .clients
            .dynamo
            .query()
            .table_name(&self.table)
            .index_name(HELD.name)
            .key_condition_expression("#p = :p AND #s BETWEEN :from AND :to")
            .expression_attribute_names("#p", HELD.partition)
            .expression_attribute_names("#s", HELD.sort)
            .expression_attribute_values(":p", AttributeValue::S(partition.to_owned()))
            .expression_attribute_values(":from", AttributeValue::S(from))
            .expression_attribute_values(":to", AttributeValue::S(LAST.to_owned()))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .send()
            .await
            .map_err(|error| of_sdk(LEDGER, error))?;
        let found = page.items.unwrap_or_default();
        let last = found.last().map(|item| text(item, HELD.sort).map(str::to_owned)).transpose()?;
        Ok((found, page.last_evaluated_key.and(last)))
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

/// The partition of the books that there are, in the same index.
const BOOKS: &str = "BOOKS";
/// How many books are read at once.
const BOOKS_AT_ONCE: usize = 500;

/// The partition of open orders in the index of what is held: they are read together.
const OPEN_ORDERS: &str = "ORDERS";

fn orders(book: &Book) -> String {
    format!("T#{book}#ORDERS")
}

fn audit(book: &Book) -> String {
    format!("T#{book}#AUDIT")
}

/// An order's sort key: by time, whatever it is.
fn place(id: &OrderId) -> String {
    let (kind, digits) = id.as_str().split_once('_').unwrap_or(("", id.as_str()));
    format!("{digits}#{kind}")
}

/// The sort key of an entry.
fn seq(number: u64) -> String {
    format!("{number:015}")
}

fn order_item(order: &Order) -> PortResult<Item> {
    let mut item = HashMap::from([
        (table::PK.to_owned(), AttributeValue::S(orders(&order.book))),
        (table::SK.to_owned(), AttributeValue::S(place(&order.id))),
        (REVISION.to_owned(), AttributeValue::N(order.revision.to_string())),
        (ORDER.to_owned(), AttributeValue::S(to_text(order)?)),
    ]);
    if order.is_open() {
        item.insert(HELD.partition.to_owned(), AttributeValue::S(OPEN_ORDERS.to_owned()));
        item.insert(HELD.sort.to_owned(), AttributeValue::S(format!("{}#{}", place(&order.id), order.book)));
    }
    Ok(item)
}

pub(crate) fn to_text(value: &impl serde::Serialize) -> PortResult<String> {
    serde_json::to_string(value).map_err(|cause| {
        Fault::Refused(format!("what was to be stored cannot be written: {cause}")).at(LEDGER)
    })
}

pub(crate) fn from_text<T: DeserializeOwned>(item: &Item, attribute: &'static str) -> PortResult<T> {
    serde_json::from_str(text(item, attribute)?).map_err(|cause| {
        let key = text(item, table::SK).unwrap_or_default().to_owned();
        Fault::Unreadable { what: attribute, key, cause }.at(LEDGER)
    })
}

pub(crate) fn built(put: aws_sdk_dynamodb::types::builders::PutBuilder) -> PortResult<Put> {
    put.build().map_err(|error| Fault::Refused(format!("a write is incomplete: {error}")).at(LEDGER))
}

/// What a refused transaction means; `None` where it is no failed condition.
fn refused(error: &SdkError<TransactWriteItemsError, HttpResponse>, overtaken: usize) -> Option<Entered> {
    let SdkError::ServiceError(refusal) = error else { return None };
    let TransactWriteItemsError::TransactionCanceledException(canceled) = refusal.err() else { return None };
    let codes: Vec<&str> =
        canceled.cancellation_reasons().iter().map(|r| r.code().unwrap_or("None")).collect();
    let failed = |from: &[&str]| from.contains(&"ConditionalCheckFailed");
    if failed(codes.get(overtaken..).unwrap_or_default()) {
        return Some(Entered::Overtaken);
    }
    // Another transaction at the same items: whoever comes second sees the head moved.
    (failed(&codes) || codes.contains(&"TransactionConflict")).then_some(Entered::HeadMoved)
}
