//! The request: exactly the headers that the design names, those of the destination's configuration, and
//! the frozen bytes.
//!
//! It is drafted before anything is asked of the network, so that a request which HTTP cannot
//! express costs no connection, and signed right before it leaves.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use http_body_util::Full;
use url::{Position, Url};
use waybill_domain::signature::{self, SigningKey};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::Request;

use crate::report::Fault;
use crate::secrets::Signing;

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const EVENT_ID: HeaderName = HeaderName::from_static("waybill-event-id");
const EVENT_TYPE: HeaderName = HeaderName::from_static("waybill-event-type");
const ATTEMPT: HeaderName = HeaderName::from_static("waybill-attempt");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const USER_AGENT: &str = concat!("waybill/", env!("CARGO_PKG_VERSION"));

/// A request that lacks its time, its signature and what else comes out of secrets.
pub(crate) struct Draft {
    method: Method,
    target: Uri,
    headers: HeaderMap,
    body: Bytes,
    delivery_id: String,
    tampering: Tampering,
}

/// What is wrong on purpose with a test event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tampering {
    /// Nothing, as with every delivery.
    None,
    /// It is signed by a key that is not the destination's.
    ForeignKey,
    /// It says that it is so old, and is signed for that.
    Aged(DurationMs),
}

/// A key that is nobody's.
const FOREIGN_KEY: &str = "whsec_bm90IHRoZSBrZXkgb2YgYW55IGRlc3RpbmF0aW9uIQ==";

/// A request that may be sent now.
pub(crate) struct Signed {
    /// The request.
    pub(crate) request: http::Request<Full<Bytes>>,
    /// The value of `webhook-signature`.
    pub(crate) signatures: String,
}

impl Draft {
    /// Everything but time, signature and the destination's own header fields.
    pub(crate) fn new(request: &Request) -> Result<Self, Fault> {
        let url = request.destination.url.as_url();
        let mut draft = Self::without_body(Method::POST, request, url)?;
        let content_type = field(header::CONTENT_TYPE, &request.content_type)?;
        draft.headers.insert(header::CONTENT_TYPE, content_type);
        draft.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(request.body.len()));
        draft.body = request.body.clone();
        Ok(draft)
    }

    /// A status look-up at `url`: signed like a request, over no bytes.
    pub(crate) fn look_up(request: &Request, url: &Url) -> Result<Self, Fault> {
        Self::without_body(Method::GET, request, url)
    }

    /// The bytes that will be sent.
    pub(crate) fn payload(&self) -> Bytes {
        self.body.clone()
    }

    fn without_body(method: Method, request: &Request, url: &Url) -> Result<Self, Fault> {
        let delivery_id = request.delivery_id.as_str();
        let mut headers = HeaderMap::with_capacity(16);
        let mut set = |name: HeaderName, text: &str| {
            let value = field(name.clone(), text)?;
            headers.insert(name, value);
            Ok::<_, Fault>(())
        };
        set(header::HOST, &host_field(url))?;
        set(WEBHOOK_ID, delivery_id)?;
        set(IDEMPOTENCY_KEY, delivery_id)?;
        set(EVENT_ID, &legible(request.event_id.as_str()))?;
        set(EVENT_TYPE, request.event_type.as_str())?;
        set(ATTEMPT, &request.attempt.to_string())?;
        if let Some(trace) = &request.trace {
            set(TRACEPARENT, &trace.parent.to_string())?;
            trace.state.as_ref().map(|state| set(TRACESTATE, state)).transpose()?;
        }
        set(header::USER_AGENT, USER_AGENT)?;
        set(header::ACCEPT_ENCODING, "identity")?;
        // RFC 9112, 9.3: who does not reuse connections must say so.
        set(header::CONNECTION, "close")?;
        let target = url[Position::BeforePath..Position::AfterQuery].parse().map_err(|_| {
            Fault::unsendable("the destination's URL has a path or query that no request line may have")
        })?;
        Ok(Self {
            method,
            target,
            headers,
            body: Bytes::new(),
            delivery_id: delivery_id.to_owned(),
            tampering: Tampering::None,
        })
    }

    /// The same as a test event that is wrong on purpose.
    pub(crate) fn tampered_with(self, tampering: Tampering) -> Self {
        Self { tampering, ..self }
    }

    /// With the time of this attempt, a signature by every key, and the destination's own header fields:
    /// a look-up carries them like any request.
    pub(crate) fn sign(self, now: TimeMs, signing: &Signing) -> Signed {
        let timestamp_s = match self.tampering {
            Tampering::Aged(age) => now.minus(age).as_unix_s(),
            Tampering::None | Tampering::ForeignKey => now.as_unix_s(),
        };
        let sign = |keys: &[SigningKey]| signature::header(keys, &self.delivery_id, timestamp_s, &self.body);
        let signatures = match self.tampering {
            Tampering::ForeignKey => {
                sign(&[SigningKey::parse("key", FOREIGN_KEY).expect("whsec_ and 31 bytes")])
            }
            Tampering::None | Tampering::Aged(_) => sign(&signing.keys),
        };
        let mut request = http::Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target;
        *request.headers_mut() = self.headers;
        // Before Waybill's own, so that none of these could be overridden.
        for (name, value) in &signing.headers {
            request.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
        let mut value = HeaderValue::from_str(&signatures).expect("base64, commas and spaces are legal");
        value.set_sensitive(true);
        request.headers_mut().insert(WEBHOOK_SIGNATURE, value);
        request.headers_mut().insert(WEBHOOK_TIMESTAMP, HeaderValue::from(timestamp_s));
        Signed { request, signatures }
    }
}

fn field(name: HeaderName, text: &str) -> Result<HeaderValue, Fault> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
        Fault::unsendable(format!("the {name} of this delivery has a character that no header may have"))
    })
}

/// The host as the URL has it, with the port where it is not the scheme's own.
fn host_field(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// An event ID as a header: every byte outside `!`..`~`, and `%` itself, as `%XX`. Decoding percent
/// signs gives the ID back, byte for byte; one of plain ASCII without `%` stands as it is.
fn legible(event_id: &str) -> String {
    let mut text = String::with_capacity(event_id.len());
    for byte in event_id.bytes() {
        match byte {
            b'%' => text.push_str("%25"),
            0x21..=0x7E => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c67_the_host_field_has_the_port_where_it_is_not_the_schemes_own() {
        for (url, field) in [
            ("https://hook.example.test/", "hook.example.test"),
            ("https://hook.example.test:443/", "hook.example.test"),
            ("https://hook.example.test:8443/", "hook.example.test:8443"),
            ("http://hook.example.test:80/", "hook.example.test"),
            ("http://hook.example.test:443/", "hook.example.test:443"),
            ("https://[2606:4700::1111]:8443/", "[2606:4700::1111]:8443"),
        ] {
            assert_eq!(host_field(&Url::parse(url).unwrap()), field);
        }
    }

    #[test]
    fn an_event_id_is_always_a_legal_header() {
        for (id, field) in [
            ("evt_1", "evt_1"),
            ("acme:2026-08-09", "acme:2026-08-09"),
            ("100%", "100%25"),
            ("a b", "a%20b"),
            ("müller", "m%C3%BCller"),
            ("✨", "%E2%9C%A8"),
        ] {
            assert_eq!(legible(id), field, "{id}");
        }
    }
}
