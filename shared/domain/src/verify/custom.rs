//! The scheme `hmac`: a sender's own way of signing, as the configuration describes it.

use crate::fault::InvalidField;
use crate::time::DurationMs;

/// Where the signature stands, and what it is made over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HmacRules {
    /// The header of the signature, in lower case.
    pub header: String,
    /// How the signature is written.
    pub encoding: Encoding,
    /// What stands before it, such as `sha256=`.
    pub prefix: String,
    /// What is signed.
    pub input: Input,
    /// The header of the timestamp, and how far it may be from now.
    pub timestamp: Option<(String, DurationMs)>,
}

/// How the bytes of a signature are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Hexadecimal, in either case.
    Hex,
    /// Base64 of the standard alphabet, with padding or without.
    Base64,
}

/// What is signed, such as `{timestamp}.{body}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input(Vec<Part>);

/// A part of what is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// These very characters.
    Text(String),
    /// The timestamp's header, as it is written there.
    Timestamp,
    /// The body.
    Body,
}

/// The rule that [`Input::parse`] holds, for error texts.
pub const INPUT_RULE: &str =
    "{body} once, {timestamp} at most once, and text, such as \"{timestamp}.{body}\"";

impl Input {
    /// Reads a template.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidField> {
        let refuse = |fault: String| Err(InvalidField::new(field, fault, INPUT_RULE));
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, found) = rest.split_at(at);
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let place = found.split_inclusive('}').next().unwrap_or_default();
            parts.push(match place {
                "{body}" => Part::Body,
                "{timestamp}" => Part::Timestamp,
                other => return refuse(format!("{other:?} is nothing to put there")),
            });
            rest = found.strip_prefix(place).unwrap_or_default();
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        let count = |part: &Part| parts.iter().filter(|one| *one == part).count();
        match (count(&Part::Body), count(&Part::Timestamp)) {
            (1, 0 | 1) => Ok(Self(parts)),
            (0, _) => refuse("has no {body}: anybody could send another one".to_owned()),
            _ => refuse("has a place twice".to_owned()),
        }
    }

    /// Its parts, in order.
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// Whether the timestamp is signed too.
    pub fn has_timestamp(&self) -> bool {
        self.0.contains(&Part::Timestamp)
    }
}
