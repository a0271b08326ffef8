//! Browsing the dead-letter queue as SQS lets it be browsed: what is looked at is hidden for a moment.
//!
//! Those come first that were not looked at for longest, so that a look at a few of many gets round
//! to all of them.

use rusqlite::{Connection, Row, params};
use waybill_domain::identity::MessageId;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Clock, PortResult, Receipt, Received};
use waybill_service::sweep::DeadLetterBox;

use crate::draw;
use crate::fault::Fault;
use crate::inbox::parts;
use crate::rows::text;
use crate::store::{EmbeddedStore, QUEUE};

pub(crate) const VISIBLE: &str = "
    SELECT id, message_id, body FROM dead_message
    WHERE hidden_until <= ?1 ORDER BY hidden_until, id LIMIT ?2";

const HIDE: &str = "UPDATE dead_message SET hidden_until = ?, receipt = ? WHERE id = ?";

const REMOVE: &str = "DELETE FROM dead_message WHERE id = ? AND receipt = ?";

const SHOW: &str = "UPDATE dead_message SET hidden_until = min(hidden_until, ?), receipt = NULL WHERE id = ? AND receipt = ?";

impl<C: Clock + 'static> DeadLetterBox for EmbeddedStore<C> {
    async fn take(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        let clock = self.clock.clone();
        self.write(QUEUE, move |conn| take(conn, most, visibility, clock.now())).await
    }

    async fn remove(&self, receipt: &Receipt) -> PortResult<()> {
        let (id, look) = parts(receipt).map_err(|fault| fault.at(QUEUE))?;
        let removal = self.write(QUEUE, move |conn| {
            conn.prepare_cached(REMOVE)?.execute(params![id, look])?;
            Ok(())
        });
        removal.await
    }

    async fn show(&self, receipt: &Receipt) -> PortResult<()> {
        let (id, look) = parts(receipt).map_err(|fault| fault.at(QUEUE))?;
        let clock = self.clock.clone();
        let showing = self.write(QUEUE, move |conn| {
            conn.prepare_cached(SHOW)?.execute(params![clock.now().as_unix_ms(), id, look])?;
            Ok(())
        });
        showing.await
    }
}

fn take(conn: &Connection, most: usize, visibility: DurationMs, now: TimeMs) -> Result<Vec<Received>, Fault> {
    let until = now.plus(visibility).as_unix_ms();
    let mut taken = Vec::new();
    for (id, message_id, body) in visible(conn, most, now)? {
        let look = draw::receiving()?;
        conn.prepare_cached(HIDE)?.execute(params![until, look, id])?;
        let receipt = Receipt(format!("{id}.{look}"));
        taken.push(Received { message_id, receipt, body, receive_count: 1 });
    }
    Ok(taken)
}

fn visible(conn: &Connection, most: usize, now: TimeMs) -> Result<Vec<(i64, MessageId, String)>, Fault> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut select = conn.prepare_cached(VISIBLE)?;
    let mut rows = select.query(params![now.as_unix_ms(), most])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

fn read(row: &Row<'_>) -> Result<(i64, MessageId, String), Fault> {
    let message_id = MessageId::parse(text(row, 1)?)
        .map_err(|fault| Fault::Refused(format!("a dead-letter message cannot be read: {fault}")))?;
    Ok((row.get(0)?, message_id, row.get(2)?))
}
