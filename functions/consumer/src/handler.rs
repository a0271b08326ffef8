//! A batch of messages: each is read, worked on and answered for itself.
//!
//! The event is read leniently: whatever is odd about one record is that record's matter. Reported
//! are only IDs that the event brought. What a record asks for is decided by the service; here a
//! record that is not acknowledged, that panics, or for which the time runs out, comes again.
//!
//! A record without an ID cannot be reported. It is worked on like any other, under a name made from
//! its body; only if it must come again, the whole batch fails, which loses nothing: the ledger knows
//! what was done already.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use thiserror::Error;
use waybill_domain::admit::ANSWER_MARGIN;
use waybill_domain::identity::MessageId;
use waybill_domain::time::TimeMs;
use waybill_service::config::Config;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::instruments;
use waybill_service::ports::{Clock, Dice, Ledger, Ports, Queue, Recipient};

/// Which messages come again.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    batch_item_failures: Vec<ItemFailure>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ItemFailure {
    item_identifier: String,
}

/// Why the whole batch must come again.
#[derive(Debug, Error)]
pub enum Unanswerable {
    /// It is no batch of messages.
    #[error("the event has no list of Records")]
    NotABatch(#[source] serde_json::Error),
    /// A message must come again that nobody can name.
    #[error("{0} messages without messageId must come again")]
    Nameless(usize),
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(rename = "Records", borrow)]
    records: Vec<&'a RawValue>,
}

/// What is read of a record: nothing else of it can make it unreadable.
#[derive(Deserialize)]
struct Record {
    #[serde(rename = "messageId", default)]
    message_id: Option<String>,
    #[serde(default)]
    body: Option<String>,
}

/// Works for every message of the event until the function ends. `room` is how many an event can have.
pub async fn handle<L: Ledger, Q: Queue, R: Recipient, C: Clock, D: Dice>(
    ports: &Ports<L, Q, R, C, D>,
    config: &Config,
    event: &RawValue,
    ends_at: TimeMs,
    room: usize,
) -> Result<Answer, Unanswerable> {
    let batch: Batch<'_> = serde_json::from_str(event.get()).map_err(Unanswerable::NotABatch)?;
    let mut seen = HashSet::new();
    // One message may be received twice into one batch: it is worked on once, and reported once.
    let records: Vec<Record> = batch
        .records
        .into_iter()
        .map(read)
        .filter(|record| record.message_id.as_ref().is_none_or(|id| seen.insert(id.clone())))
        .collect();
    instruments::saturated(records.len(), room);
    let ends_at = ends_at.minus(ANSWER_MARGIN);
    let done = join_all(records.iter().map(|record| work(ports, config, record, ends_at))).await;

    let left = records.into_iter().zip(done).filter(|(_, is_done)| !is_done).map(|(record, _)| record);
    let (named, nameless): (Vec<_>, Vec<_>) = left.map(|record| record.message_id).partition(Option::is_some);
    if !nameless.is_empty() {
        return Err(Unanswerable::Nameless(nameless.len()));
    }
    let failures = named.into_iter().flatten().map(|item_identifier| ItemFailure { item_identifier });
    Ok(Answer { batch_item_failures: failures.collect() })
}

/// Reads one record. Of one that is odd beyond reading, its ID may still be told.
fn read(record: &RawValue) -> Record {
    serde_json::from_str(record.get()).unwrap_or_else(|error| {
        let fields: serde_json::Map<_, _> = serde_json::from_str(record.get()).unwrap_or_default();
        let message_id = fields.get("messageId").and_then(|id| id.as_str()).map(str::to_owned);
        tracing::warn!(message_id, %error, reason = "unreadable", "left");
        Record { message_id, body: None }
    })
}

/// Works for one message; whether it need not come again.
async fn work<L: Ledger, Q: Queue, R: Recipient, C: Clock, D: Dice>(
    ports: &Ports<L, Q, R, C, D>,
    config: &Config,
    record: &Record,
    ends_at: TimeMs,
) -> bool {
    let Some(body) = &record.body else {
        tracing::warn!(message_id = record.message_id, reason = "no_body", "left");
        return false;
    };
    let named = match &record.message_id {
        Some(id) => MessageId::parse(id.as_str()),
        None => {
            tracing::warn!(reason = "no_message_id", "a message cannot be reported");
            MessageId::parse(name_of(body))
        }
    };
    let message_id = match named {
        Ok(message_id) => message_id,
        Err(fault) => {
            tracing::warn!(%fault, reason = "odd_message_id", "left");
            return false;
        }
    };
    let time_left = ends_at.since(ports.clock.now());
    let incoming = Incoming { message_id: &message_id, body };
    let consuming = Consumer { ports };
    let consuming = AssertUnwindSafe(consuming.consume(config, incoming, time_left)).catch_unwind();
    match tokio::time::timeout(time_left.as_std(), consuming).await {
        Ok(Ok(verdict)) => verdict == Verdict::Acknowledge,
        Ok(Err(_)) => {
            tracing::error!(%message_id, reason = "panicked", "left");
            false
        }
        Err(_) => {
            tracing::error!(%message_id, reason = "out_of_time", "left");
            false
        }
    }
}

/// The name of a message that has none: its copies share it, like those of any message.
fn name_of(body: &str) -> String {
    let digest = Sha256::digest(body);
    format!("unnamed-{}", digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[cfg(test)]
mod tests;
