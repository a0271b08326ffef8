//! An event as its producer writes it: one JSON object, its payload kept as the very bytes written.
//!
//! `{"event_id", "tenant", "type", "destination"?, "scope"?, "deadline"?, "not_before"?,
//! "payload_version"?, "payload": any JSON}`, or `"payload_base64"` with `"content_type"` for bytes
//! that are not JSON. A field that is not among these is refused: a misspelt deadline is no deadline.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::{DestinationName, EventId, EventType, PolicyName, Scope, TenantId};
use waybill_domain::time::TimeMs;

/// The largest payload: 4 MiB.
pub const MAX_PAYLOAD_BYTES: usize = 4 * 1024 * 1024;

/// The largest event as JSON: a payload of the largest size in base64, and everything beside it.
pub const MAX_EVENT_BYTES: usize = MAX_PAYLOAD_BYTES / 3 * 4 + 16 * 1024;

const NOT_JSON: &str = "one JSON object with event_id, tenant, type and payload";

/// A well-formed event. Whether it can be accepted now is for [`crate::publish`] to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The producer's identifier.
    pub event_id: EventId,
    /// On whose behalf.
    pub tenant: TenantId,
    /// What happened.
    pub event_type: EventType,
    /// To whom; every subscriber where it names nobody.
    pub destination: Option<DestinationName>,
    /// Whose matter.
    pub scope: Option<Scope>,
    /// After which nothing is sent.
    pub deadline: Option<TimeMs>,
    /// Before which nothing is sent.
    pub not_before: Option<TimeMs>,
    /// Whose retry rules count, where they are not its destination's: a schedule's say. A producer has none.
    pub policy: Option<PolicyName>,
    /// The producer's version of its payload.
    pub payload_version: Option<u32>,
    /// What the recipient is told that the payload is.
    pub content_type: String,
    /// The frozen bytes.
    pub payload: Bytes,
}

/// The fields, still as written: each is read under its own name, so that errors can name it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    event_id: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    tenant: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    r#type: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    destination: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    scope: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    deadline: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    not_before: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    payload_version: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    content_type: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    payload: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    payload_base64: Option<&'a RawValue>,
}

/// Serde would take `"payload": null` for an absent payload; it is a payload of four bytes.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl Event {
    /// Reads one event.
    pub fn parse(json: &[u8]) -> Result<Self, InvalidField> {
        // Serde would also fill the fields from an array, by position.
        match json.trim_ascii().first() {
            Some(b'{') => {}
            Some(_) => return Err(InvalidField::new("event", "is not a JSON object", NOT_JSON)),
            None => return Err(InvalidField::new("event", "is empty", NOT_JSON)),
        }
        let written: Written<'_> = serde_json::from_slice(json).map_err(|fault| not_an_event(&fault))?;
        let event_id = EventId::parse(required("event_id", written.event_id)?)?;
        let tenant = TenantId::parse(required("tenant", written.tenant)?)?;
        let event_type = EventType::parse(required("type", written.r#type)?)?;
        let (content_type, payload) = payload(&written)?;
        Ok(Self {
            event_id,
            tenant,
            event_type,
            destination: text("destination", written.destination)?.map(DestinationName::parse).transpose()?,
            scope: text("scope", written.scope)?.map(Scope::parse).transpose()?,
            deadline: time("deadline", written.deadline)?,
            not_before: time("not_before", written.not_before)?,
            policy: None,
            payload_version: version(written.payload_version)?,
            content_type,
            payload,
        })
    }
}

fn not_an_event(fault: &serde_json::Error) -> InvalidField {
    let text = fault.to_string();
    // Serde names the field of an unknown or doubled one between backticks.
    if let Some((about, rest)) = text.split_once(" field `")
        && let Some((field, _)) = rest.split_once('`')
    {
        let field = shown(field);
        return match about {
            "duplicate" => InvalidField::new(field, "is given twice", "every field once"),
            _ => InvalidField::new(field, "is not a field of an event", "see `payload` for your own data"),
        };
    }
    InvalidField::new("event", format!("is not a JSON object: {text}"), NOT_JSON)
}

/// A field's name as it may be answered: at most 64 characters, and nothing that would break a line.
fn shown(field: &str) -> String {
    let short: String = field.chars().take(64).collect();
    if short.contains(char::is_control) { short.escape_debug().to_string() } else { short }
}

fn required(field: &str, value: Option<&RawValue>) -> Result<String, InvalidField> {
    text(field, value)?.ok_or_else(|| InvalidField::new(field, "is missing", "every event has one"))
}

fn text(field: &str, value: Option<&RawValue>) -> Result<Option<String>, InvalidField> {
    let Some(value) = value else { return Ok(None) };
    serde_json::from_str(value.get())
        .map_err(|_| InvalidField::new(field, "is not a string", "a JSON string of valid Unicode"))
}

fn time(field: &str, value: Option<&RawValue>) -> Result<Option<TimeMs>, InvalidField> {
    text(field, value)?.map(|text| TimeMs::parse(field, &text)).transpose()
}

fn version(value: Option<&RawValue>) -> Result<Option<u32>, InvalidField> {
    let Some(value) = value else { return Ok(None) };
    serde_json::from_str(value.get()).map_err(|_| {
        InvalidField::new("payload_version", "is not such a number", "a whole number from 0 to 4294967295")
    })
}

fn payload(written: &Written<'_>) -> Result<(String, Bytes), InvalidField> {
    let content_type = text("content_type", written.content_type)?;
    let (content_type, bytes) = match (written.payload, written.payload_base64) {
        (Some(json), None) => {
            let content_type = content_type.unwrap_or_else(|| "application/json".to_owned());
            (content_type, Bytes::copy_from_slice(json.get().as_bytes()))
        }
        (None, Some(encoded)) => {
            let Some(content_type) = content_type else {
                let rule = "payload_base64 needs it: nobody can tell what the bytes are";
                return Err(InvalidField::new("content_type", "is missing", rule));
            };
            (content_type, decode(encoded)?)
        }
        (Some(_), Some(_)) => {
            return Err(InvalidField::new("payload_base64", "is given beside payload", "one of the two"));
        }
        (None, None) => {
            return Err(InvalidField::new("payload", "is missing", "any JSON, or payload_base64"));
        }
    };
    if bytes.len() > MAX_PAYLOAD_BYTES {
        let rule = format!("at most {MAX_PAYLOAD_BYTES} bytes");
        return Err(InvalidField::new("payload", format!("has {} bytes", bytes.len()), rule));
    }
    check_content_type(&content_type)?;
    Ok((content_type, bytes))
}

fn decode(encoded: &RawValue) -> Result<Bytes, InvalidField> {
    let text = text("payload_base64", Some(encoded))?.unwrap_or_default();
    let rule = "base64 with padding, of the alphabet A-Z a-z 0-9 + /";
    STANDARD
        .decode(text)
        .map(Bytes::from)
        .map_err(|fault| InvalidField::new("payload_base64", format!("is not base64: {fault}"), rule))
}

/// It becomes a header: what a header cannot carry is refused here, while somebody can still mend it.
pub(crate) fn check_content_type(text: &str) -> Result<(), InvalidField> {
    let rule = "a media type such as application/json, at most 128 visible ASCII characters";
    let fault = match text.split_once('/') {
        _ if text.len() > 128 => "is too long",
        _ if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) => "has a character that no header can carry",
        Some((kind, rest)) if !kind.trim().is_empty() && !rest.trim().is_empty() => return Ok(()),
        _ => "is not a media type",
    };
    Err(InvalidField::new("content_type", fault, rule))
}
