//! Standard Webhooks signatures, scheme v1: HMAC-SHA256 over `id.timestamp.body`.
//!
//! The key is the base64-decoded secret, never its text. `tests/vectors/signatures.json` is the
//! oracle.

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::fault::InvalidField;

/// Secrets come with and without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A signing key. Its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey(Vec<u8>);

impl SigningKey {
    /// Reads `whsec_` and 24 to 64 bytes in base64. The text is never echoed.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidField> {
        let rule = "whsec_ and 24 to 64 bytes in base64";
        let refuse = |fault: String| Err(InvalidField::new(field, fault, rule));
        let Some(encoded) = text.strip_prefix("whsec_") else {
            return refuse("does not begin with whsec_".to_owned());
        };
        match LENIENT.decode(encoded) {
            Ok(key) if (24..=64).contains(&key.len()) => Ok(Self(key)),
            Ok(key) => refuse(format!("has {} bytes", key.len())),
            Err(_) => refuse("is not base64".to_owned()),
        }
    }

    /// `v1,` and the signature of one message in base64.
    pub fn sign(&self, id: &str, timestamp_s: i64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(id.as_bytes());
        mac.update(b".");
        mac.update(timestamp_s.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

/// The `webhook-signature` header: one signature for each key, so that rotation needs no pause.
pub fn header(keys: &[SigningKey], id: &str, timestamp_s: i64, body: &[u8]) -> String {
    keys.iter().map(|key| key.sign(id, timestamp_s, body)).collect::<Vec<_>>().join(" ")
}
