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

/// Secrets and signatures come with and without padding.
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

    /// Takes the text itself for the key, as senders do that are not of Standard Webhooks: 24 to 256
    /// bytes. The text is never echoed.
    pub fn of_text(field: &str, text: &str) -> Result<Self, InvalidField> {
        let rule = "24 to 256 bytes without white space around them";
        let fault = match text.len() {
            24..=256 if text.trim() == text => return Ok(Self(text.as_bytes().to_vec())),
            24..=256 => "begins or ends with white space".to_owned(),
            length => format!("has {length} bytes"),
        };
        Err(InvalidField::new(field, fault, rule))
    }

    /// `v1,` and the signature of one message in base64.
    pub fn sign(&self, id: &str, timestamp_s: i64, body: &[u8]) -> String {
        let timestamp = timestamp_s.to_string();
        let mac = self.mac(&[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
        format!("v1,{}", STANDARD.encode(mac))
    }

    /// HMAC-SHA256 over these pieces, one after the other.
    pub(crate) fn mac(&self, pieces: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        pieces.iter().for_each(|piece| mac.update(piece));
        mac.finalize().into_bytes().into()
    }
}

/// The bytes of a text in base64, with padding or without.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    LENIENT.decode(text).ok()
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

/// The `webhook-signature` header: one signature for each key, so that rotation needs no pause.
///
/// ```
/// use waybill_domain::signature::{SigningKey, header};
///
/// let key = SigningKey::parse("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let value = header(&[key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
/// assert_eq!(value, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
/// # Ok::<(), waybill_domain::fault::InvalidField>(())
/// ```
pub fn header(keys: &[SigningKey], id: &str, timestamp_s: i64, body: &[u8]) -> String {
    keys.iter().map(|key| key.sign(id, timestamp_s, body)).collect::<Vec<_>>().join(" ")
}
