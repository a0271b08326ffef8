//! `[sources.NAME.signature]`: how a sender signs that is none of the known ones.

use waybill_domain::fault::InvalidField;
use waybill_domain::time::DurationMs;
use waybill_domain::verify::TOLERANCE;
use waybill_domain::verify::custom::{Encoding, HmacRules, INPUT_RULE, Input};
use waybill_domain::verify::headers::is_name;

use super::reader::Entry;
use super::reference::{Key, Kind, Table};

const HEADER_RULE: &str = "the name of a header, such as \"x-signature\"";
const SHORTEST: DurationMs = DurationMs::from_secs(1);
const LONGEST: DurationMs = DurationMs::from_secs(3600);
const TOLERANCE_RULE: &str = "from 1s to 3600s";
const ENCODING_RULE: &str = "\"hex\" or \"base64\"";
const PREFIX_RULE: &str =
    "what stands before the signature, such as \"sha256=\": at most 32 visible ASCII characters";

pub(super) const TABLE: Table = Table {
    path: "sources.NAME.signature",
    says: "How a sender signs (HMAC-SHA256) that is none of the known ones.",
    keys: &[
        Key::new("header", Kind::Text, "where the signature stands").required().rule(HEADER_RULE),
        Key::new("encoding", Kind::Text, "how it is written").required().rule(ENCODING_RULE),
        Key::new("prefix", Kind::Text, "of the header's value").default("\"\"").rule(PREFIX_RULE),
        Key::new("input", Kind::Text, "what is signed").required().rule(INPUT_RULE),
        Key::new(
            "timestamp",
            Kind::Text,
            "where the time of signing stands: with {timestamp} in input, and only then",
        )
        .rule(HEADER_RULE),
        Key::new("tolerance", Kind::Duration, "how far that time may be from now; only with timestamp")
            .default("\"5m\"")
            .rule(TOLERANCE_RULE),
    ],
    later: &[],
};

pub(super) fn hmac(entry: &Entry<'_, '_>) -> Option<HmacRules> {
    let section = entry.as_section(&TABLE)?;
    let header = section.require("header", HEADER_RULE).and_then(|entry| entry.parsed(header_name));
    let encoding = section.require("encoding", ENCODING_RULE).and_then(|entry| encoding(&entry));
    let input = section.require("input", INPUT_RULE).and_then(|entry| entry.parsed(Input::parse));
    let (mut prefix, mut timestamp, mut tolerance) = (String::new(), None, TOLERANCE);
    let mut sound = [
        section.set("prefix", &mut prefix, |entry| entry.parsed(visible)),
        section.set("timestamp", &mut timestamp, |entry| entry.parsed(header_name).map(Some)),
        section.set("tolerance", &mut tolerance, |entry| entry.parsed(span)),
    ]
    .iter()
    .all(|is_sound| *is_sound);
    if let Some(input) = &input {
        match (input.has_timestamp(), section.get("timestamp")) {
            (true, None) => {
                section.missing("timestamp", "the header of the {timestamp} of input");
                sound = false;
            }
            (false, Some(entry)) => {
                entry.refuse("is not signed: anybody could renew it", "{timestamp} within input");
                sound = false;
            }
            _ => {}
        }
    }
    if let (None, Some(entry)) = (section.get("timestamp"), section.get("tolerance")) {
        entry.refuse("is given without timestamp", "beside the header of a timestamp");
        sound = false;
    }
    let timestamp = timestamp.map(|header| (header, tolerance));
    let rules = HmacRules { header: header?, encoding: encoding?, prefix, input: input?, timestamp };
    sound.then_some(rules)
}

fn encoding(entry: &Entry<'_, '_>) -> Option<Encoding> {
    match entry.as_text()? {
        "hex" => return Some(Encoding::Hex),
        "base64" => return Some(Encoding::Base64),
        other => entry.refuse(format!("is {other:?}"), ENCODING_RULE),
    }
    None
}

fn header_name(field: &str, text: &str) -> Result<String, InvalidField> {
    if is_name(text) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(InvalidField::new(field, "names no header", HEADER_RULE))
}

fn visible(field: &str, text: &str) -> Result<String, InvalidField> {
    if text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    Err(InvalidField::new(field, "cannot stand in a header", PREFIX_RULE))
}

fn span(field: &str, text: &str) -> Result<DurationMs, InvalidField> {
    let span = DurationMs::parse(field, text)?;
    if (SHORTEST..=LONGEST).contains(&span) {
        return Ok(span);
    }
    Err(InvalidField::new(field, format!("is {span}"), TOLERANCE_RULE))
}
