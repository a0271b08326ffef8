//! Requests of an API Gateway HTTP API or a function URL (payload format 2.0), answered as `waybill
//! serve` answers them.
//!
//! `isBase64Encoded` is followed exactly, before anything looks at the body; an absent body is an
//! empty one. A header that is no text is none, so that nothing in it can do harm.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use waybill_domain::destination::SecretRef;
use waybill_domain::verify::headers::Headers;
use waybill_http::Secrets;
use waybill_service::authorize::Vault;
use waybill_service::config::Config;
use waybill_service::ingest::{self, Answer, Head, Inlet, Route};
use waybill_service::ports::{Clock, Ledger, Queue};
use waybill_service::publish::{Published, Publisher};
use waybill_service::refusal::{Code, Refusal};
use waybill_service::source::ConfigError;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    raw_path: String,
    #[serde(default)]
    headers: BTreeMap<String, Value>,
    /// Where an event has it (a test event, another gateway), every line of a header stands here.
    #[serde(default)]
    multi_value_headers: BTreeMap<String, Value>,
    request_context: Context,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

#[derive(Deserialize)]
struct Context {
    http: Line,
}

#[derive(Deserialize)]
struct Line {
    method: String,
}

/// The answer as the gateway takes it.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Response {
    status_code: u16,
    headers: BTreeMap<&'static str, &'static str>,
    body: String,
    is_base64_encoded: bool,
}

/// Answers one request. An error is an event that no gateway sends.
pub(crate) async fn handle<L: Ledger, Q: Queue, C: Clock, S: Secrets>(
    publisher: &Publisher<'_, L, Q, C>,
    config: Result<Arc<Config>, ConfigError>,
    secrets: &S,
    event: &RawValue,
) -> Result<Response, serde_json::Error> {
    let request: Request = serde_json::from_str(event.get())?;
    let config = config.map_err(|error| {
        tracing::error!(%error, "there is no configuration");
        Refusal::new(Code::Unavailable, "there is no configuration to publish under: try again later")
    });
    let method = request.request_context.http.method.as_str();
    let answer = match (Route::of(method, &request.raw_path), config) {
        (Err(answer), _) => answer,
        (Ok(Route::Description), _) => Answer::description(),
        (Ok(_), Err(refusal)) => Answer::refusing(&refusal),
        (Ok(Route::Health), Ok(_)) => Answer::healthy(),
        (Ok(Route::In(inlet)), Ok(config)) => {
            Answer::of(&accept(publisher, &config, secrets, inlet, &request).await)
        }
    };
    let headers = [Some(("content-type", "application/json")), answer.header];
    Ok(Response {
        status_code: answer.status,
        headers: headers.into_iter().flatten().collect(),
        body: answer.body.into_owned(),
        is_base64_encoded: false,
    })
}

async fn accept<L: Ledger, Q: Queue, C: Clock, S: Secrets>(
    publisher: &Publisher<'_, L, Q, C>,
    config: &Config,
    secrets: &S,
    inlet: Inlet<'_>,
    request: &Request,
) -> Result<Vec<Published>, Refusal> {
    // What is announced as too large is refused before it is worked on.
    inlet.check_size(request.least_length())?;
    let headers = &request.headers();
    let head = Head { headers, is_local: false, now: publisher.clock.now() };
    let vault = &Logged(secrets);
    let event = ingest::receive(config, inlet, head, vault, async { request.body(inlet) }).await?;
    ingest::publish(publisher, config, event).await
}

/// Secrets whose absence is told to the log.
struct Logged<'s, S>(&'s S);

impl<S: Secrets> Vault for Logged<'_, S> {
    async fn secret(&self, reference: &SecretRef) -> Option<String> {
        let found = self.0.resolve(reference).await;
        found
            .inspect_err(|error| tracing::warn!(secret = %reference, %error, "a secret does not resolve"))
            .ok()
    }
}

impl Request {
    /// The headers that are text; every line of one that the event has in several.
    fn headers(&self) -> Headers {
        let single = self.headers.iter().filter(|(name, _)| !self.multi_value_headers.contains_key(*name));
        let several = self.multi_value_headers.iter();
        let several =
            several.flat_map(|(name, lines)| lines.as_array().into_iter().flatten().map(move |v| (name, v)));
        single.chain(several).filter_map(|(name, value)| Some((name, value.as_str()?))).collect()
    }

    /// The least bytes that the body can have, without decoding it.
    fn least_length(&self) -> u64 {
        let written = self.body.as_deref().unwrap_or_default().len();
        let least = if self.is_base64_encoded { (written / 4 * 3).saturating_sub(2) } else { written };
        least as u64
    }

    /// The bytes that were sent.
    fn body(&self, inlet: Inlet<'_>) -> Result<Bytes, Refusal> {
        let body = self.body.as_deref().unwrap_or_default();
        let bytes = if self.is_base64_encoded {
            STANDARD.decode(body).map_err(|_| {
                Refusal::new(Code::InvalidJson, "the body is marked as base64, and is not base64")
            })?
        } else {
            body.as_bytes().to_vec()
        };
        inlet.check_size(bytes.len() as u64)?;
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests;
