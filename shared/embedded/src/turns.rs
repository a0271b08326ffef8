//! Whose turn it is: whoever has many messages keeps nobody else's waiting, as with SQS's fair queues.
//!
//! Where more messages are visible than are taken, half of what is taken are the oldest, and half are of
//! the groups in turn (a group is a tenant and a destination, as on SQS). So a message of a quiet group
//! waits for as many rounds as there are groups by the share of one, and not for the backlog of a busy one.

use std::sync::{Mutex, PoisonError};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};
use waybill_domain::identity::MessageId;
use waybill_domain::time::TimeMs;

use crate::fault::Fault;
use crate::rows::text;

/// A message's group, word by word as `message_by_group` in `added.sql` has it, or the index serves nothing.
macro_rules! group {
    () => {
        "iif(json_valid(body), (body ->> 'tenant') || '#' || (body ->> 'destination'), NULL)"
    };
}

pub(crate) const OLDEST: &str = "
    SELECT id, message_id, body, receive_count FROM message
    WHERE visible_at <= ?1 ORDER BY visible_at, id LIMIT ?2";

pub(crate) const NEXT_GROUP: &str =
    concat!("SELECT ", group!(), ", visible_at FROM message WHERE ", group!(), " > ?1 ORDER BY 1, 2 LIMIT 1");

pub(crate) const OF_GROUP: &str = concat!(
    "SELECT id, message_id, body, receive_count FROM message WHERE ",
    group!(),
    " = ?1 AND visible_at <= ?2 ORDER BY visible_at, id LIMIT ?3"
);

/// How many groups are looked at for one receiving, whether or not anything of theirs is visible.
const MOST_LOOKED_AT: usize = 64;

/// A visible message.
pub(crate) struct Visible {
    pub(crate) id: i64,
    pub(crate) message_id: MessageId,
    pub(crate) body: String,
    pub(crate) receive_count: u32,
}

/// Whose turn it is. Forgotten with the process: then it begins anew.
#[derive(Default)]
pub(crate) struct Turns(Mutex<Turn>);

#[derive(Default)]
struct Turn {
    /// The group that had its turn last. As bytes: a body that nobody of ours wrote may name anything.
    last: Vec<u8>,
    /// What is left of the groups' half, in halves of a message: where one at a time is taken, the oldest and
    /// the groups take turns.
    owed: usize,
}

impl Turns {
    /// Up to `most` visible messages, fewer only if there are no more.
    pub(crate) fn visible(&self, conn: &Connection, most: usize, now: TimeMs) -> Result<Vec<Visible>, Fault> {
        let oldest = query(conn, OLDEST, params![now.as_unix_ms(), limit(most)])?;
        if oldest.len() < most {
            return Ok(oldest);
        }
        let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owed = most + turn.owed;
        let of_groups = owed / 2;
        turn.owed = owed % 2;
        let groups = turn.next_groups(conn, of_groups, now)?;
        let share = limit(of_groups / groups.len().max(1));
        let mut chosen = Vec::with_capacity(most);
        for group in &groups {
            chosen.extend(query(conn, OF_GROUP, params![named(group), now.as_unix_ms(), share])?);
        }
        for message in oldest {
            if chosen.len() < most && !chosen.iter().any(|chosen: &Visible| chosen.id == message.id) {
                chosen.push(message);
            }
        }
        Ok(chosen)
    }
}

impl Turn {
    /// Up to `most` groups with something visible, from the one whose turn it is, round and round.
    fn next_groups(&mut self, conn: &Connection, most: usize, now: TimeMs) -> Result<Vec<Vec<u8>>, Fault> {
        let (mut groups, mut first) = (Vec::new(), None);
        for _ in 0..MOST_LOOKED_AT {
            if groups.len() == most {
                break;
            }
            let Some((group, visible_at)) = after(conn, &self.last)? else {
                if self.last.is_empty() {
                    break;
                }
                self.last.clear();
                continue;
            };
            if first.as_ref() == Some(&group) {
                break;
            }
            first.get_or_insert_with(|| group.clone());
            self.last.clone_from(&group);
            if visible_at <= now.as_unix_ms() {
                groups.push(group);
            }
        }
        Ok(groups)
    }
}

/// The group after this one, and when its earliest message is visible.
fn after(conn: &Connection, group: &[u8]) -> Result<Option<(Vec<u8>, i64)>, Fault> {
    let mut next = conn.prepare_cached(NEXT_GROUP)?;
    let read = |row: &Row<'_>| Ok((row.get_ref(0)?.as_bytes()?.to_vec(), row.get(1)?));
    Ok(next.query_row([named(group)], read).optional()?)
}

/// A group as SQLite compares it: a text, even where it is not UTF-8.
fn named(group: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(group))
}

fn query(conn: &Connection, select: &str, parameters: impl rusqlite::Params) -> Result<Vec<Visible>, Fault> {
    let mut select = conn.prepare_cached(select)?;
    let mut rows = select.query(parameters)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

fn read(row: &Row<'_>) -> Result<Visible, Fault> {
    let message_id = MessageId::parse(text(row, 1)?)
        .map_err(|fault| Fault::Refused(format!("a stored message cannot be read: {fault}")))?;
    Ok(Visible { id: row.get(0)?, message_id, body: row.get(2)?, receive_count: row.get(3)? })
}

fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
