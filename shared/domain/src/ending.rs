//! How a delivery ends, and why automation stopped.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::attempt::Attempt;
use crate::delivery::State;
use crate::fault::InvalidField;
use crate::identity::AttemptNumber;
use crate::outcome::{Applied, FailureClass};

/// Why automation ended without a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeadLetterReason {
    /// Every attempt of the budget was made.
    AttemptsExhausted,
    /// The horizon of automation passed.
    HorizonReached,
    /// The recipient asked to wait until after the deadline.
    RetryAfterPastDeadline,
    /// The recipient may have applied it, and the destination wants a person to decide.
    AmbiguousOutcome,
    /// The destination is not configured any more, or no longer serves the tenant.
    DestinationRemoved,
    /// The destination's schema refuses the payload, and nobody was there to be told. No attempt was made.
    PayloadInvalid,
    /// A failure that only a person can mend; the reason is its class.
    Permanent(FailureClass),
}

impl DeadLetterReason {
    /// The reason as it is written everywhere; a permanent failure's reason is its class.
    pub const fn as_str(self) -> &'static str {
        match self {
            DeadLetterReason::AttemptsExhausted => "attempts_exhausted",
            DeadLetterReason::HorizonReached => "horizon_reached",
            DeadLetterReason::RetryAfterPastDeadline => "retry_after_past_deadline",
            DeadLetterReason::AmbiguousOutcome => "ambiguous_outcome",
            DeadLetterReason::DestinationRemoved => "destination_removed",
            DeadLetterReason::PayloadInvalid => "payload_invalid",
            DeadLetterReason::Permanent(class) => class.as_str(),
        }
    }

    /// Every reason there is: automation's own, then those of failures.
    pub fn all() -> impl Iterator<Item = Self> {
        use DeadLetterReason as R;
        let of_automation = [
            R::AttemptsExhausted,
            R::HorizonReached,
            R::RetryAfterPastDeadline,
            R::AmbiguousOutcome,
            R::DestinationRemoved,
            R::PayloadInvalid,
        ];
        of_automation.into_iter().chain(FailureClass::ALL.iter().map(|class| R::Permanent(*class)))
    }
}

impl From<DeadLetterReason> for String {
    fn from(reason: DeadLetterReason) -> String {
        reason.as_str().to_owned()
    }
}

impl TryFrom<String> for DeadLetterReason {
    type Error = InvalidField;
    fn try_from(text: String) -> Result<Self, InvalidField> {
        Self::all()
            .find(|reason| reason.as_str() == text)
            .ok_or_else(|| InvalidField::new("reason", format!("{text:?} is not a reason"), "a known reason"))
    }
}

impl fmt::Display for DeadLetterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How automation ends without a delivery. Both are told to the DLQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The deadline passed: never to be sent again, by no path.
    Expired,
    /// A person decides.
    DeadLettered(DeadLetterReason),
}

impl Ending {
    /// The state it leads to.
    pub const fn state(self) -> State {
        match self {
            Ending::Expired => State::Expired,
            Ending::DeadLettered(_) => State::DeadLettered,
        }
    }

    /// `expired`, or the dead letter's reason.
    pub const fn reason(self) -> &'static str {
        match self {
            Ending::Expired => "expired",
            Ending::DeadLettered(reason) => reason.as_str(),
        }
    }
}

/// Whether the evidence says that no attempt was applied: each of those made left its own, and none says that
/// the recipient may have.
pub fn is_known_unapplied(attempts_made: u32, attempts: &[Attempt]) -> bool {
    let is_told = |number| attempts.iter().any(|attempt| attempt.number.get() == number);
    (1..=attempts_made).all(is_told) && attempts.iter().all(|one| one.failure.applied == Applied::No)
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// Acknowledged by the recipient.
    Delivered {
        /// The acknowledged attempt.
        attempt: AttemptNumber,
        /// The acknowledgement came after the claim was lost.
        late: bool,
        /// The recipient's answer to a status look-up under this attempt's number says that an
        /// earlier request was applied; no request of this number was sent.
        #[serde(default)]
        by_look_up: bool,
    },
    /// Not delivered.
    Ended(Ending),
    /// A person closed the dead letter that it was for this reason: nothing will be done.
    Closed(DeadLetterReason),
    /// A person resolved the dead letter that it was for this reason: its effect is known to stand.
    Resolved(DeadLetterReason),
}
