//! `POST /v1/events`, whoever listens: token → media type → size → parse → tenant → publish → 202.
//!
//! Never 2xx before the record is durable; a repeat is answered like the first time. Every refusal
//! is one of the table in [`crate::refusal`], as `{"error": {"code", "field", "message"}}`. A door
//! (a listening socket, a function behind a gateway) brings head and body, and writes the [`Answer`].

use serde_json::{Value, json};
use waybill_domain::destination::SecretRef;

use crate::authorize::{Caller, identify};
use crate::config::Config;
use crate::event::{Event, MAX_EVENT_BYTES};
use crate::ports::{Clock, Ledger, Queue};
use crate::publish::{Published, Publisher};
use crate::refusal::{Code, Refusal};

/// Where events go.
pub const EVENTS_PATH: &str = "/v1/events";

/// What of a request's head is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Head<'a> {
    /// `authorization`, as received.
    pub authorization: Option<&'a [u8]>,
    /// `content-type`, as received.
    pub content_type: Option<&'a [u8]>,
    /// `content-encoding`, as received.
    pub content_encoding: Option<&'a [u8]>,
    /// Whether it comes from this machine during local development, and needs no token.
    pub is_local: bool,
}

/// An answer, to be written by the door.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header that this status calls for, beside `content-type: application/json`.
    pub header: Option<(&'static str, &'static str)>,
    /// The body.
    pub body: Value,
}

/// Judges a head: who calls, and whether what comes is JSON. `tokens` answers the token behind a
/// reference.
///
/// A browser on this machine asks before it sends JSON to somebody else's port, and is told no. What
/// is compressed is refused, not undone: nobody knows how large it becomes.
pub async fn judge(
    config: &Config,
    head: Head<'_>,
    tokens: impl AsyncFn(&SecretRef) -> Option<String>,
) -> Result<Caller, Refusal> {
    let caller = match head.authorization {
        None if head.is_local => Caller::Local,
        authorization => identify(config, authorization, tokens).await?,
    };
    if head.content_encoding.is_some_and(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
        let message = "content-encoding is not taken; send the event as it is";
        return Err(Refusal::new(Code::UnsupportedMediaType, message));
    }
    let given = head.content_type.unwrap_or_default();
    let essence = given.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        return Ok(caller);
    }
    let message = "content-type is missing or is not application/json";
    Err(Refusal::new(Code::UnsupportedMediaType, message))
}

/// Refuses a body of so many bytes if that is too many.
pub fn check_size(length: u64) -> Result<(), Refusal> {
    if length <= MAX_EVENT_BYTES as u64 { Ok(()) } else { Err(too_large()) }
}

/// What is said of a body that is too large.
pub fn too_large() -> Refusal {
    Refusal::new(Code::PayloadTooLarge, format!("the body is too large (at most {MAX_EVENT_BYTES} bytes)"))
}

/// Reads the event of a body, if the caller may publish it.
pub fn read(caller: &Caller, body: &[u8]) -> Result<Event, Refusal> {
    let event = Event::parse(body).map_err(|invalid| Refusal::of_event(invalid, body.len()))?;
    if caller.may_publish_for(&event.tenant) {
        return Ok(event);
    }
    Err(Refusal::new(Code::Forbidden, format!("this token does not publish for tenant {}", event.tenant)))
}

/// Publishes an event that was read.
pub async fn publish<L: Ledger, Q: Queue, C: Clock>(
    publisher: &Publisher<'_, L, Q, C>,
    config: &Config,
    event: Event,
) -> Result<Vec<Published>, Refusal> {
    publisher.publish(config, event).await.map_err(Refusal::of_publish)
}

impl Answer {
    /// What is answered to a request for an event to be published.
    pub fn of(outcome: &Result<Vec<Published>, Refusal>) -> Self {
        match outcome {
            Ok(published) => {
                let deliveries: Vec<Value> = published.iter().map(facts).collect();
                Self { status: 202, header: None, body: json!({ "deliveries": deliveries }) }
            }
            Err(refusal) => Self::refusing(refusal),
        }
    }

    /// What is answered where nothing is wrong.
    pub fn healthy() -> Self {
        Self { status: 200, header: None, body: json!({ "status": "ok" }) }
    }

    /// A refusal.
    pub fn refusing(refusal: &Refusal) -> Self {
        let header = match refusal.code {
            Code::Unauthorized => Some(("www-authenticate", "Bearer")),
            Code::Unavailable => Some(("retry-after", "1")),
            _ => None,
        };
        Self { status: refusal.code.status(), header, body: json!({ "error": refusal.facts() }) }
    }

    /// There is nothing at this path.
    pub fn nothing_here() -> Self {
        Self::refusing(&Refusal::new(Code::NotFound, format!("events go to POST {EVENTS_PATH}")))
    }

    /// There is something at this path, but not for this method.
    pub fn wrong_method(path: &str) -> Self {
        let allowed = if path == "/healthz" { "GET, HEAD" } else { "POST" };
        let refusal = Refusal::new(Code::MethodNotAllowed, format!("takes only {allowed}"));
        Self { header: Some(("allow", allowed)), ..Self::refusing(&refusal) }
    }
}

/// One delivery, as publishing answers it on every path.
pub fn facts(published: &Published) -> Value {
    json!({
        "delivery_id": published.delivery_id.as_str(),
        "destination": published.destination.as_str(),
        "state": published.state.as_str(),
        "repeated": published.repeated,
    })
}
