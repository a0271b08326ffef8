//! `POST /v1/sources/{source}`: body → signature → timestamp → media type → parse.
//!
//! The body is forwarded as it came. A source without a secret that can be had accepts nothing.

use bytes::Bytes;
use waybill_domain::source::Source;
use waybill_domain::verify::headers::Headers;
use waybill_domain::verify::{Untrusted, verify};

use super::{Head, refuse_compressed};
use crate::authorize::{Vault, keys};
use crate::config::Config;
use crate::event::{Event, check_content_type};
use crate::refusal::{Code, Refusal};

pub(super) async fn receive(
    config: &Config,
    name: &str,
    head: Head<'_>,
    vault: &impl Vault,
    body: impl Future<Output = Result<Bytes, Refusal>>,
) -> Result<Event, Refusal> {
    let Some(source) = config.sources.get(name) else {
        return Err(Refusal::new(Code::NotFound, "there is no source of this name"));
    };
    let body = body.await?;
    let keys = keys(&source.scheme, &source.secrets, vault).await;
    match verify(&source.scheme, &keys, head.headers, &body, head.now) {
        Ok(()) => {}
        // Nobody knows what a secret that cannot be had would have said: the sender comes again.
        Err(Untrusted::NoKey | Untrusted::NoMatch { .. }) if keys.len() < source.secrets.len() => {
            let message = "a secret of this source cannot be used, and nothing is accepted unverified: \
                           send the same request again once it is mended";
            return Err(Refusal::new(Code::Unavailable, message));
        }
        Err(untrusted) => return Err(Refusal::untrusted(&untrusted)),
    }
    let content_type = media_type(head.headers)?;
    event(source, head.headers, content_type, body)
}

/// What the recipient is told that the payload is: what we were told.
fn media_type(headers: &Headers) -> Result<String, Refusal> {
    refuse_compressed(headers)?;
    let given = match (headers.get("content-type"), headers.text("content-type")) {
        (None | Some([]), _) => "application/octet-stream",
        (Some(_), text) => text.unwrap_or_default(),
    };
    check_content_type(given).map_err(|fault| Refusal::new(Code::UnsupportedMediaType, fault.to_string()))?;
    Ok(given.to_owned())
}

fn event(source: &Source, headers: &Headers, content_type: String, payload: Bytes) -> Result<Event, Refusal> {
    let facts = source.read(headers, &payload).map_err(Refusal::of_source)?;
    Ok(Event {
        event_id: facts.event_id,
        tenant: source.tenant.clone(),
        event_type: facts.event_type,
        destination: source.destination.clone(),
        scope: facts.scope,
        deadline: facts.deadline,
        not_before: None,
        policy: None,
        payload_version: source.payload_version,
        content_type,
        payload,
    })
}
