//! A source: somebody else's webhooks that come in, verified, for one tenant of ours.
//!
//! The body goes on as it came; what Waybill must know of it is taken from a header, from a place in
//! the body, or from the configuration.

use std::fmt;

use serde_json::value::RawValue;

use crate::destination::SecretRef;
use crate::fault::InvalidField;
use crate::identity::{DestinationName, EventId, EventType, Scope, TenantId};
use crate::pointer::JsonPointer;
use crate::time::TimeMs;
use crate::verify::Scheme;
use crate::verify::headers::{Headers, is_name};

/// A configured source.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// On whose behalf its events are published.
    pub tenant: TenantId,
    /// How its requests are signed.
    pub scheme: Scheme,
    /// With what: one reference, or two while rotating.
    pub secrets: Vec<SecretRef>,
    /// To whom its events go; every subscriber where it names nobody.
    pub destination: Option<DestinationName>,
    /// Where the event ID stands.
    pub event_id: Place,
    /// What its events are.
    pub event_type: TypeFrom,
    /// Where the deadline stands, if there is one.
    pub deadline: Option<Place>,
    /// Where it stands whose matter an event is.
    pub scope: Option<Place>,
    /// The version of its payloads.
    pub payload_version: Option<u32>,
}

/// Where a fact about an event stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a header, by its name in lower case: `header:webhook-id`.
    Header(String),
    /// In the body, which then must be JSON: `/data/id`.
    Body(JsonPointer),
}

/// Where an event's type is taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeFrom {
    /// From the event.
    Place(Place),
    /// It is always this one.
    Always(EventType),
}

/// What a request of a source says about its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The sender's identifier.
    pub event_id: EventId,
    /// What happened.
    pub event_type: EventType,
    /// After which nothing is sent.
    pub deadline: Option<TimeMs>,
    /// Whose matter.
    pub scope: Option<Scope>,
}

impl Source {
    /// Reads what a request says. A fault of the body as a whole names the field `body`.
    pub fn read(&self, headers: &Headers, body: &[u8]) -> Result<Facts, InvalidField> {
        let event_id = self.event_id.require("event_id", headers, body)?;
        let event_type = match &self.event_type {
            TypeFrom::Always(event_type) => event_type.clone(),
            TypeFrom::Place(place) => {
                EventType::parse(place.require("type", headers, body)?).map_err(|fault| place.blame(fault))?
            }
        };
        let time = |text: String| TimeMs::parse("deadline", &text);
        Ok(Facts {
            event_id: EventId::parse(event_id).map_err(|fault| self.event_id.blame(fault))?,
            event_type,
            deadline: optional(self.deadline.as_ref(), "deadline", headers, body, time)?,
            scope: optional(self.scope.as_ref(), "scope", headers, body, Scope::parse)?,
        })
    }
}

fn optional<T>(
    place: Option<&Place>,
    field: &str,
    headers: &Headers,
    body: &[u8],
    parse: impl FnOnce(String) -> Result<T, InvalidField>,
) -> Result<Option<T>, InvalidField> {
    let Some(place) = place else { return Ok(None) };
    let Some(text) = place.read(field, headers, body)? else { return Ok(None) };
    parse(text).map(Some).map_err(|fault| place.blame(fault))
}

/// The rule that [`Place::parse`] holds, for error texts.
pub const PLACE_RULE: &str = "\"header:NAME\", or a JSON pointer such as \"/data/id\"";

impl Place {
    /// Reads `header:NAME` or a JSON pointer.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidField> {
        let refuse = |fault: &str| Err(InvalidField::new(field, fault, PLACE_RULE));
        match text.strip_prefix("header:") {
            Some(name) if is_name(name) => Ok(Self::Header(name.to_ascii_lowercase())),
            Some(_) => refuse("names no header"),
            None if text.starts_with('/') => JsonPointer::parse(field, text).map(Self::Body),
            None => refuse("is neither a header nor a JSON pointer"),
        }
    }

    fn require(&self, field: &str, headers: &Headers, body: &[u8]) -> Result<String, InvalidField> {
        self.read(field, headers, body)?.ok_or_else(|| InvalidField::new(field, "is missing", self.rule()))
    }

    /// The text at this place; `null` and an empty header are none.
    fn read(&self, field: &str, headers: &Headers, body: &[u8]) -> Result<Option<String>, InvalidField> {
        match self {
            Place::Header(name) => match (headers.get(name), headers.text(name)) {
                (None | Some([]), _) => Ok(None),
                (Some(_), Some(text)) => Ok(Some(text.to_owned())),
                (Some(_), None) => Err(InvalidField::new(field, "is not visible ASCII", self.rule())),
            },
            Place::Body(pointer) => {
                let not_json = |fault: String| InvalidField::new("body", fault, "one JSON document in UTF-8");
                let text = str::from_utf8(body).map_err(|_| not_json("is not UTF-8".to_owned()))?;
                let found = pointer.find(text).map_err(|why| not_json(format!("is not JSON: {why}")))?;
                let refuse = |fault| InvalidField::new(field, fault, self.rule());
                found.map_or(Ok(None), |value| as_text(value).map_err(refuse))
            }
        }
    }

    /// The same fault, saying where the value came from.
    fn blame(&self, fault: InvalidField) -> InvalidField {
        InvalidField { rule: format!("{}, {}", fault.rule, self.rule()), ..fault }
    }

    fn rule(&self) -> String {
        format!("taken from {self}")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Header(name) => write!(f, "the header {name}"),
            Place::Body(pointer) => write!(f, "{pointer} of the body"),
        }
    }
}

/// A text, or a whole number as it is written.
fn as_text(value: &RawValue) -> Result<Option<String>, &'static str> {
    let written = value.get();
    match written.as_bytes() {
        b"null" => Ok(None),
        [b'"', ..] => serde_json::from_str(written).map(Some).map_err(|_| "is not valid Unicode"),
        digits if digits.iter().all(u8::is_ascii_digit) => Ok(Some(written.to_owned())),
        _ => Err("is neither a text nor a whole number"),
    }
}
