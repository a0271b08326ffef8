//! What an attempt came to, and the one table that says so.
//!
//! The HTTP adapter translates what it saw into a [`Seen`]; nothing else looks at a status.
//! `tests/vectors/outcomes.json` is the oracle.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether the recipient may have applied a request that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Applied {
    /// It certainly did not.
    No,
    /// Nobody can tell: a repeat may be a second business effect.
    Unknown,
}

impl Applied {
    /// `no` or `unknown`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Applied::No => "no",
            Applied::Unknown => "unknown",
        }
    }
}

macro_rules! failure_classes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The kind of a failure: what an operator groups by and decides on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FailureClass { $($(#[$doc])* $variant,)* }

        impl FailureClass {
            /// Every class, in order.
            pub const ALL: &[FailureClass] = &[$(FailureClass::$variant,)*];

            /// The class as it is written everywhere.
            pub const fn as_str(self) -> &'static str {
                match self { $(FailureClass::$variant => $name,)* }
            }
        }
    };
}

failure_classes! {
    /// The resolver failed or knows no such name (never the same as a forbidden address).
    Dns = "dns",
    /// No connection, or it was lost before a byte of the request was written.
    Connect = "connect",
    /// The TLS handshake failed.
    Tls = "tls",
    /// The connection was lost after the first byte of the request.
    ConnectionLost = "connection_lost",
    /// No answer within the attempt's time.
    Timeout = "timeout",
    /// What came back is not an HTTP answer.
    Protocol = "protocol",
    /// 429.
    RateLimited = "rate_limited",
    /// 503.
    Unavailable = "unavailable",
    /// 5xx.
    ServerError = "server_error",
    /// 409, 423.
    Conflict = "conflict",
    /// 425.
    TooEarly = "too_early",
    /// 3xx: redirects are never followed.
    Redirect = "redirect",
    /// 400, 422 and their like: this payload will not do.
    PayloadRejected = "payload_rejected",
    /// 401, 403, 407.
    AuthenticationRejected = "authentication_rejected",
    /// 404, 405, 501, 505.
    EndpointMissing = "endpoint_missing",
    /// 410: the recipient wants no more.
    Gone = "gone",
    /// The destination's name resolves to an address that is not public.
    ForbiddenAddress = "forbidden_address",
    /// The payload is not in the store any more.
    PayloadMissing = "payload_missing",
    /// A signing secret could not be resolved: nothing was sent.
    SecretUnavailable = "secret_unavailable",
    /// The claim lapsed before anybody settled it: the effect of the attempt is unknown.
    Interrupted = "interrupted",
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whether a failure is worth another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Another attempt may succeed.
    Retryable,
    /// Only a person can mend it.
    Permanent,
}

/// An attempt that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Retry or not.
    pub verdict: Verdict,
    /// Why.
    pub class: FailureClass,
    /// Whether the recipient may have applied it.
    pub applied: Applied,
}

/// What an attempt came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The recipient acknowledged it.
    Delivered,
    /// It did not.
    Failed(Failure),
}

/// What the adapter saw happen on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// A final status. A 2xx whose body stalls, breaks or never ends is still this.
    Status(u16),
    /// The resolver failed or found nothing.
    NameNotResolved,
    /// An address that this name resolves to is not public.
    AddressForbidden,
    /// No connection within the time, or it was refused.
    NotConnected,
    /// The TLS handshake failed.
    TlsFailed,
    /// The connection ended before the first byte of the request was written.
    LostBeforeRequest,
    /// The connection ended after the first byte of the request was written.
    LostAfterRequest,
    /// Time ran out after the first byte of the request was written.
    AnswerTimedOut,
    /// The answer is not HTTP.
    AnswerMalformed,
    /// The store has no payload for this delivery.
    PayloadMissing,
    /// A secret could not be resolved.
    SecretUnavailable,
    /// The request cannot be written: no header can carry its content type, no line its URL.
    RequestUnwritable,
}

/// A destination's own reading of single statuses (`statuses = { 404 = "retryable" }`).
pub type StatusOverrides = BTreeMap<u16, StatusOverride>;

/// What a destination may say of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusOverride {
    /// Take it for an acknowledgement.
    Delivered,
    /// Try again.
    Retryable,
    /// Do not.
    Permanent,
}

/// The one mapping from what was seen to what it means.
///
/// ```
/// use waybill_domain::outcome::{FailureClass, Outcome, Seen, StatusOverrides, Verdict, classify};
///
/// let outcome = classify(Seen::Status(503), &StatusOverrides::new());
/// let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
/// assert_eq!(failure.class, FailureClass::Unavailable);
/// assert_eq!(failure.verdict, Verdict::Retryable);
/// ```
pub fn classify(seen: Seen, overrides: &StatusOverrides) -> Outcome {
    use FailureClass as C;
    match seen {
        Seen::Status(status) => match overrides.get(&status) {
            Some(meaning) => overridden(status, *meaning),
            None => classify_status(status),
        },
        Seen::NameNotResolved => retryable(C::Dns, Applied::No),
        Seen::AddressForbidden => permanent(C::ForbiddenAddress, Applied::No),
        Seen::NotConnected | Seen::LostBeforeRequest => retryable(C::Connect, Applied::No),
        Seen::TlsFailed => retryable(C::Tls, Applied::No),
        Seen::LostAfterRequest => retryable(C::ConnectionLost, Applied::Unknown),
        Seen::AnswerTimedOut => retryable(C::Timeout, Applied::Unknown),
        Seen::AnswerMalformed => retryable(C::Protocol, Applied::Unknown),
        Seen::PayloadMissing => permanent(C::PayloadMissing, Applied::No),
        Seen::SecretUnavailable => retryable(C::SecretUnavailable, Applied::No),
        Seen::RequestUnwritable => permanent(C::PayloadRejected, Applied::No),
    }
}

fn classify_status(status: u16) -> Outcome {
    use FailureClass as C;
    match status {
        200..300 => Outcome::Delivered,
        300..400 => permanent(C::Redirect, Applied::No),
        401 | 403 | 407 => permanent(C::AuthenticationRejected, Applied::No),
        404 | 405 | 501 | 505 => permanent(C::EndpointMissing, Applied::No),
        408 | 504 => retryable(C::Timeout, Applied::Unknown),
        409 => retryable(C::Conflict, Applied::Unknown),
        410 => permanent(C::Gone, Applied::No),
        423 => retryable(C::Conflict, Applied::No),
        425 => retryable(C::TooEarly, Applied::No),
        429 => retryable(C::RateLimited, Applied::No),
        400..500 => permanent(C::PayloadRejected, Applied::No),
        503 => retryable(C::Unavailable, Applied::No),
        500..600 => retryable(C::ServerError, Applied::Unknown),
        _ => permanent(C::Protocol, Applied::Unknown),
    }
}

/// The class and the doubt stay what the status says; only the verdict is the destination's.
fn overridden(status: u16, meaning: StatusOverride) -> Outcome {
    let (class, applied) = match classify_status(status) {
        Outcome::Failed(failure) => (failure.class, failure.applied),
        // A 2xx that its recipient does not mean: who knows what it did.
        Outcome::Delivered => (FailureClass::Protocol, Applied::Unknown),
    };
    match meaning {
        StatusOverride::Delivered => Outcome::Delivered,
        StatusOverride::Retryable => retryable(class, applied),
        StatusOverride::Permanent => permanent(class, applied),
    }
}

const fn retryable(class: FailureClass, applied: Applied) -> Outcome {
    Outcome::Failed(Failure { verdict: Verdict::Retryable, class, applied })
}

const fn permanent(class: FailureClass, applied: Applied) -> Outcome {
    Outcome::Failed(Failure { verdict: Verdict::Permanent, class, applied })
}
