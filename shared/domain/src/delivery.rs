//! The ledger record of one delivery: what should happen, what did, and why automation stopped.
//!
//! A [`Record`] can be read by everybody and changed by nobody: the legal transitions are the
//! constructors of [`crate::transition`], and each yields a [`Change`], a compare-and-set on
//! (delivery, expected state, expected revision). A record never grows with its attempts, and
//! holds no credentials and no headers.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::attempt::Excerpt;
use crate::ending::{DeadLetterReason, Disposition, Ending};
use crate::fault::InvalidField;
use crate::hold::Held;
use crate::identity::{
    AttemptNumber, ConfigRevision, DeliveryId, DeliveryKey, DestinationName, EventId, EventType, MessageId,
    PolicyName, Scope, TenantId, WriteToken,
};
use crate::newer::Newer;
use crate::order::OrderId;
use crate::outcome::Failure;
use crate::time::{DurationMs, TimeMs};
use crate::trace::TraceContext;

/// What was asked for. Never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The waybill number.
    pub id: DeliveryId,
    /// On whose behalf.
    pub tenant: TenantId,
    /// Which event.
    pub event_id: EventId,
    /// What happened.
    pub event_type: EventType,
    /// To whom.
    pub destination: DestinationName,
    /// Whose matter within the tenant.
    pub scope: Option<Scope>,
    /// The frozen bytes, described.
    pub payload: PayloadFacts,
    /// When it was first recorded.
    pub first_queued_at: TimeMs,
    /// Nothing is sent before this.
    pub not_before: Option<TimeMs>,
    /// Nothing is sent from this on. Business; never recomputed.
    pub deadline: Option<TimeMs>,
    /// Where it belongs in its producer's distributed trace; `None` where that told none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// Whose retry rules count for it, where they are not its destination's: its schedule said so. Older
    /// records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
    /// What a newer version asked for beside all this.
    #[serde(flatten)]
    pub newer: Newer,
}

impl Delivery {
    /// Its trace, as 32 hexadecimal digits.
    pub fn trace_id(&self) -> Option<String> {
        self.trace.as_ref().map(|trace| trace.parent.trace_id())
    }

    /// Where its items live.
    pub fn key(&self) -> DeliveryKey {
        DeliveryKey { tenant: self.tenant.clone(), delivery_id: self.id.clone() }
    }
}

/// What is known of the payload without reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadFacts {
    /// SHA-256 of the bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// Length in bytes.
    pub length: u64,
    /// Sent as `content-type`.
    pub content_type: String,
    /// The version that the producer gave its payload.
    pub version: Option<u32>,
}

/// Where a delivery stands. `Succeeded` and `Expired` are final but for a late acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Recorded; no attempt has ended yet.
    Pending,
    /// An attempt failed, or a dead letter was released; another attempt will follow.
    Retryable,
    /// The recipient acknowledged it.
    Succeeded,
    /// Automation ended; a person decides.
    DeadLettered,
    /// The deadline passed before it was delivered.
    Expired,
}

impl State {
    /// Every state, in order.
    pub const ALL: [State; 5] =
        [State::Pending, State::Retryable, State::Succeeded, State::DeadLettered, State::Expired];

    /// The state as it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Retryable => "retryable",
            State::Succeeded => "succeeded",
            State::DeadLettered => "dead_lettered",
            State::Expired => "expired",
        }
    }

    /// Whether automation still has work to do: `pending` or `retryable`.
    pub const fn is_open(self) -> bool {
        matches!(self, State::Pending | State::Retryable)
    }

    /// Reads a state's name.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidField> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            let rule = Self::ALL.map(State::as_str).join(", ");
            InvalidField::new(field, format!("{text:?} is not a state"), rule)
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The last failure of a delivery, in short; the attempt items hold the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastFailure {
    /// Of which attempt.
    pub attempt: AttemptNumber,
    /// When.
    pub at: TimeMs,
    /// What it came to.
    pub failure: Failure,
    /// The status, where one came.
    pub status: Option<u16>,
    /// One sentence for the operator.
    pub note: String,
    /// The fingerprint of its destination's configuration then; `None` where that was removed.
    #[serde(default)]
    pub destination: Option<String>,
}

/// A lease on one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The attempt that it is for.
    pub attempt: AttemptNumber,
    /// Recognises the claim's own writes.
    pub token: WriteToken,
    /// The queue copy that the worker works for.
    pub message_id: MessageId,
    /// Since when.
    pub claimed_at: TimeMs,
    /// Until when nobody else may send. The attempt's timeout and [`Claim::MARGIN`].
    pub lease_until: TimeMs,
    /// Under which configuration.
    pub config_revision: ConfigRevision,
}

impl Claim {
    /// What a lease is longer than the attempt that it covers: the clock skew that is tolerated
    /// (2 s) and the time for a settle.
    pub const MARGIN: DurationMs = DurationMs::from_secs(5);

    /// Whether the lease still holds.
    pub fn is_live(&self, now: TimeMs) -> bool {
        now < self.lease_until
    }
}

/// The record's fields. To be read through a [`Record`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordData {
    /// What was asked for.
    pub delivery: Delivery,
    /// The configuration in force at the last write that depended on it.
    pub config_revision: ConfigRevision,
    /// Counts the writes; every change compares it.
    pub revision: u64,
    /// Where it stands.
    pub state: State,
    /// When the next attempt may start. Kept while held.
    pub due_at: TimeMs,
    /// How many attempts have ended; never falls.
    pub attempts_made: u32,
    /// How many had ended when the present budget was granted: 0, or as many as at the last release.
    /// Backoff counts from here.
    pub attempts_before: u32,
    /// Up to which number attempts may be made; a release raises it.
    pub attempt_limit: u32,
    /// When automation ends; a release sets it anew.
    pub horizon_at: TimeMs,
    /// How often it was redriven.
    pub redrives: u32,
    /// The run that released it last.
    pub redrive_run: Option<String>,
    /// Of the attempt that failed last.
    pub last_failure: Option<LastFailure>,
    /// How it ended, where it ended.
    pub disposition: Option<Disposition>,
    /// When it ended.
    pub ended_at: Option<TimeMs>,
    /// How long the attempt that the recipient acknowledged kept its place, from its claim to its settle; `None`
    /// where none did so in time. Older records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_after: Option<DurationMs>,
    /// The order by which a person ended it, where one did; the audit says who and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<OrderId>,
    /// What the recipient answered, where the destination asks to keep it.
    pub result: Option<Excerpt>,
    /// The lease on the attempt that is being made.
    pub claim: Option<Claim>,
    /// Why it must not go now.
    pub hold: Option<Held>,
    /// The queue copy that the last consumer write worked for: that copy owes the hand-off.
    pub copy: Option<MessageId>,
    /// The token of the write that settled last.
    pub settled_token: Option<WriteToken>,
    /// Whether the DLQ was told of the ending.
    pub dlq_told: bool,
    /// When the reconciler looks at it; `None` where there is nothing to look after.
    pub look_at: Option<TimeMs>,
    /// How often it was looked at since it last made progress; patience doubles with it.
    pub looks: u32,
    /// What a newer version keeps beside all this.
    #[serde(flatten)]
    pub newer: Newer,
}

/// One delivery's record. Read-only; see [`crate::transition`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Record(RecordData);

impl Deref for Record {
    type Target = RecordData;
    fn deref(&self) -> &RecordData {
        &self.0
    }
}

/// When a delivery's right to be sent ends, and as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// From this time on nothing is sent.
    pub at: TimeMs,
    /// How it ends then.
    pub ending: Ending,
}

impl Record {
    pub(crate) fn from_data(data: RecordData) -> Self {
        Self(data)
    }

    /// The next attempt's number.
    pub fn next_attempt(&self) -> AttemptNumber {
        AttemptNumber::after(self.attempts_made)
    }

    /// The nearer of deadline and horizon. A deadline that has passed is what counts, whatever else has.
    pub fn limit(&self, now: TimeMs) -> Limit {
        let horizon =
            Limit { at: self.horizon_at, ending: Ending::DeadLettered(DeadLetterReason::HorizonReached) };
        match self.delivery.deadline {
            Some(at) if at <= self.horizon_at || at <= now => Limit { at, ending: Ending::Expired },
            _ => horizon,
        }
    }

    /// The dead letter's reason, where it is one.
    pub fn dead_letter_reason(&self) -> Option<DeadLetterReason> {
        match self.disposition {
            Some(Disposition::Ended(Ending::DeadLettered(reason))) => Some(reason),
            _ => None,
        }
    }
}

/// What a compare-and-set expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// The expected state.
    pub state: State,
    /// The expected revision.
    pub revision: u64,
}

/// A legal change of one record, to be applied only if the stored record has the expected version.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    expected: Version,
    after: Record,
}

impl Change {
    pub(crate) fn new(before: &Record, mut after: RecordData) -> Self {
        let expected = Version { state: before.state, revision: before.revision };
        after.revision = before.revision + 1;
        Self { expected, after: Record::from_data(after) }
    }

    /// What must be stored for the change to be made.
    pub fn expected(&self) -> Version {
        self.expected
    }

    /// The record as it will be.
    pub fn after(&self) -> &Record {
        &self.after
    }

    /// The record as it is once the change was made.
    pub fn into_after(self) -> Record {
        self.after
    }
}
