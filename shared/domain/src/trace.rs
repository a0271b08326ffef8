//! W3C trace context: where a delivery belongs in its producer's distributed trace.
//!
//! A producer's `traceparent` and `tracestate` are taken from the request that publishes, kept with the
//! delivery, and sent on with each attempt under a span of its own, derived from delivery and attempt, so
//! that every worker and every repeat writes the same one. What is malformed is ignored, as the
//! recommendation asks; where a producer sent none, none is invented: the delivery ID links everything that
//! is Waybill's. See <https://www.w3.org/TR/trace-context/>.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::fault::InvalidField;
use crate::identity::{AttemptNumber, DeliveryId};

/// The most bytes of `tracestate` that are kept: as many as the recommendation asks everybody to pass on.
pub const MOST_STATE_BYTES: usize = 512;

/// The most members that a `tracestate` may have, and the length from which a member goes first when room
/// is short.
const MOST_MEMBERS: usize = 32;
const LONG_MEMBER: usize = 128;

/// The flags that version 00 knows: sampled, and random trace ID. Others are not passed on.
const KNOWN_FLAGS: u8 = 0b11;

/// A `traceparent`, read: which trace, which span of the producer's, and its flags. Kept and written as
/// version 00, whatever version it came as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceParent {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    flags: u8,
}

/// What is kept of a producer's trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    /// The trace, and the producer's span in it.
    pub parent: TraceParent,
    /// `tracestate` as it came, without what there is no room for; at most [`MOST_STATE_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl TraceContext {
    /// Reads both headers. Without a valid `traceparent` there is no trace, whatever `tracestate` says;
    /// an invalid `tracestate` is left out.
    pub fn read(traceparent: Option<&str>, tracestate: Option<&str>) -> Option<Self> {
        let parent = TraceParent::parse(traceparent?).ok()?;
        Some(Self { parent, state: tracestate.and_then(read_state) })
    }
}

impl TraceParent {
    /// Reads the header's value: `00-<32 hex>-<16 hex>-<2 hex>` in lower case, or the same beginning of a
    /// later version's.
    pub fn parse(text: &str) -> Result<Self, InvalidField> {
        let invalid = || {
            let rule = "00-, 32, 16 and 2 lower-case hexadecimal digits with - between, no ID all zeros";
            InvalidField::new("traceparent", "is malformed", rule)
        };
        let (known, rest) = text.split_at_checked(55).ok_or_else(invalid)?;
        let parts: Vec<&str> = known.split('-').collect();
        let [version, trace_id, span_id, flags] = parts[..] else { return Err(invalid()) };
        let [version] = bytes(version).ok_or_else(invalid)?;
        let trace_id: [u8; 16] = bytes(trace_id).ok_or_else(invalid)?;
        let span_id: [u8; 8] = bytes(span_id).ok_or_else(invalid)?;
        let [flags] = bytes(flags).ok_or_else(invalid)?;
        // Version 00 ends here; a later one may go on behind another hyphen; 255 is none.
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        if !is_whole || trace_id == [0; 16] || span_id == [0; 8] {
            return Err(invalid());
        }
        Ok(Self { trace_id, span_id, flags: flags & KNOWN_FLAGS })
    }

    /// The trace, as 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        hex(&self.trace_id)
    }

    /// The same trace with the span of one attempt: the first eight bytes of a digest of delivery and
    /// attempt, so that a repeat of it writes the same.
    pub fn of_attempt(&self, delivery: &DeliveryId, attempt: AttemptNumber) -> Self {
        let digest = Sha256::digest(format!("waybill span\0{delivery}\0{attempt}"));
        let mut span_id = [0; 8];
        span_id.iter_mut().zip(digest).for_each(|(into, byte)| *into = byte);
        if span_id == [0; 8] {
            span_id[7] = 1;
        }
        Self { span_id, ..*self }
    }
}

/// The header's value.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", hex(&self.trace_id), hex(&self.span_id), self.flags)
    }
}

impl TryFrom<String> for TraceParent {
    type Error = InvalidField;
    fn try_from(text: String) -> Result<Self, InvalidField> {
        Self::parse(&text)
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> String {
        parent.to_string()
    }
}

/// `N` bytes out of as many pairs of lower-case digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (into, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *into = digit(pair[0])? * 16 + digit(pair[1])?;
    }
    Some(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The members that are kept of a valid `tracestate`. Where they are too many bytes, the long ones go
/// first, then those at the end, which are the oldest.
fn read_state(text: &str) -> Option<String> {
    let members = text.split(',').map(|member| member.trim_matches([' ', '\t']));
    let mut members: Vec<&str> = members.filter(|member| !member.is_empty()).collect();
    let mut keys: Vec<&str> = members.iter().map(|member| key_of(member)).collect::<Option<_>>()?;
    keys.sort_unstable();
    if members.len() > MOST_MEMBERS || keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let length = |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>();
    while length(&members) > MOST_STATE_BYTES + 1 {
        let last_long = members.iter().rposition(|member| member.len() > LONG_MEMBER);
        members.remove(last_long.unwrap_or(members.len() - 1));
    }
    (!members.is_empty()).then(|| members.join(","))
}

/// The key of a well-formed member, by the grammar of Level 2, which is the wider one.
fn key_of(member: &str) -> Option<&str> {
    let (key, value) = member.split_once('=')?;
    let begins = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_key = key.bytes().next().is_some_and(begins)
        && key.len() <= 256
        && key.bytes().all(|byte| begins(byte) || b"_-*/@".contains(&byte));
    let is_value = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b',' && byte != b'=';
    let value_is = (1..=256).contains(&value.len()) && value.bytes().all(is_value);
    (is_key && value_is).then_some(key)
}
