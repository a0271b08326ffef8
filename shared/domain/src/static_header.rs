//! Header fields that a destination wants with every request: whose names may be configured, and
//! which values may be sent. The values are secrets, and stand here only by reference.

use std::fmt;

use crate::destination::SecretRef;
use crate::fault::InvalidField;

/// The most bytes that a name may have, and a value.
const LONGEST_NAME: usize = 64;
const LONGEST_VALUE: usize = 4096;

/// What Waybill writes itself, what belongs to the connection and not to the request (RFC 9110,
/// 7.6.1), and what would change how the request is framed or answered. Whatever begins with
/// `webhook-` or `waybill-` is reserved too.
const RESERVED: [&str; 19] = [
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// One header field of a destination's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticHeader {
    /// Its name.
    pub name: StaticHeaderName,
    /// Where its value is kept.
    pub value: SecretRef,
}

/// As the configuration and a destination's fingerprint write it; the value stays a reference.
impl fmt::Display for StaticHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.value)
    }
}

/// The name of a header field that may be configured, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticHeaderName(String);

impl StaticHeaderName {
    /// Reads a name. One that is no token of RFC 9110 could end the field and begin another.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidField> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if !(1..=LONGEST_NAME).contains(&text.len()) || !text.bytes().all(is_token) {
            let rule = format!("1 to {LONGEST_NAME} letters, digits and hyphens, such as x-api-key");
            return Err(InvalidField::new(field, "is not the name of a header", rule));
        }
        let name = text.to_ascii_lowercase();
        let is_ours = name.starts_with("webhook-") || name.starts_with("waybill-");
        if is_ours || RESERVED.contains(&&*name) {
            let rule = "a header that neither Waybill nor HTTP itself writes, such as x-api-key";
            return Err(InvalidField::new(field, "is reserved", rule));
        }
        Ok(Self(name))
    }

    /// The name in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StaticHeaderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Whether `text` may be sent as a header's value. A line break would begin another header; what is
/// not ASCII is read differently by every recipient. The fault never repeats the value.
pub fn check_value(field: &str, text: &str) -> Result<(), InvalidField> {
    let fault = if text.is_empty() {
        "is empty"
    } else if text.len() > LONGEST_VALUE {
        "is too long"
    } else if text.bytes().any(|byte| byte.is_ascii_control()) {
        "has a control character, such as a line break at its end"
    } else if !text.is_ascii() {
        "is not ASCII"
    } else if text.starts_with(' ') || text.ends_with(' ') {
        "begins or ends with a space"
    } else {
        return Ok(());
    };
    Err(InvalidField::new(field, fault, format!("1 to {LONGEST_VALUE} printable characters of ASCII")))
}
