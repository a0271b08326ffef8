//! Reading an index: one range over all its shards, merged into one order.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::try_join_all;
use waybill_domain::identity::DeliveryKey;
use waybill_service::ports::{Cursor, PortResult};

use crate::fault::{Fault, LEDGER, of_sdk};
use crate::table::{self, Index};

/// An item as DynamoDB tells it.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// A place in an index and the delivery that stands there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Placed {
    pub(crate) order: String,
    pub(crate) key: DeliveryKey,
}

/// The part of an index that a reader wants, of one partition or of several.
pub(crate) struct Range<'a> {
    pub(crate) client: &'a Client,
    pub(crate) table: &'a str,
    pub(crate) index: Index,
    /// Both ends belong to it.
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) newest_first: bool,
}

impl Range<'_> {
    /// The first `most` places of all partitions together, in the order of their texts.
    pub(crate) async fn merged(&self, partitions: &[String], most: usize) -> PortResult<Vec<Placed>> {
        if self.from > self.to {
            return Ok(Vec::new());
        }
        let read = try_join_all(partitions.iter().map(|partition| self.read(partition, most))).await?;
        let mut found: Vec<Placed> = read.into_iter().flatten().collect();
        found.sort();
        if self.newest_first {
            found.reverse();
        }
        found.truncate(most);
        Ok(found)
    }

    async fn read(&self, partition: &str, most: usize) -> PortResult<Vec<Placed>> {
        let mut found = Vec::new();
        let mut from: Option<Item> = None;
        loop {
            let wanted = most.saturating_sub(found.len()).min(1000);
            let page = self
                .client
                .query()
                .table_name(self.table)
                .index_name(self.index.name)
                .key_condition_expression("#p = :p AND #s BETWEEN :from AND :to")
                .expression_attribute_names("#p", self.index.partition)
                .expression_attribute_names("#s", self.index.sort)
                .expression_attribute_values(":p", AttributeValue::S(partition.to_owned()))
                .expression_attribute_values(":from", AttributeValue::S(self.from.clone()))
                .expression_attribute_values(":to", AttributeValue::S(self.to.clone()))
                .scan_index_forward(!self.newest_first)
                .limit(i32::try_from(wanted).unwrap_or(1000))
                .set_exclusive_start_key(from.take())
                .send()
                .await
                .map_err(|error| of_sdk(LEDGER, error))?;
            for item in page.items() {
                found.push(self.placed(item)?);
            }
            from = page.last_evaluated_key;
            if from.is_none() || found.len() >= most {
                return Ok(found);
            }
        }
    }

    fn placed(&self, item: &Item) -> PortResult<Placed> {
        let key = table::delivery_key(text(item, table::PK)?)
            .map_err(|fault| Fault::Refused(format!("a key in {}: {fault}", self.index.name)).at(LEDGER))?;
        Ok(Placed { order: text(item, self.index.sort)?.to_owned(), key })
    }
}

/// The text of an attribute that must be there.
pub(crate) fn text<'i>(item: &'i Item, attribute: &str) -> PortResult<&'i str> {
    match item.get(attribute) {
        Some(AttributeValue::S(text)) => Ok(text),
        _ => Err(Fault::Refused(format!("a stored item has no text {attribute}")).at(LEDGER)),
    }
}

/// The smallest text after `place` that can stand in an index.
pub(crate) fn after(place: &str) -> String {
    format!("{place}!")
}

/// The largest text before `place` that can stand in an index: nothing is a beginning of another.
pub(crate) fn before(place: &str) -> String {
    // Texts end in a digit or a capital letter; one that lacks it is before, and no text is between.
    let mut shorter = place.to_owned();
    shorter.pop();
    match place.chars().last().and_then(|last| char::from_u32(u32::from(last).saturating_sub(1))) {
        Some(lower) => format!("{shorter}{lower}{}", table::LAST),
        None => shorter,
    }
}

/// The place that a cursor of this listing names.
pub(crate) fn place<'c>(listing: &str, cursor: Option<&'c Cursor>) -> PortResult<Option<&'c str>> {
    let Some(Cursor(written)) = cursor else { return Ok(None) };
    match written.strip_prefix(listing).and_then(|rest| rest.strip_prefix(':')) {
        Some(place) => Ok(Some(place)),
        None => Err(Fault::Refused(format!("{written:?} is not a place in this listing")).at(LEDGER)),
    }
}

/// The cursor of a place.
pub(crate) fn cursor(listing: &str, place: &str) -> Cursor {
    Cursor(format!("{listing}:{place}"))
}
