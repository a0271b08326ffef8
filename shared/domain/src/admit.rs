//! Whether a wake-up may become an attempt: the table of the design, first match first.

use crate::delivery::{Record, State};
use crate::destination::Destination;
use crate::ending::{DeadLetterReason, Ending};
use crate::envelope::WakeUp;
use crate::hold::{HoldReason, HoldRule};
use crate::identity::{AttemptNumber, MessageId};
use crate::repair::past_limit;
use crate::time::{DurationMs, TimeMs};

/// What is done with a wake-up.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// This copy owes nothing: delete it.
    Acknowledge(Suppressed),
    /// This copy is the one that the record's last write worked for: it repeats the hand-off of
    /// the record's state, and is then deleted.
    RepeatHandOff(Suppressed),
    /// Leave the message: it comes again by itself.
    Leave(Left),
    /// A claim lapsed: settle its attempt as its evidence says or as interrupted, and hand off.
    SettleInterrupted,
    /// End the delivery, tell the DLQ, delete the message.
    End(Ending),
    /// Hold the delivery, delete the message.
    Hold(HoldReason),
    /// No hold matches any more: back into the open index, then admit again.
    Lift,
    /// Its time has not come: hand off (a fresh delayed wake-up, or park), delete the message.
    Wait,
    /// Claim the attempt and send.
    Claim {
        /// Which attempt.
        attempt: AttemptNumber,
        /// What it may take, cut to what the deadline leaves.
        timeout: DurationMs,
    },
}

/// Why a wake-up leads to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Suppressed {
    /// The delivery has ended for good.
    Final,
    /// It is a dead letter that nobody released.
    DeadLettered,
    /// Another copy's claim is alive.
    Claimed,
    /// It is for another attempt or another due time than the record's.
    Superseded,
    /// It is held already.
    Held,
}

impl Suppressed {
    /// The reason as it is logged.
    pub const fn as_str(self) -> &'static str {
        match self {
            Suppressed::Final => "final",
            Suppressed::DeadLettered => "dead_lettered",
            Suppressed::Claimed => "claim lost",
            Suppressed::Superseded => "superseded",
            Suppressed::Held => "held",
        }
    }
}

/// Why a message stays in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Left {
    /// It is the live claim's own copy: its worker may be at work or dead; it stays hidden until
    /// the claim ends.
    OwnClaim {
        /// When the claim ends.
        until: TimeMs,
    },
    /// Less function time is left than one attempt needs.
    TimeShort,
}

impl Left {
    /// The reason as it is logged.
    pub const fn as_str(self) -> &'static str {
        match self {
            Left::OwnClaim { .. } => "own_claim",
            Left::TimeShort => "time_short",
        }
    }

    /// Until when the message may as well stay hidden, where that is known.
    pub const fn hidden_until(self) -> Option<TimeMs> {
        match self {
            Left::OwnClaim { until } => Some(until),
            Left::TimeShort => None,
        }
    }
}

/// What the settle, the hand-off and the acknowledgement of one attempt may take.
pub const SETTLE_MARGIN: DurationMs = DurationMs::from_secs(1);

/// What a worker that ends at a fixed time keeps of it, to answer for everything it worked on.
pub const ANSWER_MARGIN: DurationMs = DurationMs::from_ms(500);

/// What may pass from such a worker's beginning to an admission: reading the configuration and the
/// record.
pub const START_MARGIN: DurationMs = DurationMs::from_ms(1500);

/// The longest timeout of a destination that a worker which runs for `runs` has the time for. A
/// longer one would be left as [`Left::TimeShort`] by every worker, for ever.
pub const fn longest_timeout(runs: DurationMs) -> DurationMs {
    let margins = START_MARGIN.as_ms() + SETTLE_MARGIN.as_ms() + ANSWER_MARGIN.as_ms();
    DurationMs::from_ms(runs.as_ms().saturating_sub(margins))
}

/// What the world looks like to an admission.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The record's destination, if it is still configured and serves the record's tenant.
    pub destination: Option<&'a Destination>,
    /// The holds in force.
    pub holds: &'a [HoldRule],
    /// How long this worker still runs.
    pub time_left: DurationMs,
    /// The wall clock.
    pub now: TimeMs,
}

/// Decides what is done with the copy `message_id` of `wakeup`, given what the ledger says.
pub fn admit(record: &Record, wakeup: &WakeUp, message_id: &MessageId, scene: Scene<'_>) -> Admission {
    let now = scene.now;
    let is_its_copy = record.copy.as_ref() == Some(message_id);
    let suppress = |why| {
        if is_its_copy { Admission::RepeatHandOff(why) } else { Admission::Acknowledge(why) }
    };

    match record.state {
        State::Succeeded | State::Expired => return suppress(Suppressed::Final),
        State::DeadLettered => return suppress(Suppressed::DeadLettered),
        State::Pending | State::Retryable => {}
    }
    if let Some(claim) = &record.claim {
        return match claim.is_live(now) {
            true if claim.message_id == *message_id => {
                Admission::Leave(Left::OwnClaim { until: claim.lease_until })
            }
            true => Admission::Acknowledge(Suppressed::Claimed),
            false => Admission::SettleInterrupted,
        };
    }
    let minimum_window = scene.destination.map_or(DurationMs::ZERO, |d| d.policy.minimum_window);
    if let Some(ending) = past_limit(record, minimum_window, now) {
        return Admission::End(ending);
    }
    if !wakeup.is_for(record) {
        return suppress(Suppressed::Superseded);
    }
    let Some(destination) = scene.destination else {
        return Admission::End(Ending::DeadLettered(DeadLetterReason::DestinationRemoved));
    };
    match (crate::hold::matching(scene.holds, record), &record.hold) {
        (Some(reason), Some(held)) if held.reason == reason => {
            return Admission::Acknowledge(Suppressed::Held);
        }
        (Some(reason), _) => return Admission::Hold(reason),
        // Whoever frees a slot, or lifts the suspension, releases it, earliest deadline first: a stray copy
        // jumps no queue.
        (None, Some(held)) if matches!(held.reason, HoldReason::Budget | HoldReason::Suspended) => {
            return Admission::Acknowledge(Suppressed::Held);
        }
        (None, Some(_)) => return Admission::Lift,
        (None, None) => {}
    }
    if record.due_at > now {
        return Admission::Wait;
    }
    if record.attempts_made >= record.attempt_limit {
        return Admission::End(Ending::DeadLettered(DeadLetterReason::AttemptsExhausted));
    }
    let timeout = destination.timeout.min(record.limit(now).at.since(now));
    if scene.time_left < timeout.plus(SETTLE_MARGIN) {
        return Admission::Leave(Left::TimeShort);
    }
    Admission::Claim { attempt: record.next_attempt(), timeout }
}
