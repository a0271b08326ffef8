//! Test events to a recipient, through every guard of a delivery: addresses, TLS, time and bytes.
//!
//! Nothing of it is kept, and no ledger knows of it.

use std::sync::Arc;

use bytes::Bytes;
use waybill_domain::attempt::{SendReport, SendWindow, Sending};
use waybill_domain::destination::Destination;
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::{AttemptNumber, DeliveryId, EventId, EventType, TenantId};
use waybill_domain::outcome::Outcome;
use waybill_domain::probe::{EVENT_TYPE, Heard, Trial};
use waybill_domain::time::DurationMs;
use waybill_service::ports::{Clock, Request};

use crate::recipient::HttpRecipient;
use crate::request::{Draft, Tampering};
use crate::resolve::Resolver;
use crate::secrets::Secrets;

/// What every test event says.
const BODY: &[u8] = br#"{"type":"waybill.probe","note":"a test event: it asks for nothing to be done"}"#;

/// How much longer than one attempt the right to send holds: nobody else has a claim.
const MARGIN: DurationMs = DurationMs::from_secs(60);

impl<C: Clock, R: Resolver, S: Secrets> HttpRecipient<C, R, S> {
    /// Sends the test events one after the other; only the first one, if that is not taken. `nonce` makes
    /// their IDs this probe's own.
    pub async fn probe(
        &self,
        destination: &Arc<Destination>,
        tenant: &TenantId,
        nonce: &str,
    ) -> Result<Vec<Heard>, InvalidField> {
        let mut heard: Vec<Heard> = Vec::with_capacity(Trial::ALL.len());
        for trial in Trial::ALL {
            let request = event(destination, tenant, nonce, trial)?;
            heard.push(self.tried(request, trial).await);
            if !heard[0].delivered {
                break;
            }
        }
        Ok(heard)
    }

    async fn tried(&self, request: Request, trial: Trial) -> Heard {
        let (now, timeout) = (self.now(), request.destination.timeout);
        let until = now.plus(timeout).plus(MARGIN);
        let window = SendWindow { lease_until: until, limit_at: until, timeout, started_at: now };
        let tampering = match trial {
            Trial::Good | Trial::Repeat => Tampering::None,
            Trial::WrongSignature => Tampering::ForeignKey,
            Trial::OldTimestamp => Tampering::Aged(waybill_domain::probe::OLD),
        };
        let draft = Draft::new(&request).map(|draft| draft.tampered_with(tampering));
        match self.sent(&request, draft, window).await {
            Sending::Attempted(SendReport { outcome, status, note, started_at, ended_at, .. }) => Heard {
                trial,
                delivered: outcome == Outcome::Delivered,
                status,
                class: match outcome {
                    Outcome::Failed(failure) => Some(failure.class),
                    Outcome::Delivered => None,
                },
                took: ended_at.since(started_at),
                note,
            },
            Sending::NotSent(_) => Heard {
                trial,
                delivered: false,
                status: None,
                class: None,
                took: DurationMs::ZERO,
                note: "not sent: the time for it ran out before the connection stood".to_owned(),
            },
        }
    }
}

/// The good event and its repeat are one; a recipient that looks for repeats before it verifies must not
/// mistake the others for it.
fn event(
    destination: &Arc<Destination>,
    tenant: &TenantId,
    nonce: &str,
    trial: Trial,
) -> Result<Request, InvalidField> {
    let part = match trial {
        Trial::Good | Trial::Repeat => "good",
        Trial::WrongSignature => "signature",
        Trial::OldTimestamp => "old",
    };
    let event_id = EventId::parse(format!("probe:{nonce}:{part}"))?;
    Ok(Request {
        destination: destination.clone(),
        delivery_id: DeliveryId::derive(tenant, &event_id, &destination.name),
        event_id,
        event_type: EventType::parse(EVENT_TYPE)?,
        attempt: if trial == Trial::Repeat { AttemptNumber::after(1) } else { AttemptNumber::FIRST },
        content_type: "application/json".to_owned(),
        body: Bytes::from_static(BODY),
        trace: None,
    })
}
