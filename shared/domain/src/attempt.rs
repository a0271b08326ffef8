//! What is known of one attempt: the report of the adapter, and the evidence that is kept.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ending::Ending;
use crate::identity::{AttemptNumber, ConfigRevision, WriteToken};
use crate::outcome::{Failure, Outcome};
use crate::time::{DurationMs, TimeMs};

/// How far an attempt came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Payload and secrets were fetched.
    Prepare,
    /// The name was looked up and its addresses judged.
    Resolve,
    /// A connection was asked for.
    Connect,
    /// TLS was negotiated.
    Tls,
    /// The request left, in whole or in part.
    Request,
    /// A status came back.
    Answer,
    /// The recipient was asked what became of an earlier attempt; no request was sent.
    LookUp,
}

impl Phase {
    /// The phase as it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Prepare => "prepare",
            Phase::Resolve => "resolve",
            Phase::Connect => "connect",
            Phase::Tls => "tls",
            Phase::Request => "request",
            Phase::Answer => "answer",
            Phase::LookUp => "look_up",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The beginning of what a recipient answered, kept because it explains the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// At most [`Excerpt::MOST`] bytes.
    #[serde(with = "base64_bytes")]
    pub bytes: Vec<u8>,
    /// How long the whole answer was, in bytes: as far as it was read or announced.
    pub full_length: u64,
    /// Whether the answer ended within what was read.
    pub complete: bool,
}

impl Excerpt {
    /// The most bytes of an answer that are kept: 2 KiB.
    pub const MOST: usize = 2048;
}

/// A `Retry-After` that came with an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryAfter {
    /// The field as received, at most 64 characters of it.
    pub received: String,
    /// What it asks for; `None` where the field says nothing that we understand.
    pub wait: Option<DurationMs>,
}

/// What the recipient adapter tells of a request that it tried to send.
#[derive(Debug, Clone, PartialEq)]
pub struct SendReport {
    /// What it came to.
    pub outcome: Outcome,
    /// How far it came.
    pub phase: Phase,
    /// The final status, where one came.
    pub status: Option<u16>,
    /// What the recipient asked for.
    pub retry_after: Option<RetryAfter>,
    /// What the recipient said.
    pub excerpt: Option<Excerpt>,
    /// One sentence for the operator: never a header, a payload or a secret.
    pub note: String,
    /// When the attempt began.
    pub started_at: TimeMs,
    /// When it was over.
    pub ended_at: TimeMs,
}

impl SendReport {
    /// Whether it tells of a status look-up, and nothing was sent.
    pub fn is_look_up(&self) -> bool {
        self.phase == Phase::LookUp
    }
}

/// What became of a claim's right to send.
#[derive(Debug, Clone, PartialEq)]
pub enum Sending {
    /// A request may have left.
    Attempted(SendReport),
    /// Nothing left, because the right to send had run out by then.
    NotSent(NotSent),
}

/// Why nothing was sent under a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotSent {
    /// Less of the lease was left than the attempt may take.
    LeaseTooShort,
    /// The deadline had passed.
    DeadlinePassed,
    /// This machine could not open a connection (too many open files, no free port): no fault of the
    /// recipient's, and no attempt.
    NoResources,
}

impl NotSent {
    /// The reason as it is logged.
    pub const fn as_str(self) -> &'static str {
        match self {
            NotSent::LeaseTooShort => "lease_too_short",
            NotSent::DeadlinePassed => "deadline_passed",
            NotSent::NoResources => "no_resources",
        }
    }

    /// How long the delivery waits before it is claimed again: a machine that has no connection to
    /// give is not asked for one at once.
    pub const fn pause(self) -> DurationMs {
        match self {
            NotSent::LeaseTooShort | NotSent::DeadlinePassed => DurationMs::ZERO,
            NotSent::NoResources => DurationMs::from_secs(5),
        }
    }
}

/// The right to send, checked again on the wall clock right before the first byte leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendWindow {
    /// Until when the claim holds.
    pub lease_until: TimeMs,
    /// When the right ends for business or for automation (deadline or horizon).
    pub limit_at: TimeMs,
    /// What one attempt may take in all.
    pub timeout: DurationMs,
    /// When the attempt began: connecting counts.
    pub started_at: TimeMs,
}

impl SendWindow {
    /// What is left for the answer if the first byte leaves at `now`, or why it must not.
    ///
    /// The rest of the attempt's time must fit into the lease, and is cut to what the deadline
    /// leaves. A clock that jumped back gives no more time than the attempt has.
    pub fn check(&self, now: TimeMs) -> Result<DurationMs, NotSent> {
        if now >= self.limit_at {
            return Err(NotSent::DeadlinePassed);
        }
        let spent = now.since(self.started_at);
        let rest = DurationMs::from_ms(self.timeout.as_ms().saturating_sub(spent.as_ms()));
        if now.plus(rest) > self.lease_until || rest == DurationMs::ZERO {
            return Err(NotSent::LeaseTooShort);
        }
        Ok(rest.min(self.limit_at.since(now)))
    }
}

/// The evidence of one attempt that did not succeed: written before the settle, never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which attempt.
    pub number: AttemptNumber,
    /// Who says so.
    pub witness: Witness,
    /// The claim under which it ran.
    pub token: WriteToken,
    /// When it began.
    pub started_at: TimeMs,
    /// When it ended, or when its claim was found lapsed.
    pub ended_at: TimeMs,
    /// How far it came, where the worker lived to tell.
    pub phase: Option<Phase>,
    /// The status, where one came.
    pub status: Option<u16>,
    /// What it came to.
    pub failure: Failure,
    /// What the recipient asked for.
    pub retry_after: Option<RetryAfter>,
    /// What follows, and why.
    pub next: Next,
    /// Under which configuration it ran.
    pub config_revision: ConfigRevision,
    /// What the recipient said.
    pub excerpt: Option<Excerpt>,
    /// One sentence for the operator.
    pub note: String,
}

/// Who testifies to an attempt. Both may, of the same attempt, and both items stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Witness {
    /// The worker that sent it.
    Worker,
    /// Whoever found its claim lapsed.
    Finder,
}

impl Witness {
    /// `worker` or `finder`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Witness::Worker => "worker",
            Witness::Finder => "finder",
        }
    }
}

/// What follows a failed attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// Another attempt.
    Retry {
        /// When.
        due_at: TimeMs,
        /// How that time came about.
        delay: Delay,
    },
    /// Automation ends.
    End(Ending),
}

/// The delay that was chosen after an attempt, and its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    /// From the settle to the next due time.
    pub chosen: DurationMs,
    /// What jitter drew.
    pub jittered: DurationMs,
    /// What jitter could have drawn at most.
    pub ceiling: DurationMs,
    /// What the recipient asked for, added below the jitter.
    pub retry_after: Option<DurationMs>,
    /// Whether the due time was moved back so that one last attempt fits before the limit.
    pub moved_before_limit: bool,
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.chosen)?;
        if let Some(asked) = self.retry_after {
            write!(f, "the recipient asked for {asked}, and ")?;
        }
        write!(f, "jitter drew {} of at most {}", self.jittered, self.ceiling)?;
        if self.moved_before_limit {
            f.write_str(", moved back so that a last attempt fits before the limit")?;
        }
        Ok(())
    }
}

/// Bytes as base64 text in serialised documents.
mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)
    }
}
