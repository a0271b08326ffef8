//! What stands in the columns beside a record, and how stored texts are read back.

use std::fmt;

use rusqlite::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;
use waybill_domain::delivery::{Record, State};
use waybill_domain::identity::{DeliveryId, DeliveryKey, DestinationName, TenantId};

use crate::fault::Fault;

/// What the indexes know of a record and a change may move.
pub(crate) struct Indexed {
    pub(crate) state: &'static str,
    pub(crate) revision: i64,
    pub(crate) look_at: Option<i64>,
    pub(crate) release_order: Option<i64>,
    pub(crate) reason: Option<&'static str>,
    pub(crate) ended_at: Option<i64>,
}

impl Indexed {
    /// The columns of `record`.
    pub(crate) fn of(record: &Record) -> Self {
        let deadline = record.delivery.deadline.map(|at| at.as_unix_ms());
        // A dead letter has ended; its first queueing is the best guess if nobody wrote when.
        let ended_at = record.ended_at.or(match record.state {
            State::DeadLettered => Some(record.delivery.first_queued_at),
            _ => None,
        });
        Self {
            state: record.state.as_str(),
            revision: record.revision.cast_signed(),
            look_at: record.look_at.map(|at| at.as_unix_ms()),
            release_order: record.hold.as_ref().map(|_| deadline.unwrap_or(i64::MAX)),
            reason: record.dead_letter_reason().map(|reason| reason.as_str()),
            ended_at: ended_at.map(|at| at.as_unix_ms()),
        }
    }
}

/// The text under which a document is stored.
pub(crate) fn to_json<T: Serialize>(
    what: &'static str,
    key: impl fmt::Display,
    value: &T,
) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|cause| Fault::Unreadable { what, key: key.to_string(), cause })
}

/// Reads a stored document back. What cannot be read is named by its key, for the person who looks.
pub(crate) fn from_json<T: DeserializeOwned>(
    what: &'static str,
    key: impl fmt::Display,
    stored: &str,
) -> Result<T, Fault> {
    serde_json::from_str(stored).map_err(|cause| Fault::Unreadable { what, key: key.to_string(), cause })
}

/// The text of a column.
pub(crate) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, Fault> {
    Ok(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)
}

/// Reads a record of the columns `tenant`, `delivery_id` and `record`, in this order.
pub(crate) fn record(row: &Row<'_>) -> Result<Record, Fault> {
    let (tenant, id) = (text(row, 0)?, text(row, 1)?);
    from_json("record", format_args!("{tenant}/{id}"), text(row, 2)?)
}

/// Reads a key of the columns `tenant` and `delivery_id`, in this order.
pub(crate) fn key(row: &Row<'_>) -> Result<DeliveryKey, Fault> {
    let (tenant, id) = (text(row, 0)?, text(row, 1)?);
    let refuse = |fault| Fault::Refused(format!("the stored key {tenant}/{id} cannot be read: {fault}"));
    Ok(DeliveryKey {
        tenant: TenantId::parse(tenant).map_err(refuse)?,
        delivery_id: DeliveryId::parse(id).map_err(refuse)?,
    })
}

/// Reads the name of a destination.
pub(crate) fn destination(row: &Row<'_>, column: usize) -> Result<DestinationName, Fault> {
    let name = text(row, column)?;
    DestinationName::parse(name)
        .map_err(|fault| Fault::Refused(format!("the stored destination {name} cannot be read: {fault}")))
}
