//! The dead-letter queue: where an operator looks.
//!
//! Bodies and attributes stay as they are. What the redrive policy moved says so by an attribute,
//! as its body says nothing of it.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use waybill_domain::identity::MessageId;
use waybill_domain::time::TimeMs;
use waybill_service::ports::{Clock, PortResult};

use crate::draw;
use crate::fault::Fault;
use crate::rows::{from_json, text};
use crate::store::{EmbeddedStore, QUEUE};

/// The attribute of a message that no decision of Waybill's brought here; see [`REDRIVE_POLICY`].
pub const MOVED_BY: &str = "moved_by";

/// The value of [`MOVED_BY`] where a message was received too often.
pub const REDRIVE_POLICY: &str = "redrive_policy";

/// A message in the dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadMessage {
    /// Which message. One that the redrive policy moved keeps the ID under which it was sent.
    pub message_id: MessageId,
    /// The body as it was buried or sent.
    pub body: String,
    /// For whoever browses.
    pub attributes: BTreeMap<String, String>,
    /// Since when it lies here.
    pub buried_at: TimeMs,
}

const INSERT: &str = "INSERT INTO dead_message (message_id, body, attributes, buried_at) VALUES (?, ?, ?, ?)";

const PEEK: &str = "SELECT message_id, body, attributes, buried_at FROM dead_message ORDER BY id LIMIT ?";

/// `json_set` keeps the attributes that a message had when it came back from here.
const MOVE: &str = "
    INSERT INTO dead_message (message_id, body, attributes, buried_at)
    SELECT message_id, body, json_set(attributes, '$.' || ?2, ?3), ?4 FROM message WHERE id = ?1";

const DELETE_MOVED: &str = "DELETE FROM message WHERE id = ?";

const TAKE: &str = "DELETE FROM dead_message WHERE message_id = ? RETURNING body, attributes";

const PUT_BACK: &str = "INSERT INTO message (message_id, body, attributes, visible_at) VALUES (?, ?, ?, ?)";

impl<C: Clock + 'static> EmbeddedStore<C> {
    /// The oldest dead-letter messages. Looking hides nothing.
    pub async fn dead_letter_messages(&self, limit: usize) -> PortResult<Vec<DeadMessage>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let reading = self.read(QUEUE, move |conn| {
            let mut peek = conn.prepare_cached(PEEK)?;
            let mut rows = peek.query([limit])?;
            let mut messages = Vec::new();
            while let Some(row) = rows.next()? {
                messages.push(read(row)?);
            }
            Ok(messages)
        });
        reading.await
    }

    /// Moves one message back to the main queue, as the console's redrive does: with its body and
    /// attributes, as a new message. `None` if it is not there.
    pub async fn move_back(&self, dead: &MessageId) -> PortResult<Option<MessageId>> {
        let (dead, clock) = (dead.clone(), self.clock.clone());
        let fresh = draw::message_id().map_err(|fault| fault.at(QUEUE))?;
        let moving = self.write(QUEUE, move |conn| {
            let taken: Option<(String, String)> = conn
                .prepare_cached(TAKE)?
                .query_row([dead.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((body, attributes)) = taken else { return Ok(None) };
            conn.prepare_cached(PUT_BACK)?.execute(params![
                fresh.as_str(),
                body,
                attributes,
                clock.now().as_unix_ms()
            ])?;
            Ok(Some(fresh))
        });
        let moved = moving.await?;
        if moved.is_some() {
            self.arrived();
        }
        Ok(moved)
    }
}

/// Puts a message into the dead-letter queue.
pub(crate) fn insert(
    conn: &Connection,
    message_id: &str,
    body: &str,
    attributes: &BTreeMap<String, String>,
    now: TimeMs,
) -> Result<(), Fault> {
    let attributes = serde_json::to_string(attributes).map_err(|cause| {
        Fault::Refused(format!("the attributes of {message_id} cannot be written: {cause}"))
    })?;
    conn.prepare_cached(INSERT)?.execute(params![message_id, body, attributes, now.as_unix_ms()])?;
    Ok(())
}

/// Moves a message that was received too often, with its ID and its body as they are.
pub(crate) fn move_by_redrive_policy(conn: &Connection, id: i64, now: TimeMs) -> Result<(), Fault> {
    conn.prepare_cached(MOVE)?.execute(params![id, MOVED_BY, REDRIVE_POLICY, now.as_unix_ms()])?;
    conn.prepare_cached(DELETE_MOVED)?.execute([id])?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<DeadMessage, Fault> {
    let id = text(row, 0)?;
    let message_id = MessageId::parse(id)
        .map_err(|fault| Fault::Refused(format!("a dead-letter message cannot be read: {fault}")))?;
    Ok(DeadMessage {
        body: row.get(1)?,
        attributes: from_json("attributes", id, text(row, 2)?)?,
        buried_at: TimeMs::from_unix_ms(row.get(3)?),
        message_id,
    })
}
