//! Who is who: validated names, and the delivery ID that is derived, never drawn.
//!
//! The same publish twice, two worker versions side by side, the reconciler and every
//! redrive arrive at the same [`DeliveryId`]. `tests/vectors/identity.json` is the oracle.

use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::fault::InvalidField;
use crate::time::TimeMs;

/// Declares a newtype over text that can only hold what its `check` takes.
macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident, $field:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Takes the text if it keeps the rule, and says what is wrong if it does not.
            pub fn parse(text: impl Into<String>) -> Result<Self, InvalidField> {
                let text = text.into();
                let check: fn(&str, &str) -> Result<(), InvalidField> = $check;
                check($field, &text)?;
                Ok(Self(text))
            }

            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidField;
            fn try_from(text: String) -> Result<Self, InvalidField> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

text_newtype!(
    /// The customer on whose behalf something is delivered: 1 to 64 of `A-Z a-z 0-9 . _ -`.
    TenantId,
    "tenant",
    name
);
text_newtype!(
    /// A configured recipient, by its name in the configuration: 1 to 64 of `A-Z a-z 0-9 . _ -`.
    DestinationName,
    "destination",
    name
);
text_newtype!(
    /// Retry rules, by their name in the configuration: 1 to 64 of `A-Z a-z 0-9 . _ -`.
    PolicyName,
    "policy",
    name
);
text_newtype!(
    /// The producer's own identifier of an event: 1 to 256 bytes of UTF-8 without control
    /// characters. Compared byte by byte: no Unicode normalisation.
    EventId,
    "event_id",
    |field, text| printable(field, text, 256)
);
text_newtype!(
    /// What happened, such as `lease.payment_recorded`: 1 to 96 of `A-Z a-z 0-9 . _ - / :`.
    EventType,
    "type",
    |field, text| {
        let rule = "1 to 96 of A-Z a-z 0-9 . _ - / :";
        characters(field, text, 96, rule, |b| b.is_ascii_alphanumeric() || b"._-/:".contains(&b))
    }
);
text_newtype!(
    /// Free text that says whose matter this is within the tenant (property, account, player):
    /// 1 to 128 bytes of UTF-8 without control characters.
    Scope,
    "scope",
    |field, text| printable(field, text, 128)
);
text_newtype!(
    /// The identifier of one queue message. Redeliveries of the message share it.
    MessageId,
    "message_id",
    |field, text| printable(field, text, 128)
);
text_newtype!(
    /// Drawn fresh for every write that must be recognised as one's own: a claim and its settle
    /// share one; a write without a claim has one of its own.
    WriteToken,
    "token",
    |field, text| printable(field, text, 64)
);
text_newtype!(
    /// Which configuration was in force.
    ConfigRevision,
    "config_revision",
    |field, text| printable(field, text, 64)
);
text_newtype!(
    /// The waybill number: `whd_` and 26 digits of Crockford base 32, see [`DeliveryId::derive`].
    DeliveryId,
    "delivery_id",
    |field, text| {
        let good = text.strip_prefix("whd_").is_some_and(|digits| {
            digits.len() == 26 && digits.bytes().all(|b| CROCKFORD.contains(&b))
        });
        if good {
            return Ok(());
        }
        Err(InvalidField::new(field, "is not a delivery ID", "whd_ and 26 digits of Crockford base 32"))
    }
);

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

impl DeliveryId {
    /// SHA-256 over `waybill/delivery/v1`, tenant, event ID and destination, each prefixed by its
    /// length as four bytes (so that no two triples run into one text); the first 130 bits.
    ///
    /// ```
    /// use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId};
    ///
    /// let id = DeliveryId::derive(
    ///     &TenantId::parse("acme")?,
    ///     &EventId::parse("evt_pay_7319")?,
    ///     &DestinationName::parse("acme-accounting")?,
    /// );
    /// assert_eq!(id.as_str(), "whd_HMC7MJWWZ5WV7Z60WTKDYCRD47");
    /// # Ok::<(), waybill_domain::fault::InvalidField>(())
    /// ```
    pub fn derive(tenant: &TenantId, event_id: &EventId, destination: &DestinationName) -> Self {
        let mut hash = Sha256::new();
        for part in ["waybill/delivery/v1", tenant.as_str(), event_id.as_str(), destination.as_str()] {
            // Every part is at most 256 bytes, so its length always fits.
            hash.update((part.len() as u32).to_be_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        let mut id = String::with_capacity(30);
        id.push_str("whd_");
        for digit in 0..26 {
            id.push(CROCKFORD[five_bits(&digest, digit * 5)] as char);
        }
        Self(id)
    }
}

/// `prefix_` and a ULID: ten digits of the time, sixteen of SHA-256 over `chance`. Sorts by time.
pub fn ulid(prefix: &str, at: TimeMs, chance: &str) -> String {
    let time = u64::try_from(at.as_unix_ms()).unwrap_or_default();
    let digest = Sha256::digest(chance);
    let of_time = (0..10).rev().map(|digit| (time >> (5 * digit)) & 31).map(|value| value as usize);
    let of_chance = (0..16).map(|digit| five_bits(&digest, digit * 5));
    let digits: String = of_time.chain(of_chance).map(|value| char::from(CROCKFORD[value])).collect();
    format!("{prefix}_{digits}")
}

fn five_bits(digest: &[u8], first_bit: usize) -> usize {
    let byte = first_bit / 8;
    let window = u16::from_be_bytes([digest[byte], digest[byte + 1]]);
    usize::from((window >> (11 - first_bit % 8)) & 31)
}

/// Where a delivery's items live: a store asks for both, so that a store can keep tenants apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeliveryKey {
    /// The tenant it belongs to.
    pub tenant: TenantId,
    /// The delivery ID.
    pub delivery_id: DeliveryId,
}

impl fmt::Display for DeliveryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.delivery_id)
    }
}

/// The number of an attempt, counted from 1 over the whole life of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptNumber(NonZeroU32);

impl AttemptNumber {
    /// The first attempt.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// The attempt that follows `made` attempts.
    pub const fn after(made: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(made))
    }

    /// The number itself; also how many attempts there are once this one is made.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for AttemptNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The rule of tenants and of every name in the configuration but an operator's, for error texts.
pub const NAME_RULE: &str = "1 to 64 of A-Z a-z 0-9 . _ -";

fn name(field: &str, text: &str) -> Result<(), InvalidField> {
    characters(field, text, 64, NAME_RULE, |b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

fn characters(
    field: &str,
    text: &str,
    longest: usize,
    rule: &str,
    allowed: fn(u8) -> bool,
) -> Result<(), InvalidField> {
    length(field, text, longest, rule)?;
    match text.char_indices().find(|(_, c)| !u8::try_from(*c).is_ok_and(allowed)) {
        Some((at, c)) => Err(InvalidField::new(field, format!("has {c:?} at byte {at}"), rule)),
        None => Ok(()),
    }
}

fn printable(field: &str, text: &str, longest: usize) -> Result<(), InvalidField> {
    let rule = format!("1 to {longest} bytes of UTF-8 without control characters");
    length(field, text, longest, &rule)?;
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, c)) => Err(InvalidField::new(field, format!("has {c:?} at byte {at}"), rule)),
        None => Ok(()),
    }
}

fn length(field: &str, text: &str, longest: usize, rule: &str) -> Result<(), InvalidField> {
    let fault = match text.len() {
        0 => "is empty".to_owned(),
        n if n > longest => format!("has {n} bytes"),
        _ => return Ok(()),
    };
    Err(InvalidField::new(field, fault, rule))
}
