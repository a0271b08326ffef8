//! What comes in over HTTP, whoever listens: own producers' events ([`events`]) and other people's
//! webhooks ([`sources`]), read here and published.
//!
//! Never 2xx before the record is durable; a repeat is answered like the first time. Every refusal
//! is one of the table in [`crate::refusal`], as `{"error": {"code", "field", "message"}}`. A door
//! (a listening socket, a function behind a gateway) brings headers and body, and writes the
//! [`Answer`]; what is answered is decided here alone, so that every door answers alike.

pub mod answer;
pub mod events;
pub mod route;
pub mod sources;

pub use answer::{Answer, facts};
pub use route::{EVENTS_PATH, Inlet, Route};

use bytes::Bytes;
use waybill_domain::time::TimeMs;
use waybill_domain::trace::TraceContext;
use waybill_domain::verify::headers::Headers;

use crate::authorize::Vault;
use crate::config::Config;
use crate::event::Event;
use crate::ports::{Clock, Ledger, Queue};
use crate::publish::{Published, Publisher};
use crate::refusal::{Code, Refusal};

/// What of a request is looked at beside its body.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// Its headers.
    pub headers: &'a Headers,
    /// Whether it comes from this machine during local development, and needs no token.
    pub is_local: bool,
    /// When it came.
    pub now: TimeMs,
}

/// Reads the event of a request, if whoever sent it may publish it. `body` is not
/// awaited before the head alone allows it.
pub async fn receive(
    config: &Config,
    inlet: Inlet<'_>,
    head: Head<'_>,
    vault: &impl Vault,
    body: impl Future<Output = Result<Bytes, Refusal>>,
) -> Result<Event, Refusal> {
    let event = match inlet {
        Inlet::Events => events::receive(config, head, vault, body).await?,
        Inlet::Source(name) => sources::receive(config, name, head, vault, body).await?,
    };
    let text = |name| head.headers.text(name);
    Ok(Event { trace: TraceContext::read(text("traceparent"), text("tracestate")), ..event })
}

/// Publishes an event that was received.
pub async fn publish<L: Ledger, Q: Queue, C: Clock>(
    publisher: &Publisher<'_, L, Q, C>,
    config: &Config,
    event: Event,
) -> Result<Vec<Published>, Refusal> {
    publisher.publish(config, event).await.map_err(Refusal::of_publish)
}

/// What is compressed is refused, not undone: nobody knows how large it becomes.
fn refuse_compressed(headers: &Headers) -> Result<(), Refusal> {
    match headers.get("content-encoding") {
        Some(coding) if !coding.eq_ignore_ascii_case(b"identity") => {
            let message = "content-encoding is not taken; send the body as it is";
            Err(Refusal::new(Code::UnsupportedMediaType, message))
        }
        _ => Ok(()),
    }
}
