//! The message body: versioned JSON, ASCII only, under 1 KiB. A wake-up, never the truth.
//!
//! Decoders of older versions stay for as long as a message can live; a newer version is left in
//! the queue, so that a rollback loses nothing.

use serde::{Deserialize, Deserializer, Serialize};

use crate::delivery::Record;
use crate::ending::Ending;
use crate::identity::{AttemptNumber, DeliveryId, DeliveryKey, DestinationName, EventType, Scope, TenantId};
use crate::outcome::FailureClass;
use crate::time::{TimeMs, rfc3339};
use crate::trace::TraceParent;

/// The version that this build writes.
pub const VERSION: u32 = 1;

/// Every message has fewer bytes than this.
const SMALL: usize = 1024;

/// What every message carries about its delivery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The waybill number.
    pub delivery_id: DeliveryId,
    /// On whose behalf.
    pub tenant: TenantId,
    /// To whom.
    pub destination: DestinationName,
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// Whose matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// When it was first recorded.
    #[serde(with = "rfc3339")]
    pub first_queued_at: TimeMs,
    /// After which nothing is sent.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rfc3339::option")]
    pub deadline: Option<TimeMs>,
    /// What the last failed attempt came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<FailureNote>,
    /// The producer's trace, for whoever looks at messages; left out of one that would outgrow its 1 KiB
    /// (a scope with little ASCII in it). Its `tracestate` is in the ledger alone, for the same reason.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "if_legible")]
    pub traceparent: Option<TraceParent>,
}

/// A trace that nobody can read is none: no wake-up is lost for it.
fn if_legible<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TraceParent>, D::Error> {
    let written = Option::<serde_json::Value>::deserialize(from)?;
    Ok(written.as_ref().and_then(serde_json::Value::as_str).and_then(|text| TraceParent::parse(text).ok()))
}

/// The last failure, in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureNote {
    /// Its class.
    pub class: FailureClass,
    /// When.
    #[serde(with = "rfc3339")]
    pub at: TimeMs,
}

/// "Look at this delivery": for one attempt and one due time, so that it never claims another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WakeUp {
    /// About which delivery.
    #[serde(flatten)]
    pub facts: Facts,
    /// The attempt that it is for.
    pub attempt: AttemptNumber,
    /// When that attempt is due.
    #[serde(with = "rfc3339")]
    pub due_at: TimeMs,
}

/// What the DLQ is told: an explicit decision that the ledger already records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// About which delivery.
    #[serde(flatten)]
    pub facts: Facts,
    /// Why automation ended: a dead letter's reason, or `expired`.
    pub reason: String,
    /// How many attempts were made.
    pub attempts_made: u32,
    /// When it ended.
    #[serde(with = "rfc3339")]
    pub ended_at: TimeMs,
}

/// A message body, read.
#[derive(Debug, Clone, PartialEq)]
pub enum Decoded {
    /// A wake-up.
    WakeUp(WakeUp),
    /// A dead letter: on the main queue it can only come from a console's redrive.
    DeadLetter(DeadLetter),
    /// An envelope of a version that this build does not know yet.
    Newer(u32),
    /// Not an envelope of ours, and why.
    Undecodable(String),
}

impl Facts {
    fn of(record: &Record) -> Self {
        let delivery = &record.delivery;
        Self {
            delivery_id: delivery.id.clone(),
            tenant: delivery.tenant.clone(),
            destination: delivery.destination.clone(),
            event_type: delivery.event_type.clone(),
            scope: delivery.scope.clone(),
            first_queued_at: delivery.first_queued_at,
            deadline: delivery.deadline,
            last_failure: record
                .last_failure
                .as_ref()
                .map(|last| FailureNote { class: last.failure.class, at: last.at }),
            traceparent: delivery.trace.as_ref().map(|trace| trace.parent),
        }
    }

    /// The same without the trace, which the ledger has.
    fn untraced(&self) -> Self {
        Self { traceparent: None, ..self.clone() }
    }

    /// Where the delivery's items live.
    pub fn key(&self) -> DeliveryKey {
        DeliveryKey { tenant: self.tenant.clone(), delivery_id: self.delivery_id.clone() }
    }
}

impl WakeUp {
    /// The wake-up for the attempt that `record` is due for.
    pub fn for_next_attempt(record: &Record) -> Self {
        Self { facts: Facts::of(record), attempt: record.next_attempt(), due_at: record.due_at }
    }

    /// Whether it is for the attempt and the due time that `record` stands at.
    pub fn is_for(&self, record: &Record) -> bool {
        self.attempt == record.next_attempt() && self.due_at == record.due_at
    }

    /// The message body.
    pub fn encode(&self) -> String {
        let body = encode(Body { waybill: VERSION, body: Kind::WakeUp(self) });
        match (body.len() < SMALL, self.facts.traceparent) {
            (false, Some(_)) => Self { facts: self.facts.untraced(), ..self.clone() }.encode(),
            _ => body,
        }
    }
}

impl DeadLetter {
    /// The dead letter of a delivery that ended.
    pub fn of(record: &Record, ending: Ending) -> Self {
        Self {
            facts: Facts::of(record),
            reason: ending.reason().to_owned(),
            attempts_made: record.attempts_made,
            ended_at: record.ended_at.unwrap_or(record.due_at),
        }
    }

    /// The message body.
    pub fn encode(&self) -> String {
        let body = encode(Body { waybill: VERSION, body: Kind::DeadLetter(self) });
        match (body.len() < SMALL, self.facts.traceparent) {
            (false, Some(_)) => Self { facts: self.facts.untraced(), ..self.clone() }.encode(),
            _ => body,
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    waybill: u32,
    #[serde(flatten)]
    body: Kind<'a>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Kind<'a> {
    WakeUp(&'a WakeUp),
    DeadLetter(&'a DeadLetter),
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum KindOfV1 {
    WakeUp(WakeUp),
    DeadLetter(DeadLetter),
}

#[derive(Deserialize)]
struct Version {
    waybill: u32,
}

/// Reads a message body.
pub fn decode(body: &str) -> Decoded {
    let version = match serde_json::from_str::<Version>(body) {
        // Serde would also read the version from the first item of an array.
        Ok(Version { waybill }) if body.trim_start().starts_with('{') => waybill,
        Ok(_) => return Decoded::Undecodable("not an envelope: not a JSON object".to_owned()),
        Err(fault) => return Decoded::Undecodable(format!("not an envelope: {}", said(&fault))),
    };
    match version {
        1 => match serde_json::from_str::<KindOfV1>(body) {
            Ok(KindOfV1::WakeUp(wakeup)) => Decoded::WakeUp(wakeup),
            Ok(KindOfV1::DeadLetter(dead)) => Decoded::DeadLetter(dead),
            Err(fault) => Decoded::Undecodable(format!("not an envelope of version 1: {}", said(&fault))),
        },
        0 => Decoded::Undecodable("there was never an envelope version 0".to_owned()),
        newer => Decoded::Newer(newer),
    }
}

/// What is wrong with a body, for the log: where, and which field is missing. Whatever was put into the queue
/// may be anybody's payload, so nothing of it is repeated; other texts of the parser's do.
fn said(fault: &serde_json::Error) -> String {
    let what = match fault.to_string() {
        text if text.starts_with("missing field `") => text.split_inclusive('`').take(2).collect(),
        _ if fault.is_data() => "something is not what it should be".to_owned(),
        _ => "not JSON".to_owned(),
    };
    match fault.line() {
        // Not known of what was read in two steps.
        0 => what,
        line => format!("{what}, at line {line} column {}", fault.column()),
    }
}

/// JSON with everything outside ASCII escaped: SQS takes only the characters of XML.
fn encode(body: Body<'_>) -> String {
    let json = serde_json::to_string(&body).expect("an envelope has only string keys");
    let mut ascii = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && c != '\u{7f}' {
            ascii.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}
