//! A record as an item: its text, what every change compares, and the keys of the indexes that it
//! stands in.
//!
//! Every KB of an item is paid for with every write. So the text is JSON under short names, without
//! what is absent and without what the item's other attributes say, and an ordinary delivery stays
//! under 1 KB from its publish to its success.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Map, Value};
use waybill_domain::delivery::{Record, State};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{PortError, PortResult};

use crate::fault::{Fault, LEDGER};
use crate::range::{Item, text};
use crate::table::{self, BY_DAY, DEAD, HELD, Index, NEVER, OPEN};

/// The record's text.
pub(crate) const TEXT: &str = "record";
/// Its state, as every change compares it.
pub(crate) const STATE: &str = "state";
/// Its revision, as every change compares it.
pub(crate) const REVISION: &str = "revision";

/// Names and what they are shortened to. Append only: what is stored is read by this list.
const SHORT: [(&str, &str); 50] = [
    ("delivery", "d"),
    ("event_id", "ei"),
    ("event_type", "et"),
    ("destination", "to"),
    ("tenant", "tn"),
    ("scope", "sc"),
    ("payload", "p"),
    ("sha256", "h"),
    ("length", "l"),
    ("content_type", "ct"),
    ("version", "v"),
    ("first_queued_at", "q"),
    ("not_before", "nb"),
    ("deadline", "dl"),
    ("config_revision", "cr"),
    ("revision", "r"),
    ("state", "s"),
    ("due_at", "du"),
    ("attempts_made", "am"),
    ("attempts_before", "ab"),
    ("attempt_limit", "al"),
    ("horizon_at", "ho"),
    ("redrives", "rd"),
    ("redrive_run", "rr"),
    ("last_failure", "lf"),
    ("disposition", "di"),
    ("ended_at", "ea"),
    ("result", "re"),
    ("claim", "c"),
    ("hold", "hd"),
    ("copy", "cp"),
    ("settled_token", "st"),
    ("dlq_told", "dt"),
    ("look_at", "la"),
    ("looks", "lk"),
    ("message_id", "m"),
    ("claimed_at", "ca"),
    ("lease_until", "lu"),
    ("attempt", "n"),
    ("token", "tk"),
    ("failure", "f"),
    ("applied", "ap"),
    ("class", "cl"),
    ("verdict", "vd"),
    ("note", "nt"),
    ("status", "ss"),
    ("trace", "tr"),
    ("parent", "pa"),
    ("policy", "po"),
    ("acknowledged_after", "aa"),
];

/// The keys of an index for a record, or that it does not stand there.
pub(crate) type Standing = (Index, Option<(String, String)>);

/// Where a record stands in the indexes that a change may move.
pub(crate) fn places(record: &Record) -> [Standing; 3] {
    let delivery = &record.delivery;
    let (tenant, id) = (&delivery.tenant, &delivery.id);
    let open = record.look_at.map(|at| {
        let shard = table::open_shard(table::shard(id, table::OPEN_SHARDS));
        (shard, format!("{}#{tenant}#{id}", table::digits(at)))
    });
    let deadline = || delivery.deadline.map_or_else(|| NEVER.to_owned(), table::digits);
    let held = record
        .hold
        .as_ref()
        .map(|_| (table::held_to(delivery.destination.as_str()), format!("{}#{tenant}#{id}", deadline())));
    let dead = record.dead_letter_reason().filter(|_| record.state == State::DeadLettered).map(|reason| {
        let shard = table::dead_shard(tenant.as_str(), table::shard(id, table::DEAD_SHARDS));
        let ended_at = table::digits(record.ended_at.unwrap_or(delivery.first_queued_at));
        (shard, format!("{}#{reason}#{ended_at}#{id}#{}", delivery.destination, deadline()))
    });
    [(OPEN, open), (HELD, held), (DEAD, dead)]
}

/// Where a delivery stands among those of its day; never changes.
pub(crate) fn day(record: &Record) -> (String, String) {
    let delivery = &record.delivery;
    let day = table::day(delivery.tenant.as_str(), &table::date(delivery.first_queued_at));
    (day, format!("{}#{}", table::digits(delivery.first_queued_at), delivery.id))
}

/// From when DynamoDB may delete a record that ended: whole seconds.
pub(crate) fn expires_at(record: &Record, retain: DurationMs) -> Option<AttributeValue> {
    record.ended_at.map(|at| seconds(at.plus(retain)))
}

/// A time for the attribute by which DynamoDB deletes.
pub(crate) fn seconds(at: TimeMs) -> AttributeValue {
    AttributeValue::N(at.as_unix_s().to_string())
}

/// The item of a new record, whose payload lies at `payload`.
pub(crate) fn new_item(record: &Record, payload: String, retain: DurationMs) -> PortResult<Item> {
    let key = record.delivery.key();
    let mut item = Item::from([
        (table::PK.to_owned(), AttributeValue::S(table::partition(&key))),
        (table::SK.to_owned(), AttributeValue::S(table::RECORD.to_owned())),
        (TEXT.to_owned(), AttributeValue::S(write(record)?)),
        (STATE.to_owned(), AttributeValue::S(record.state.as_str().to_owned())),
        (REVISION.to_owned(), AttributeValue::N(record.revision.to_string())),
        (crate::payloads::LIES_AT.to_owned(), AttributeValue::S(payload)),
    ]);
    let (partition, sort) = day(record);
    let by_day = (BY_DAY, Some((partition, sort)));
    for (index, place) in places(record).into_iter().chain([by_day]) {
        if let Some((partition, sort)) = place {
            item.insert(index.partition.to_owned(), AttributeValue::S(partition));
            item.insert(index.sort.to_owned(), AttributeValue::S(sort));
        }
    }
    if let Some(at) = expires_at(record, retain) {
        item.insert(table::EXPIRES_AT.to_owned(), at);
    }
    Ok(item)
}

/// What a change writes: an expression, its names and its values.
///
/// The keys of indexes that it does not move are written as they are: an index that is not moved is
/// not written, and a claim moves none.
pub(crate) struct Update {
    pub(crate) expression: String,
    pub(crate) names: HashMap<String, String>,
    pub(crate) values: Item,
}

impl Update {
    /// The update that makes a stored item say what `after` says.
    pub(crate) fn to(after: &Record, retain: DurationMs) -> PortResult<Self> {
        let text = |text: String| Some(AttributeValue::S(text));
        let mut attributes = vec![
            (TEXT, text(write(after)?)),
            (STATE, text(after.state.to_string())),
            (REVISION, Some(AttributeValue::N(after.revision.to_string()))),
            (table::EXPIRES_AT, expires_at(after, retain)),
        ];
        for (index, place) in places(after) {
            let (partition, sort) = place.unzip();
            attributes
                .extend([(index.partition, partition.and_then(text)), (index.sort, sort.and_then(text))]);
        }
        let (mut set, mut removed) = (Vec::new(), Vec::new());
        let (mut names, mut values) = (HashMap::new(), Item::new());
        for (name, value) in attributes {
            names.insert(format!("#{name}"), name.to_owned());
            match value {
                Some(value) => {
                    set.push(format!("#{name} = :{name}"));
                    values.insert(format!(":{name}"), value);
                }
                None => removed.push(format!("#{name}")),
            }
        }
        let mut expression = format!("SET {}", set.join(", "));
        if !removed.is_empty() {
            expression.push_str(&format!(" REMOVE {}", removed.join(", ")));
        }
        Ok(Self { expression, names, values })
    }
}

/// The text of a record.
pub(crate) fn write(record: &Record) -> PortResult<String> {
    let unreadable = |cause| unreadable(&record.delivery.key().to_string(), cause);
    let mut value = serde_json::to_value(record).map_err(unreadable)?;
    for (parent, name) in TOLD_ELSEWHERE {
        if let Some(fields) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
            fields.remove(name);
        }
    }
    let shorter = |name: &str| SHORT.iter().find(|(long, _)| *long == name).map(|(_, short)| *short);
    serde_json::to_string(&renamed(value, &shorter)).map_err(unreadable)
}

/// The record of an item.
pub(crate) fn read(item: &Item) -> PortResult<Record> {
    let partition = text(item, table::PK)?;
    let unreadable = |cause| unreadable(partition, cause);
    let key = table::delivery_key(partition).map_err(|fault| Fault::Refused(fault.to_string()).at(LEDGER))?;
    let revision: u64 = match item.get(REVISION) {
        Some(AttributeValue::N(digits)) => digits.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| Fault::Refused(format!("the record in {partition} has no revision")).at(LEDGER))?;

    let value: Value = serde_json::from_str(text(item, TEXT)?).map_err(unreadable)?;
    let longer = |name: &str| SHORT.iter().find(|(_, short)| *short == name).map(|(long, _)| *long);
    let mut value = renamed(value, &longer);
    let elsewhere: [Value; 4] = [
        key.delivery_id.as_str().into(),
        key.tenant.as_str().into(),
        text(item, STATE)?.into(),
        revision.into(),
    ];
    for ((parent, name), told) in TOLD_ELSEWHERE.into_iter().zip(elsewhere) {
        if let Some(fields) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
            fields.insert(name.to_owned(), told);
        }
    }
    serde_json::from_value(value).map_err(unreadable)
}

/// What the text leaves out: the item's partition tells the first two, its attributes the others.
const TOLD_ELSEWHERE: [(&str, &str); 4] =
    [("/delivery", "id"), ("/delivery", "tenant"), ("", "state"), ("", "revision")];

fn unreadable(key: &str, cause: serde_json::Error) -> PortError {
    Fault::Unreadable { what: "record", key: key.to_owned(), cause }.at(LEDGER)
}

/// The same value under other names, without what is absent.
fn renamed(value: Value, rename: &impl Fn(&str) -> Option<&'static str>) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            let new = |name: String| rename(&name).map_or(name, str::to_owned);
            Value::Object(
                kept.map(|(name, value)| (new(name), renamed(value, rename))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(|item| renamed(item, rename)).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
