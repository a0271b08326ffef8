//! Whether a request was signed by who holds a secret: the schemes of senders, over the raw bytes.
//!
//! Every key and every signature is compared, each in constant time, whatever the others came to;
//! only a signature that is good has its timestamp judged. Without a key nothing is ever trusted.
//!
//! | scheme | headers | what is signed, by HMAC-SHA256 |
//! |---|---|---|
//! | `standard-webhooks` | `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,BASE64 v1,…` | `id.timestamp.body` |
//! | `github` | `x-hub-signature-256: sha256=HEX` | `body` |
//! | `stripe` | `stripe-signature: t=SECONDS,v1=HEX,v1=…` | `timestamp.body` |
//! | `hmac` | as configured | as configured |

mod claim;
pub mod custom;
pub mod headers;

use std::fmt;

use subtle::{Choice, ConstantTimeEq as _};

use crate::fault::InvalidField;
use crate::signature::SigningKey;
use crate::time::{DurationMs, TimeMs};
use claim::Claim;
use custom::HmacRules;
use headers::Headers;

/// How far a sender's clock may be from ours, or a request may have travelled.
pub const TOLERANCE: DurationMs = DurationMs::from_secs(300);

/// How a sender signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheme {
    /// Standard Webhooks, symmetric signatures (`v1`).
    StandardWebhooks,
    /// GitHub's webhooks. They carry no timestamp.
    Github,
    /// Stripe's webhooks.
    Stripe,
    /// Any other HMAC-SHA256, as its rules say.
    Hmac(HmacRules),
}

/// Why a request is not trusted. Says nothing of keys and repeats nothing of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untrusted {
    /// There is no secret that could verify anything.
    NoKey,
    /// A header that the scheme needs is not there.
    Missing {
        /// Its name.
        header: String,
    },
    /// A header is not written as the scheme writes it.
    Malformed {
        /// Its name.
        header: String,
        /// How it is written.
        rule: String,
    },
    /// No signature is that of any secret.
    NoMatch {
        /// The header of the signatures.
        header: String,
    },
    /// Well signed, but at another time.
    Stale {
        /// The header of the timestamp.
        header: String,
        /// How far it may be from now.
        tolerance: DurationMs,
    },
}

impl Scheme {
    /// Reads one of its secrets. Standard Webhooks writes keys in base64; everybody else takes the
    /// text itself for the key.
    pub fn key(&self, field: &str, text: &str) -> Result<SigningKey, InvalidField> {
        match self {
            Scheme::StandardWebhooks => SigningKey::parse(field, text),
            Scheme::Github | Scheme::Stripe | Scheme::Hmac(_) => SigningKey::of_text(field, text),
        }
    }
}

/// Whether one of `keys` signed `body`, not too long before or after `now`.
pub fn verify(
    scheme: &Scheme,
    keys: &[SigningKey],
    headers: &Headers,
    body: &[u8],
    now: TimeMs,
) -> Result<(), Untrusted> {
    if keys.is_empty() {
        return Err(Untrusted::NoKey);
    }
    let claim = Claim::read(scheme, headers, body)?;
    let mut is_good = Choice::from(0);
    for key in keys {
        let right = key.mac(&claim.signed);
        for given in &claim.signatures {
            is_good |= right.as_slice().ct_eq(given);
        }
    }
    if !bool::from(is_good) {
        return Err(Untrusted::NoMatch { header: claim.header.to_owned() });
    }
    match claim.timestamp {
        Some(stamp) if !is_near(stamp.unix_s, now, stamp.tolerance) => {
            Err(Untrusted::Stale { header: stamp.header.to_owned(), tolerance: stamp.tolerance })
        }
        _ => Ok(()),
    }
}

/// Whether `unix_s` is within `tolerance` of `now`, both ends included.
fn is_near(unix_s: i64, now: TimeMs, tolerance: DurationMs) -> bool {
    now.as_unix_ms().abs_diff(unix_s.saturating_mul(1000)) <= tolerance.as_ms()
}

impl Untrusted {
    /// The header that it is about.
    pub fn header(&self) -> Option<&str> {
        match self {
            Untrusted::NoKey => None,
            Untrusted::Missing { header }
            | Untrusted::Malformed { header, .. }
            | Untrusted::NoMatch { header }
            | Untrusted::Stale { header, .. } => Some(header),
        }
    }
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Untrusted::NoKey => f.write_str("there is no secret to verify a signature with"),
            Untrusted::Missing { header } => write!(f, "{header}: is missing (the request must be signed)"),
            Untrusted::Malformed { header, rule } => write!(f, "{header}: cannot be read ({rule})"),
            Untrusted::NoMatch { header } => {
                write!(
                    f,
                    "{header}: does not fit the body and a secret (signed over the bytes as they are sent)"
                )
            }
            Untrusted::Stale { header, tolerance } => {
                let (header, seconds) = (header, tolerance.whole_secs_up());
                write!(
                    f,
                    "{header}: is too far from now (at most {seconds} s; signed afresh for every request)"
                )
            }
        }
    }
}

impl std::error::Error for Untrusted {}
