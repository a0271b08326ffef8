//! A destination's JSON Schema: which payloads may be sent to it at all.
//!
//! A fault names where in the payload and which rule, never what stands there. Nothing is fetched: a
//! schema refers only to itself. Patterns take time linear in the text that they are matched with.
//!
//! Without the feature `schemas` none is compiled, and no payload passes one.

use std::fmt;

#[cfg(feature = "schemas")]
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::digest::sha256_hex;

/// How many faults of one payload are named.
#[cfg(feature = "schemas")]
const MOST_NAMED: usize = 3;
/// How much of a rule or of a pointer is shown, in characters.
#[cfg(feature = "schemas")]
const MOST_SHOWN: usize = 120;

/// A schema that was read and compiled.
pub struct PayloadSchema {
    file: String,
    digest: String,
    #[cfg(feature = "schemas")]
    document: Value,
    #[cfg(feature = "schemas")]
    validator: Validator,
}

/// What a payload breaks, as one sentence for its producer: `/currency breaks enum ["EUR"] (…); …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadFault(String);

impl fmt::Display for PayloadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl PayloadSchema {
    /// Reads the schema that stands in `file`, or says what is wrong with it.
    pub fn parse(file: &str, text: &str) -> Result<Self, String> {
        let document: Value = serde_json::from_str(text).map_err(|fault| format!("is not JSON: {fault}"))?;
        if !document.is_object() {
            return Err("is not a JSON object".to_owned());
        }
        #[cfg(feature = "schemas")]
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::regex())
            .build(&document)
            .map_err(|fault| {
                let at = fault.instance_path().as_str();
                shortened(&format!("is not a JSON Schema that can be used: {at}: {fault}"), 4 * MOST_SHOWN)
            })?;
        Ok(Self {
            file: file.to_owned(),
            digest: sha256_hex(text.as_bytes()),
            #[cfg(feature = "schemas")]
            document,
            #[cfg(feature = "schemas")]
            validator,
        })
    }

    /// The file that it was read from.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Whether the payload may be sent.
    #[cfg(not(feature = "schemas"))]
    pub fn check(&self, _payload: &[u8]) -> Result<(), PayloadFault> {
        Err(PayloadFault(format!("cannot be judged: this program was built without schemas ({})", self.file)))
    }

    /// Whether the payload may be sent.
    #[cfg(feature = "schemas")]
    pub fn check(&self, payload: &[u8]) -> Result<(), PayloadFault> {
        let instance: Value = serde_json::from_slice(payload)
            .map_err(|_| PayloadFault(format!("is no JSON that {} can judge", self.file)))?;
        let mut errors = self.validator.iter_errors(&instance);
        let named: Vec<String> =
            errors.by_ref().take(MOST_NAMED).map(|error| self.sentence(&error)).collect();
        if named.is_empty() {
            return Ok(());
        }
        let more = match errors.count() {
            0 => String::new(),
            more => format!("; {more} more"),
        };
        Err(PayloadFault(format!("{}{more}", named.join("; "))))
    }

    #[cfg(feature = "schemas")]
    fn sentence(&self, error: &jsonschema::ValidationError<'_>) -> String {
        let pointer = match error.instance_path().as_str() {
            "" => "the whole".to_owned(),
            pointer => shortened(pointer, MOST_SHOWN),
        };
        let rule = error.schema_path().as_str();
        let keyword = error.kind().keyword();
        let asked = self.document.pointer(rule).filter(|asked| !asked.is_object());
        let asked = asked.map(|asked| shortened(&format!(" {asked}"), MOST_SHOWN)).unwrap_or_default();
        format!("{pointer} breaks {keyword}{asked} ({}#{})", self.file, shortened(rule, MOST_SHOWN))
    }
}

/// The beginning of a text, with what could move a terminal's cursor taken out.
#[cfg(feature = "schemas")]
fn shortened(text: &str, most: usize) -> String {
    let mut shown: String =
        text.chars().take(most).map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

/// By the text that it was read from.
impl PartialEq for PayloadSchema {
    fn eq(&self, other: &Self) -> bool {
        (&self.file, &self.digest) == (&other.file, &other.digest)
    }
}

impl fmt::Debug for PayloadSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PayloadSchema").field("file", &self.file).field("digest", &self.digest).finish()
    }
}
