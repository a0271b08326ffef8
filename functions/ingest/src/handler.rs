//! Requests of an API Gateway HTTP API or a function URL (payload format 2.0), answered as `waybill
//! serve` answers them.
//!
//! `isBase64Encoded` is followed exactly, before anything looks at the body; an absent body is an
//! empty one. Of the headers only two are looked at, so that nothing in another one can do harm.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use waybill_domain::destination::SecretRef;
use waybill_http::Secrets;
use waybill_service::config::Config;
use waybill_service::ingest::{self, Answer, EVENTS_PATH, Head};
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
    let answer = match (request.raw_path.as_str(), request.request_context.http.method.as_str()) {
        (EVENTS_PATH, "POST") => match config {
            Ok(config) => Answer::of(&accept(publisher, &config, secrets, &request).await),
            Err(refusal) => Answer::refusing(&refusal),
        },
        ("/healthz", "GET" | "HEAD") => match config {
            Ok(_) => Answer::healthy(),
            Err(refusal) => Answer::refusing(&refusal),
        },
        (path @ (EVENTS_PATH | "/healthz"), _) => Answer::wrong_method(path),
        _ => Answer::nothing_here(),
    };
    let headers = [Some(("content-type", "application/json")), answer.header];
    Ok(Response {
        status_code: answer.status,
        headers: headers.into_iter().flatten().collect(),
        body: answer.body.to_string(),
        is_base64_encoded: false,
    })
}

async fn accept<L: Ledger, Q: Queue, C: Clock, S: Secrets>(
    publisher: &Publisher<'_, L, Q, C>,
    config: &Config,
    secrets: &S,
    request: &Request,
) -> Result<Vec<Published>, Refusal> {
    let body = request.body.as_deref().unwrap_or_default();
    let length = if request.is_base64_encoded { body.len() / 4 * 3 } else { body.len() };
    // What is announced as too large is refused before it is worked on.
    ingest::check_size(length.saturating_sub(2) as u64)?;
    let head = Head {
        authorization: request.header("authorization"),
        content_type: request.header("content-type"),
        content_encoding: request.header("content-encoding"),
        is_local: false,
    };
    let token = async |reference: &SecretRef| match secrets.resolve(reference).await {
        Ok(token) => Some(token),
        Err(error) => {
            tracing::warn!(secret = %reference, %error, "a token does not resolve");
            None
        }
    };
    let caller = ingest::judge(config, head, token).await?;
    let decoded;
    let bytes = if request.is_base64_encoded {
        decoded = STANDARD.decode(body).map_err(|_| {
            Refusal::new(Code::InvalidJson, "the body is marked as base64, and is not base64")
        })?;
        decoded.as_slice()
    } else {
        body.as_bytes()
    };
    ingest::check_size(bytes.len() as u64)?;
    ingest::publish(publisher, config, ingest::read(&caller, bytes)?).await
}

impl Request {
    /// A header, by its name in any case. Several of one name come joined by commas.
    fn header(&self, name: &str) -> Option<&[u8]> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(written, _)| written.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.as_str()).map(str::as_bytes)
    }
}

#[cfg(test)]
mod tests;
