//! The queue: wake-ups with a delay, and the way into the dead-letter queue.
//!
//! Delays are exact: what a redrive run spreads over a second does not come at once. A message is never
//! visible early, as on SQS, where delays are whole seconds, rounded up.

use std::collections::BTreeMap;

use rusqlite::params;
use waybill_domain::identity::MessageId;
use waybill_domain::time::DurationMs;
use waybill_service::ports::{Burial, Clock, Outgoing, PortResult, Queue};

use crate::dlq;
use crate::draw;
use crate::fault::Fault;
use crate::store::{EmbeddedStore, QUEUE};

/// The longest delay of a message: that of SQS.
pub const WINDOW: DurationMs = DurationMs::from_secs(900);

const INSERT: &str = "INSERT INTO message (message_id, body, visible_at) VALUES (?, ?, ?)";

impl<C: Clock + 'static> Queue for EmbeddedStore<C> {
    fn window(&self) -> DurationMs {
        WINDOW
    }

    async fn send(&self, message: Outgoing) -> PortResult<MessageId> {
        let delay = message.delay;
        if delay > WINDOW {
            let fault = format!("a message cannot be delayed by {}: at most {WINDOW}", message.delay);
            return Err(Fault::Refused(fault).at(QUEUE));
        }
        let message_id = draw::message_id().map_err(|fault| fault.at(QUEUE))?;
        let (id, clock) = (message_id.clone(), self.clock.clone());
        let sending = self.write(QUEUE, move |conn| {
            let visible_at = clock.now().plus(delay).as_unix_ms();
            conn.prepare_cached(INSERT)?.execute(params![id.as_str(), message.body, visible_at])?;
            Ok(())
        });
        sending.await?;
        self.arrived();
        Ok(message_id)
    }

    async fn bury(&self, burial: Burial) -> PortResult<MessageId> {
        let message_id = draw::message_id().map_err(|fault| fault.at(QUEUE))?;
        let (id, clock) = (message_id.clone(), self.clock.clone());
        let attributes: BTreeMap<String, String> =
            burial.attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let burying = self
            .write(QUEUE, move |conn| dlq::insert(conn, id.as_str(), &burial.body, &attributes, clock.now()));
        burying.await?;
        Ok(message_id)
    }
}
