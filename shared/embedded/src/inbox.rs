//! The inbox: what a poller receives, hides and deletes.
//!
//! Only the receipt of a message's last receiving counts. Whoever received before and was too slow
//! has lost the message, and can neither delete nor hide it.

use rusqlite::{Connection, params};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Clock, Inbox, PortResult, Receipt, Received};

use crate::dlq;
use crate::draw;
use crate::fault::Fault;
use crate::store::{EmbeddedStore, QUEUE};
use crate::turns::{Turns, Visible};

/// How often a message is delivered. Instead of once more, it is moved to the dead-letter queue.
pub const MAX_RECEIVES: u32 = 6;

const HIDE: &str = "UPDATE message SET visible_at = ?, receive_count = ?, receipt = ? WHERE id = ?";

const ACKNOWLEDGE: &str = "DELETE FROM message WHERE id = ? AND receipt = ?";

const HIDE_UNTIL: &str = "UPDATE message SET visible_at = ? WHERE id = ? AND receipt = ?";

pub(crate) const NEXT: &str = "SELECT min(visible_at) FROM message";

impl<C: Clock + 'static> Inbox for EmbeddedStore<C> {
    async fn receive(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        let (clock, turns) = (self.clock.clone(), self.turns());
        self.write(QUEUE, move |conn| receive(conn, &turns, most, visibility, clock.now())).await
    }

    async fn acknowledge(&self, receipt: &Receipt) -> PortResult<()> {
        let (id, receiving) = parts(receipt).map_err(|fault| fault.at(QUEUE))?;
        let deletion = self.write(QUEUE, move |conn| {
            conn.prepare_cached(ACKNOWLEDGE)?.execute(params![id, receiving])?;
            Ok(())
        });
        deletion.await
    }

    async fn hide_until(&self, receipt: &Receipt, until: TimeMs) -> PortResult<()> {
        let (id, receiving) = parts(receipt).map_err(|fault| fault.at(QUEUE))?;
        let hiding = self.write(QUEUE, move |conn| {
            conn.prepare_cached(HIDE_UNTIL)?.execute(params![until.as_unix_ms(), id, receiving])?;
            Ok(())
        });
        hiding.await?;
        // It may be visible already, and a poller that sleeps knows a later time.
        self.arrived();
        Ok(())
    }

    async fn next_visible_at(&self) -> PortResult<Option<TimeMs>> {
        let reading = self.read(QUEUE, |conn| {
            let next: Option<i64> = conn.prepare_cached(NEXT)?.query_row([], |row| row.get(0))?;
            Ok(next.map(TimeMs::from_unix_ms))
        });
        reading.await
    }
}

fn receive(
    conn: &Connection,
    turns: &Turns,
    most: usize,
    visibility: DurationMs,
    now: TimeMs,
) -> Result<Vec<Received>, Fault> {
    let mut received = Vec::new();
    while received.len() < most {
        let found = turns.visible(conn, most - received.len(), now)?;
        if found.is_empty() {
            break;
        }
        for message in found {
            if message.receive_count < MAX_RECEIVES {
                received.push(hand_out(conn, message, now.plus(visibility))?);
            } else {
                dlq::move_by_redrive_policy(conn, message.id, now)?;
            }
        }
        // Without hiding, what was just handed out would be found again and again.
        if visibility == DurationMs::ZERO {
            break;
        }
    }
    Ok(received)
}

fn hand_out(conn: &Connection, message: Visible, until: TimeMs) -> Result<Received, Fault> {
    let Visible { id, message_id, body, receive_count } = message;
    let (receiving, receive_count) = (draw::receiving()?, receive_count + 1);
    conn.prepare_cached(HIDE)?.execute(params![until.as_unix_ms(), receive_count, receiving, id])?;
    let receipt = Receipt(format!("{id}.{receiving}"));
    Ok(Received { message_id, receipt, body, receive_count })
}

/// The row of a receipt's message, and which receiving of it.
pub(crate) fn parts(receipt: &Receipt) -> Result<(i64, String), Fault> {
    let parts = receipt.0.split_once('.').and_then(|(id, receiving)| Some((id.parse().ok()?, receiving)));
    match parts {
        Some((id, receiving)) => Ok((id, receiving.to_owned())),
        None => Err(Fault::Refused("the receipt is not one of this queue's".to_owned())),
    }
}
