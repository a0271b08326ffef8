//! The ledger: every change is one conditional write of one item.
//!
//! A condition that fails answers the item that is stored; whether it is our own earlier write that
//! the SDK repeated is for the service to see, by its token. Nothing here is a transaction, and no
//! condition relies on what DynamoDB deletes by itself.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use bytes::Bytes;
use waybill_domain::attempt::Attempt;
use waybill_domain::delivery::{Change, Record};
use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Applied, Created, Cursor, Ledger, Page, PortResult};

use crate::ahead::Ahead;
use crate::fault::{Fault, LEDGER, of_sdk};
use crate::payloads::{self, BigPayloads, LIES_AT, S3Payloads, Shelf};
use crate::range::{Item, text};
use crate::record::{self, REVISION, STATE, Update};
use crate::registry::Registry;
use crate::table::{self, LAST};

/// How long a delivery is kept after its end.
pub const RETAIN: DurationMs = DurationMs::from_secs(90 * 86_400);

/// Payloads and evidence are kept for so many times [`RETAIN`] from the day they were needed for:
/// as a dead letter may be released three times, each after having lain for as long as it is kept.
const LIVES: u64 = 4;

/// The attribute that holds a payload's bytes.
const BYTES: &str = "bytes";
/// The attribute that holds an attempt's evidence.
const EVIDENCE: &str = "attempt";

/// The ledger in a DynamoDB table.
#[derive(Debug)]
pub struct DynamoLedger<P = S3Payloads> {
    pub(crate) client: Client,
    pub(crate) table: String,
    big: P,
    registry: Registry,
    retain: DurationMs,
    ahead: Option<Ahead>,
}

impl<P: BigPayloads> DynamoLedger<P> {
    /// The ledger in this table, with its large payloads there.
    pub fn new(client: Client, table: impl Into<String>, big: P) -> Self {
        let (table, registry) = (table.into(), Registry::default());
        Self { client, table, big, registry, retain: RETAIN, ahead: None }
    }

    /// The same for a worker that asks for the payload of most records that it loads: both are read
    /// by one request, which costs less than two.
    pub fn reading_ahead(self) -> Self {
        Self { ahead: Some(Ahead::default()), ..self }
    }

    async fn note(&self, partition: String, name: String) -> PortResult<()> {
        self.registry.note(&self.client, &self.table, partition, name).await
    }

    /// Until when what belongs to a delivery is kept, if it is needed at `from`.
    fn kept_until(&self, from: TimeMs) -> AttributeValue {
        record::seconds(from.plus(self.retain.times(LIVES)))
    }

    async fn store_payload(&self, record: &Record, payload: &Bytes) -> PortResult<Shelf> {
        let (key, shelf) = (record.delivery.key(), Shelf::of(payload));
        match &shelf {
            Shelf::Big(digest) => self.big.put(&payloads::name(&key, digest), payload.clone()).await?,
            Shelf::Table(digest) => {
                let delivery = &record.delivery;
                let latest = [Some(delivery.first_queued_at), delivery.not_before, delivery.deadline];
                let needed = latest.into_iter().flatten().max().unwrap_or(delivery.first_queued_at);
                self.client
                    .put_item()
                    .table_name(&self.table)
                    .item(table::PK, AttributeValue::S(table::partition(&key)))
                    .item(table::SK, AttributeValue::S(format!("{}{digest}", table::PAYLOAD)))
                    .item(BYTES, AttributeValue::B(Blob::new(payload.to_vec())))
                    .item(table::EXPIRES_AT, self.kept_until(needed))
                    .send()
                    .await
                    .map_err(|error| of_sdk(LEDGER, error))?;
            }
        }
        Ok(shelf)
    }

    /// Everything of a delivery whose sort key lies between these, strongly read.
    async fn items(&self, key: &DeliveryKey, from: &str, to: &str) -> PortResult<Vec<Item>> {
        let mut items = Vec::new();
        let mut next: Option<Item> = None;
        loop {
            let page = self
                .client
                .query()
                .table_name(&self.table)
                .consistent_read(true)
                .key_condition_expression("#p = :p AND #s BETWEEN :from AND :to")
                .expression_attribute_names("#p", table::PK)
                .expression_attribute_names("#s", table::SK)
                .expression_attribute_values(":p", AttributeValue::S(table::partition(key)))
                .expression_attribute_values(":from", AttributeValue::S(from.to_owned()))
                .expression_attribute_values(":to", AttributeValue::S(to.to_owned()))
                .set_exclusive_start_key(next.take())
                .send()
                .await
                .map_err(|error| of_sdk(LEDGER, error))?;
            next = page.last_evaluated_key;
            items.extend(page.items.unwrap_or_default());
            if next.is_none() {
                return Ok(items);
            }
        }
    }
}

impl<P: BigPayloads> Ledger for DynamoLedger<P> {
    async fn create(&self, record: &Record, payload: &Bytes) -> PortResult<Created> {
        let tenant = record.delivery.tenant.as_str();
        // Whatever a listing needs to find the record stands before the record does.
        self.note(table::TENANTS.to_owned(), tenant.to_owned()).await?;
        self.note(table::days(tenant), table::date(record.delivery.first_queued_at)).await?;
        let shelf = self.store_payload(record, payload).await?;
        let creating = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(record::new_item(record, shelf.written(), self.retain)?))
            .condition_expression("attribute_not_exists(#p)")
            .expression_attribute_names("#p", table::PK)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match creating.send().await {
            Ok(_) => Ok(Created::New),
            Err(error) => match error.stored() {
                Some(Some(item)) => Ok(Created::Exists(Box::new(record::read(item)?))),
                Some(None) => {
                    Err(Fault::Passing("a record is there, and was not told".to_owned()).at(LEDGER))
                }
                None => Err(of_sdk(LEDGER, error)),
            },
        }
    }

    async fn load(&self, key: &DeliveryKey) -> PortResult<Option<Record>> {
        if let Some(ahead) = &self.ahead {
            let items = self.items(key, table::PAYLOAD, table::RECORD).await?;
            let Some(record) = record_among(&items) else { return Ok(None) };
            if let Some(payload) = payload_among(&items, record)? {
                ahead.keep(key, payload);
            }
            return record::read(record).map(Some);
        }
        let read = self
            .client
            .get_item()
            .table_name(&self.table)
            .key(table::PK, AttributeValue::S(table::partition(key)))
            .key(table::SK, AttributeValue::S(table::RECORD.to_owned()))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| of_sdk(LEDGER, error))?;
        read.item.as_ref().map(record::read).transpose()
    }

    async fn payload(&self, key: &DeliveryKey) -> PortResult<Option<Bytes>> {
        if let Some(payload) = self.ahead.as_ref().and_then(|ahead| ahead.take(key)) {
            return Ok(Some(payload));
        }
        // In one range: the payload, and the record that says which payload is the delivery's.
        let items = self.items(key, table::PAYLOAD, table::RECORD).await?;
        let Some(record) = record_among(&items) else { return Ok(None) };
        match Shelf::parse(text(record, LIES_AT)?)? {
            Shelf::Big(digest) => self.big.get(&payloads::name(key, &digest)).await,
            Shelf::Table(_) => payload_among(&items, record),
        }
    }

    async fn apply(&self, change: &Change) -> PortResult<Applied> {
        let (expected, after) = (change.expected(), change.after());
        if after.hold.is_some() {
            let destination = after.delivery.destination.as_str();
            self.note(table::HELD_TO.to_owned(), destination.to_owned()).await?;
        }
        let Update { expression, names, values } = Update::to(after, self.retain)?;
        let writing = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(table::PK, AttributeValue::S(table::partition(&after.delivery.key())))
            .key(table::SK, AttributeValue::S(table::RECORD.to_owned()))
            // The compare-and-set.
            .condition_expression(format!("#{STATE} = :was_state AND #{REVISION} = :was_revision"))
            .update_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .expression_attribute_values(":was_state", AttributeValue::S(expected.state.to_string()))
            .expression_attribute_values(":was_revision", AttributeValue::N(expected.revision.to_string()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match writing.send().await {
            Ok(_) => Ok(Applied::Landed),
            Err(error) => match error.stored() {
                Some(stored) => Ok(Applied::Lost(stored.map(record::read).transpose()?.map(Box::new))),
                None => Err(of_sdk(LEDGER, error)),
            },
        }
    }

    async fn add_attempt(&self, key: &DeliveryKey, attempt: &Attempt) -> PortResult<()> {
        let evidence = serde_json::to_string(attempt)
            .map_err(|cause| Fault::Unreadable { what: "attempt", key: key.to_string(), cause }.at(LEDGER))?;
        let sort = table::attempt(attempt.number.get(), attempt.token.as_str(), attempt.witness.as_str());
        let adding = self
            .client
            .put_item()
            .table_name(&self.table)
            .item(table::PK, AttributeValue::S(table::partition(key)))
            .item(table::SK, AttributeValue::S(sort))
            .item(EVIDENCE, AttributeValue::S(evidence))
            .item(table::EXPIRES_AT, self.kept_until(attempt.ended_at))
            .condition_expression("attribute_not_exists(#p)")
            .expression_attribute_names("#p", table::PK);
        match adding.send().await {
            Ok(_) => Ok(()),
            // It is there: written by a worker that died before its settle, or by our own first try.
            Err(error) if error.stored().is_some() => Ok(()),
            Err(error) => Err(of_sdk(LEDGER, error)),
        }
    }

    async fn attempts(&self, key: &DeliveryKey) -> PortResult<Vec<Attempt>> {
        let items = self.items(key, table::ATTEMPT, &format!("{}{LAST}", table::ATTEMPT)).await?;
        let mut attempts = Vec::with_capacity(items.len());
        for item in &items {
            let attempt: Attempt = serde_json::from_str(text(item, EVIDENCE)?).map_err(|cause| {
                Fault::Unreadable { what: "attempt", key: key.to_string(), cause }.at(LEDGER)
            })?;
            attempts.push(attempt);
        }
        // By the witnesses' own order, which is not that of their names.
        attempts.sort_by_key(|attempt| (attempt.number, attempt.witness));
        Ok(attempts)
    }

    async fn due_for_look(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.page_of_due(now, limit.max(1), from).await
    }

    async fn held_destinations(&self) -> PortResult<Vec<DestinationName>> {
        self.names_of_held().await
    }

    async fn held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.page_of_held(destination, limit.max(1), from).await
    }
}

/// The record among the items of a delivery.
fn record_among(items: &[Item]) -> Option<&Item> {
    items.iter().find(|item| text(item, table::SK).is_ok_and(|sort| sort == table::RECORD))
}

/// The payload that the record names, if it lies in the table.
fn payload_among(items: &[Item], record: &Item) -> PortResult<Option<Bytes>> {
    let Shelf::Table(digest) = Shelf::parse(text(record, LIES_AT)?)? else { return Ok(None) };
    let sort = format!("{}{digest}", table::PAYLOAD);
    let found = items.iter().find(|item| text(item, table::SK).is_ok_and(|written| written == sort));
    Ok(found.and_then(|item| match item.get(BYTES) {
        Some(AttributeValue::B(bytes)) => Some(Bytes::copy_from_slice(bytes.as_ref())),
        _ => None,
    }))
}

/// Whether a condition failed, and then what is stored instead.
pub(crate) trait ConditionFailed {
    fn stored(&self) -> Option<Option<&Item>>;
}

impl ConditionFailed for SdkError<PutItemError, HttpResponse> {
    fn stored(&self) -> Option<Option<&Item>> {
        match self.as_service_error()? {
            PutItemError::ConditionalCheckFailedException(failed) => Some(failed.item()),
            _ => None,
        }
    }
}

impl ConditionFailed for SdkError<UpdateItemError, HttpResponse> {
    fn stored(&self) -> Option<Option<&Item>> {
        match self.as_service_error()? {
            UpdateItemError::ConditionalCheckFailedException(failed) => Some(failed.item()),
            _ => None,
        }
    }
}
