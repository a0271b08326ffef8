//! What a request says of its signature: read from the headers, not yet believed.

use super::custom::{Encoding, HmacRules, Part};
use super::headers::Headers;
use super::{Scheme, TOLERANCE, Untrusted};
use crate::signature::decode_base64;
use crate::time::DurationMs;

/// A claim to have signed.
pub(super) struct Claim<'a> {
    /// The header of the signatures.
    pub(super) header: &'a str,
    /// The signatures, as bytes. One that cannot be read is none.
    pub(super) signatures: Vec<Vec<u8>>,
    /// What they are made over, in pieces.
    pub(super) signed: Vec<&'a [u8]>,
    /// When, where the scheme says so.
    pub(super) timestamp: Option<Stamp<'a>>,
}

/// When a request was signed, as it says itself.
pub(super) struct Stamp<'a> {
    pub(super) header: &'a str,
    pub(super) unix_s: i64,
    pub(super) tolerance: DurationMs,
}

impl<'a> Claim<'a> {
    pub(super) fn read(scheme: &'a Scheme, headers: &'a Headers, body: &'a [u8]) -> Result<Self, Untrusted> {
        match scheme {
            Scheme::StandardWebhooks => standard_webhooks(headers, body),
            Scheme::Github => github(headers, body),
            Scheme::Stripe => stripe(headers, body),
            Scheme::Hmac(rules) => custom(rules, headers, body),
        }
    }
}

fn standard_webhooks<'a>(headers: &'a Headers, body: &'a [u8]) -> Result<Claim<'a>, Untrusted> {
    const SIGNATURE: &str = "webhook-signature";
    let id = require(headers, "webhook-id")?;
    if id.contains('.') {
        // A full stop ends the ID in what is signed: with one inside, two requests would be signed alike.
        return malformed("webhook-id", "without a full stop");
    }
    let written = require(headers, "webhook-timestamp")?;
    let stamp = stamp("webhook-timestamp", written, TOLERANCE)?;
    // Other versions stand beside ours and are not for us.
    let ours = require(headers, SIGNATURE)?.split(' ').filter_map(|one| one.strip_prefix("v1,"));
    let signatures: Vec<_> = ours.filter_map(decode_base64).collect();
    if signatures.is_empty() {
        return malformed(SIGNATURE, "v1, and a signature in base64; several with a blank between");
    }
    let signed = vec![id.as_bytes(), b".", written.as_bytes(), b".", body];
    Ok(Claim { header: SIGNATURE, signatures, signed, timestamp: Some(stamp) })
}

fn github<'a>(headers: &'a Headers, body: &'a [u8]) -> Result<Claim<'a>, Untrusted> {
    const SIGNATURE: &str = "x-hub-signature-256";
    let given = require(headers, SIGNATURE)?.strip_prefix("sha256=").and_then(decode_hex);
    let Some(signature) = given else { return malformed(SIGNATURE, "sha256= and 64 hexadecimal digits") };
    Ok(Claim { header: SIGNATURE, signatures: vec![signature], signed: vec![body], timestamp: None })
}

fn stripe<'a>(headers: &'a Headers, body: &'a [u8]) -> Result<Claim<'a>, Untrusted> {
    const SIGNATURE: &str = "stripe-signature";
    const RULE: &str = "t=SECONDS once, and v1=HEX at least once, with commas between";
    let mut written = None;
    let mut signatures = Vec::new();
    for item in require(headers, SIGNATURE)?.split(',') {
        match item.trim().split_once('=') {
            Some(("t", _)) if written.is_some() => return malformed(SIGNATURE, RULE),
            Some(("t", text)) => written = Some(text),
            Some(("v1", text)) => signatures.extend(decode_hex(text)),
            _ => {}
        }
    }
    let Some(written) = written.filter(|_| !signatures.is_empty()) else {
        return malformed(SIGNATURE, RULE);
    };
    let timestamp = Some(stamp(SIGNATURE, written, TOLERANCE)?);
    Ok(Claim { header: SIGNATURE, signatures, signed: vec![written.as_bytes(), b".", body], timestamp })
}

fn custom<'a>(rules: &'a HmacRules, headers: &'a Headers, body: &'a [u8]) -> Result<Claim<'a>, Untrusted> {
    let given = require(headers, &rules.header)?.strip_prefix(rules.prefix.as_str());
    let signature = given.and_then(|text| match rules.encoding {
        Encoding::Hex => decode_hex(text),
        Encoding::Base64 => decode_base64(text),
    });
    let Some(signature) = signature else {
        let encoding = match rules.encoding {
            Encoding::Hex => "hexadecimal",
            Encoding::Base64 => "base64",
        };
        return malformed(&rules.header, &format!("{:?} and a signature in {encoding}", rules.prefix));
    };
    let mut written: &[u8] = &[];
    let mut timestamp = None;
    if let Some((header, tolerance)) = &rules.timestamp {
        let text = require(headers, header)?;
        written = text.as_bytes();
        timestamp = Some(stamp(header, text, *tolerance)?);
    }
    let piece = |part: &'a Part| match part {
        Part::Text(text) => text.as_bytes(),
        Part::Timestamp => written,
        Part::Body => body,
    };
    let signed = rules.input.parts().iter().map(piece).collect();
    Ok(Claim { header: &rules.header, signatures: vec![signature], signed, timestamp })
}

fn require<'a>(headers: &'a Headers, name: &str) -> Result<&'a str, Untrusted> {
    match headers.get(name) {
        None | Some([]) => Err(Untrusted::Missing { header: name.to_owned() }),
        Some(_) => headers.text(name).map_or_else(|| malformed(name, "visible ASCII"), Ok),
    }
}

/// Seconds since 1970, in digits alone: no sign, no fraction, no blank.
fn stamp<'a>(header: &'a str, text: &str, tolerance: DurationMs) -> Result<Stamp<'a>, Untrusted> {
    let digits = (1..=12).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(unix_s) if digits => Ok(Stamp { header, unix_s, tolerance }),
        _ => malformed(header, "seconds since 1970, in digits"),
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? * 16 + digit(*low)?);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

fn malformed<T>(header: &str, rule: &str) -> Result<T, Untrusted> {
    Err(Untrusted::Malformed { header: header.to_owned(), rule: rule.to_owned() })
}
