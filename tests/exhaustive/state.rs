//! What there is: a record, messages, two workers, a reconciler and an operator, and what may still go
//! wrong.

use waybill_domain::time::{DurationMs, TimeMs};

use crate::scopes::Bounds;

/// A record or an attempt that was seen before: equal if and only if the number is.
pub(crate) type Id = u32;

/// A law that was broken, in one sentence.
pub(crate) type Broken = String;

pub(crate) const T0: TimeMs = TimeMs::from_unix_ms(1_786_341_600_000);
pub(crate) const RUN: &str = "rdr_1";
/// How long a received message is hidden: longer than a lease.
pub(crate) const VISIBILITY: DurationMs = DurationMs::from_secs(30);

/// Everything that can differ between two moments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) now: TimeMs,
    pub(crate) record: Id,
    pub(crate) evidence: Vec<Id>,
    pub(crate) messages: Vec<Message>,
    /// Whether the DLQ has a letter of it.
    pub(crate) is_buried: bool,
    /// Whether the recipient has applied a request.
    pub(crate) is_applied: bool,
    /// Attempts whose request left, as bits.
    pub(crate) sent: u32,
    pub(crate) is_held: bool,
    pub(crate) is_stopped: bool,
    pub(crate) workers: [Worker; 2],
    pub(crate) reconciler: Helper,
    pub(crate) operator: Helper,
    pub(crate) left: Bounds,
    pub(crate) ghost: Ghost,
}

/// What the laws remember and nobody in the model sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ghost {
    /// A write says that somebody is about to send what carries it; the reconciler helps if not.
    pub(crate) is_excused: bool,
    /// The record works for a message that was deleted on an older view than the record's.
    pub(crate) orphaned_by: Option<u8>,
    /// Since which revision the record works for the copy that it works for now.
    pub(crate) works_since: u64,
}

/// A message, deleted or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    pub(crate) id: u8,
    pub(crate) attempt: u32,
    pub(crate) due_at: TimeMs,
    pub(crate) visible_at: TimeMs,
    /// It is delivered once more, although it is hidden or deleted.
    pub(crate) is_doubled: bool,
    /// It was received before. Kept for a rule that is broken on purpose; nothing else looks at it.
    pub(crate) was_received: bool,
    pub(crate) place: Lies,
}

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Lies {
    Here,
    Deleted,
    Lost,
}

/// What a worker has in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Errand {
    pub(crate) message: u8,
    pub(crate) is_first: bool,
    pub(crate) sees_hold: bool,
    pub(crate) sees_stop: bool,
    /// The revision that it saw or wrote last.
    pub(crate) view: u64,
}

/// What the recipient does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reaction {
    Delivered,
    Refused,
    Silent,
}

/// Where a worker stands: what its next step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Worker {
    Idle,
    Loads(Errand),
    /// A conclusion without a request, or a lift after which it loads again.
    Writes {
        errand: Errand,
        base: Id,
        after: Id,
        is_lift: bool,
    },
    Testifies {
        errand: Errand,
        base: Id,
    },
    Claims {
        errand: Errand,
        base: Id,
        after: Id,
    },
    Sends {
        errand: Errand,
        claimed: Id,
    },
    Waits {
        errand: Errand,
        claimed: Id,
        reaction: Reaction,
        over_at: TimeMs,
    },
    WritesEvidence {
        errand: Errand,
        claimed: Id,
        reaction: Reaction,
        ended_at: TimeMs,
    },
    Settles {
        errand: Errand,
        claimed: Id,
        current: Id,
        reaction: Option<Reaction>,
        ended_at: TimeMs,
    },
    /// It was acknowledged, and its claim is lost.
    LoadsLate {
        errand: Errand,
        claimed: Id,
        ended_at: TimeMs,
    },
    WritesLate {
        errand: Errand,
        base: Id,
        after: Id,
    },
    HandsOff {
        errand: Errand,
        record: Id,
    },
    Tells {
        errand: Errand,
        of: Id,
        current: Id,
    },
    Deletes(Errand),
}

impl Worker {
    /// What it has in hand.
    pub(crate) fn errand(&mut self) -> Option<&mut Errand> {
        match self {
            Worker::Idle => None,
            Worker::Loads(errand)
            | Worker::Writes { errand, .. }
            | Worker::Testifies { errand, .. }
            | Worker::Claims { errand, .. }
            | Worker::Sends { errand, .. }
            | Worker::Waits { errand, .. }
            | Worker::WritesEvidence { errand, .. }
            | Worker::Settles { errand, .. }
            | Worker::LoadsLate { errand, .. }
            | Worker::WritesLate { errand, .. }
            | Worker::HandsOff { errand, .. }
            | Worker::Tells { errand, .. }
            | Worker::Deletes(errand) => Some(errand),
        }
    }
}

/// Where the reconciler or the operator stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Helper {
    Idle,
    Writes { base: Id, after: Id, then: Then },
    HandsOff { record: Id },
    Wakes { record: Id },
    Tells { of: Id, current: Id },
}

/// What a helper does once its write has landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Then {
    Nothing,
    HandOff,
    Wake,
}
