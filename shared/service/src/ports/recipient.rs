//! The other side, and what is sent to it.

use std::sync::Arc;

use bytes::Bytes;
use waybill_domain::address::RecipientUrl;
use waybill_domain::attempt::{SendWindow, Sending};
use waybill_domain::delivery::Record;
use waybill_domain::destination::Destination;
use waybill_domain::identity::{AttemptNumber, DeliveryId, EventId, EventType};
use waybill_domain::look_up::Finding;
use waybill_domain::trace::TraceContext;

/// A request to a recipient.
#[derive(Debug, Clone)]
pub struct Request {
    /// To whom, and how.
    pub destination: Arc<Destination>,
    /// `webhook-id` and `idempotency-key`: the same on every attempt.
    pub delivery_id: DeliveryId,
    /// `waybill-event-id`.
    pub event_id: EventId,
    /// `waybill-event-type`.
    pub event_type: EventType,
    /// `waybill-attempt`.
    pub attempt: AttemptNumber,
    /// `content-type`.
    pub content_type: String,
    /// The frozen bytes.
    pub body: Bytes,
    /// `traceparent` and `tracestate`: the producer's trace, with the span of this attempt.
    pub trace: Option<TraceContext>,
}

impl Request {
    /// Attempt `attempt` of a delivery, with its frozen bytes.
    pub fn of(to: &Arc<Destination>, record: &Record, attempt: AttemptNumber, body: Bytes) -> Self {
        let delivery = &record.delivery;
        Self {
            destination: to.clone(),
            delivery_id: delivery.id.clone(),
            event_id: delivery.event_id.clone(),
            event_type: delivery.event_type.clone(),
            attempt,
            content_type: delivery.payload.content_type.clone(),
            body,
            trace: delivery.trace.clone().map(|trace| TraceContext {
                parent: trace.parent.of_attempt(&delivery.id, attempt),
                ..trace
            }),
        }
    }
}

/// The other side.
pub trait Recipient: Send + Sync {
    /// Sends one request, or not: right before the first byte leaves, the wall clock is read again
    /// and [`SendWindow::check`] decides. Never follows a redirect, never takes longer than the
    /// window allows, never panics because of what it is answered.
    fn send(&self, request: Request, window: SendWindow) -> impl Future<Output = Sending> + Send;

    /// Asks at `url` what became of an earlier request of this delivery: a GET under the same guards
    /// as a request, in at most half of the window's time, so that a request can still follow. What
    /// was seen is judged by [`waybill_domain::look_up::judge`].
    fn look_up(
        &self,
        request: Request,
        url: RecipientUrl,
        window: SendWindow,
    ) -> impl Future<Output = Finding> + Send;
}
