//! Why an event was not accepted, the same over HTTP and on the command line.
//!
//! Codes are stable: programs may rely on them. `field` and `message` are for people.
//!
//! | status | code | when |
//! |---|---|---|
//! | 400 | `invalid_json` | the body is not one JSON object |
//! | 400 | `invalid_field` | a field is missing, unknown, doubled or breaks its rule (deadlines too) |
//! | 401 | `unauthorized` | no bearer token, or one that no producer has |
//! | 401 | `invalid_signature` | no signature, or one that no secret makes over this body |
//! | 401 | `stale_signature` | well signed, but at a time too far from now |
//! | 403 | `forbidden` | the token or signature is good, but not for this tenant |
//! | 404 | `not_found` | there is nothing at this path, or no source of this name |
//! | 405 | `method_not_allowed` | not with this method |
//! | 408 | `request_timeout` | the body did not arrive in time |
//! | 409 | `conflict` | the event was published with other bytes; `stored_sha256`, `given_sha256` |
//! | 413 | `payload_too_large` | the body or its payload is larger than allowed |
//! | 415 | `unsupported_media_type` | the body is not `application/json`, or it is compressed; of a source: it is compressed, or its media type is none |
//! | 422 | `unknown_destination` | the tenant has no destination of this name |
//! | 422 | `no_subscriber` | the event names no destination, and nobody subscribes to its type |
//! | 422 | `payload_invalid` | the destination's schema refuses the payload: where in it, and which rule |
//! | 503 | `unavailable` | the store refuses, or a source's secret cannot be had: publish the same event again |
//! | 503 | `overloaded` | too much is under way at once: publish the same event again |

use crate::event::MAX_PAYLOAD_BYTES;
use crate::ports::PortError;
use crate::publish::PublishError;
use serde_json::{Map, Value};
use waybill_domain::fault::InvalidField;
use waybill_domain::verify::Untrusted;

/// The kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table above says what each is for")]
pub enum Code {
    InvalidJson,
    InvalidField,
    Unauthorized,
    InvalidSignature,
    StaleSignature,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    Conflict,
    PayloadTooLarge,
    UnsupportedMediaType,
    UnknownDestination,
    NoSubscriber,
    PayloadInvalid,
    Unavailable,
    Overloaded,
}

impl Code {
    /// Every kind, in the order of the table.
    pub const ALL: [Self; 16] = [
        Self::InvalidJson,
        Self::InvalidField,
        Self::Unauthorized,
        Self::InvalidSignature,
        Self::StaleSignature,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::Conflict,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::UnknownDestination,
        Self::NoSubscriber,
        Self::Unavailable,
        Self::Overloaded,
    ];

    /// Status and code, as the table above says.
    const fn row(self) -> (u16, &'static str) {
        match self {
            Code::InvalidJson => (400, "invalid_json"),
            Code::InvalidField => (400, "invalid_field"),
            Code::Unauthorized => (401, "unauthorized"),
            Code::InvalidSignature => (401, "invalid_signature"),
            Code::StaleSignature => (401, "stale_signature"),
            Code::Forbidden => (403, "forbidden"),
            Code::NotFound => (404, "not_found"),
            Code::MethodNotAllowed => (405, "method_not_allowed"),
            Code::RequestTimeout => (408, "request_timeout"),
            Code::Conflict => (409, "conflict"),
            Code::PayloadTooLarge => (413, "payload_too_large"),
            Code::UnsupportedMediaType => (415, "unsupported_media_type"),
            Code::UnknownDestination => (422, "unknown_destination"),
            Code::NoSubscriber => (422, "no_subscriber"),
            Code::PayloadInvalid => (422, "payload_invalid"),
            Code::Unavailable => (503, "unavailable"),
            Code::Overloaded => (503, "overloaded"),
        }
    }

    /// The status over HTTP.
    pub const fn status(self) -> u16 {
        self.row().0
    }

    /// The code as it is written.
    pub const fn as_str(self) -> &'static str {
        self.row().1
    }
}

/// A refusal: what kind, of which field, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What kind.
    pub code: Code,
    field: Option<String>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Of a conflict: the stored bytes' and the given bytes'.
    digests: Option<Box<(String, String)>>,
    /// What the store said: for who runs it, never for a caller over HTTP.
    pub cause: Option<String>,
}

impl Refusal {
    /// A refusal that is about no field.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, field: None, message: message.into(), digests: None, cause: None }
    }

    /// The event, which had `length` bytes, is not one.
    pub fn of_event(invalid: InvalidField, length: usize) -> Self {
        let code = match invalid.field.as_str() {
            "event" => Code::InvalidJson,
            "payload" if length > MAX_PAYLOAD_BYTES => Code::PayloadTooLarge,
            _ => Code::InvalidField,
        };
        Self::of_field(code, invalid)
    }

    /// A source's request says of its event what cannot be.
    pub fn of_source(invalid: InvalidField) -> Self {
        let code = if invalid.field == "body" { Code::InvalidJson } else { Code::InvalidField };
        Self::of_field(code, invalid)
    }

    /// Nobody whom we trust signed the request. What is said repeats nothing of it.
    pub fn untrusted(untrusted: &Untrusted) -> Self {
        let code = match untrusted {
            Untrusted::Stale { .. } => Code::StaleSignature,
            _ => Code::InvalidSignature,
        };
        let field = untrusted.header().map(str::to_owned);
        Self { field, ..Self::new(code, untrusted.to_string()) }
    }

    /// A well-formed event was not accepted. What a store says is for the log alone.
    pub fn of_publish(error: PublishError) -> Self {
        let message = error.to_string();
        match error {
            PublishError::Invalid(invalid) => {
                let code = match invalid.field.as_str() {
                    "destination" => Code::UnknownDestination,
                    "type" => Code::NoSubscriber,
                    _ => Code::InvalidField,
                };
                Self::of_field(code, invalid)
            }
            PublishError::Conflict { stored_sha256, given_sha256, .. } => Self {
                code: Code::Conflict,
                field: Some("event_id".to_owned()),
                message,
                digests: Some(Box::new((stored_sha256, given_sha256))),
                cause: None,
            },
            PublishError::PayloadInvalid { .. } => {
                Self { field: Some("payload".to_owned()), ..Self::new(Code::PayloadInvalid, message) }
            }
            PublishError::Port(error) => Self::unavailable(&error),
        }
    }

    /// The store refuses.
    pub fn unavailable(error: &PortError) -> Self {
        let cause = error.in_full();
        tracing::error!(error = cause, "a store refuses");
        let when = match error {
            PortError::AskLater { .. } => "publish the same event again",
            PortError::NeedsPerson { .. } => "publish the same event again once it is mended",
        };
        Self { cause: Some(cause), ..Self::new(Code::Unavailable, format!("{error}: {when}")) }
    }

    /// What comes in cannot be kept now: the answer to whoever asks just that.
    pub fn unhealthy(error: &PortError) -> Self {
        let message = format!("{error}: what comes in cannot be kept now");
        Self { message, ..Self::unavailable(error) }
    }

    /// The same facts as JSON.
    pub fn facts(&self) -> Value {
        let mut facts = Map::new();
        let mut put = |key: &str, value: &str| facts.insert(key.to_owned(), Value::from(value));
        put("code", self.code.as_str());
        if let Some(field) = &self.field {
            put("field", field);
        }
        put("message", &self.message);
        if let Some((stored, given)) = self.digests.as_deref() {
            put("stored_sha256", stored);
            put("given_sha256", given);
        }
        Value::Object(facts)
    }

    fn of_field(code: Code, invalid: InvalidField) -> Self {
        let message = invalid.to_string();
        Self { code, field: Some(invalid.field), message, digests: None, cause: None }
    }
}
