//! Names that listings begin with: tenants, their days, destinations with something held.
//!
//! DynamoDB tells nobody which partitions there are. So each name is written down before the first
//! item that needs it, once in the life of a process; what is written twice stays as it is.

use std::collections::HashSet;
use std::sync::Mutex;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use waybill_service::ports::PortResult;

use crate::fault::{LEDGER, of_sdk};
use crate::range::{Item, text};
use crate::table;

/// How many names are remembered; past it all are forgotten, and written once more.
const MOST: usize = 10_000;

/// What this process has written down already.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    written: Mutex<HashSet<(String, String)>>,
}

impl Registry {
    /// Makes sure that `name` stands in `partition`.
    pub(crate) async fn note(
        &self,
        client: &Client,
        table: &str,
        partition: String,
        name: String,
    ) -> PortResult<()> {
        let entry = (partition, name);
        if self.written.lock().is_ok_and(|written| written.contains(&entry)) {
            return Ok(());
        }
        client
            .put_item()
            .table_name(table)
            .item(table::PK, AttributeValue::S(entry.0.clone()))
            .item(table::SK, AttributeValue::S(entry.1.clone()))
            .send()
            .await
            .map_err(|error| of_sdk(LEDGER, error))?;
        if let Ok(mut written) = self.written.lock() {
            if written.len() >= MOST {
                written.clear();
            }
            written.insert(entry);
        }
        Ok(())
    }
}

/// Every name in `partition` from `from` to `to`, both included, in order.
pub(crate) async fn names(
    client: &Client,
    table: &str,
    partition: &str,
    from: &str,
    to: &str,
) -> PortResult<Vec<String>> {
    let mut names = Vec::new();
    if from > to {
        return Ok(names);
    }
    let mut next: Option<Item> = None;
    loop {
        let page = client
            .query()
            .table_name(table)
            .consistent_read(true)
            .key_condition_expression("#p = :p AND #s BETWEEN :from AND :to")
            .expression_attribute_names("#p", table::PK)
            .expression_attribute_names("#s", table::SK)
            .expression_attribute_values(":p", AttributeValue::S(partition.to_owned()))
            .expression_attribute_values(":from", AttributeValue::S(from.to_owned()))
            .expression_attribute_values(":to", AttributeValue::S(to.to_owned()))
            .set_exclusive_start_key(next.take())
            .send()
            .await
            .map_err(|error| of_sdk(LEDGER, error))?;
        for item in page.items() {
            names.push(text(item, table::SK)?.to_owned());
        }
        next = page.last_evaluated_key;
        if next.is_none() {
            return Ok(names);
        }
    }
}
