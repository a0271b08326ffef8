//! `POST /v1/events`: token → media type → body → parse → tenant; or, where a signature takes the
//! token's place, body → signature → timestamp → media type → parse → tenant.

use bytes::Bytes;
use waybill_domain::verify::headers::Headers;

use super::{Head, Inlet, refuse_compressed};
use crate::authorize::{self, Caller, Vault};
use crate::config::Config;
use crate::event::Event;
use crate::refusal::{Code, Refusal};

pub(super) async fn receive(
    config: &Config,
    head: Head<'_>,
    vault: &impl Vault,
    body: impl Future<Output = Result<Bytes, Refusal>>,
) -> Result<Event, Refusal> {
    if Inlet::Events.is_told_by_body(head.headers) {
        let body = body.await?;
        let caller = authorize::by_signature(config, head, &body, vault).await?;
        check_media_type(head.headers)?;
        return read(&caller, &body);
    }
    let caller = match head.headers.get("authorization") {
        None if head.is_local => Caller::Local,
        authorization => authorize::by_token(config, authorization, vault).await?,
    };
    check_media_type(head.headers)?;
    read(&caller, &body.await?)
}

/// Whether what comes is JSON. A browser on this machine asks before it sends JSON to somebody else's
/// port, and is told no.
fn check_media_type(headers: &Headers) -> Result<(), Refusal> {
    refuse_compressed(headers)?;
    let given = headers.get("content-type").unwrap_or_default();
    let essence = given.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        return Ok(());
    }
    let message = "content-type is missing or is not application/json";
    Err(Refusal::new(Code::UnsupportedMediaType, message))
}

/// Reads the event of a body, if the caller may publish it.
fn read(caller: &Caller, body: &[u8]) -> Result<Event, Refusal> {
    let event = Event::parse(body).map_err(|invalid| Refusal::of_event(invalid, body.len()))?;
    if caller.may_publish_for(&event.tenant) {
        return Ok(event);
    }
    Err(Refusal::new(Code::Forbidden, format!("this producer does not publish for tenant {}", event.tenant)))
}
