//! The items of orders and of the audit: how they are read, and what an act writes.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use serde::de::DeserializeOwned;
use waybill_domain::audit::Entry;
use waybill_domain::authority::Book;
use waybill_domain::order::{Order, OrderChange, OrderId};
use waybill_service::office::Entered;
use waybill_service::ports::PortResult;

use crate::fault::{Fault, LEDGER, of_sdk};
use crate::office::AwsOffice;
use crate::range::{Item, text};
use crate::record::REVISION;
use crate::table::{self, HELD, LAST};

/// The attribute that holds an order's text.
pub(crate) const ORDER: &str = "order";
/// The attribute that holds an entry's text.
pub(crate) const ENTRY: &str = "entry";
/// The attribute by which a book's head is compared.
pub(crate) const HASH: &str = "hash";
/// The sort key of a book's head.
pub(crate) const HEAD: &str = "HEAD";
/// The partition of open orders in the index of what is held: they are read together.
pub(crate) const OPEN_ORDERS: &str = "ORDERS";
/// The partition of the books that there are, in the same index.
pub(crate) const BOOKS: &str = "BOOKS";

impl AwsOffice {
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
    pub(crate) async fn items_with(
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
    pub(crate) async fn transact(&self, puts: Vec<Put>, overtaken: usize) -> PortResult<Entered> {
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

    pub(crate) fn of_order(&self, change: &OrderChange) -> PortResult<Put> {
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
    pub(crate) async fn indexed(
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

pub(crate) fn orders(book: &Book) -> String {
    format!("T#{book}#ORDERS")
}

pub(crate) fn audit(book: &Book) -> String {
    format!("T#{book}#AUDIT")
}

/// An order's sort key: by time, whatever it is.
pub(crate) fn place(id: &OrderId) -> String {
    let (kind, digits) = id.as_str().split_once('_').unwrap_or(("", id.as_str()));
    format!("{digits}#{kind}")
}

/// The sort key of an entry.
pub(crate) fn seq(number: u64) -> String {
    format!("{number:015}")
}

pub(crate) fn order_item(order: &Order) -> PortResult<Item> {
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
pub(crate) fn refused(
    error: &SdkError<TransactWriteItemsError, HttpResponse>,
    overtaken: usize,
) -> Option<Entered> {
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
