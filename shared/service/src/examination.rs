//! What `waybill doctor` finds: one line for each thing that was looked at, and what is to be mended.
//! Looking is the edge's matter; what is in order is judged here.

use waybill_domain::time::{DurationMs, TimeMs};

/// What a thing is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// In order.
    Fine,
    /// Could not be looked at, or need not be in order yet.
    Unknown,
    /// Something is to be mended.
    Mend,
}

impl Verdict {
    /// The verdict as it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Fine => "fine",
            Verdict::Unknown => "unknown",
            Verdict::Mend => "mend",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What: `configuration`, `queue`, `destination books`.
    pub what: String,
    /// What it is like.
    pub verdict: Verdict,
    /// One sentence: what was seen, and, where it is to be mended, how.
    pub says: String,
}

impl Found {
    /// It is in order.
    pub fn fine(what: impl Into<String>, says: impl Into<String>) -> Self {
        Self { what: what.into(), verdict: Verdict::Fine, says: says.into() }
    }

    /// It could not be looked at.
    pub fn unknown(what: impl Into<String>, says: impl Into<String>) -> Self {
        Self { what: what.into(), verdict: Verdict::Unknown, says: says.into() }
    }

    /// It is to be mended.
    pub fn mend(what: impl Into<String>, says: impl Into<String>) -> Self {
        Self { what: what.into(), verdict: Verdict::Mend, says: says.into() }
    }
}

/// How a pair of queues is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// How long a received message is hidden.
    pub visibility: DurationMs,
    /// How long the queue keeps a message.
    pub kept: DurationMs,
    /// How long the dead-letter queue keeps one.
    pub dead_kept: DurationMs,
    /// The queue's redrive policy: where it moves to, and after how many receives.
    pub redrive: Option<(String, u32)>,
    /// The dead-letter queue, by the name that a redrive policy uses.
    pub dead_letters: String,
}

/// Whether the queues are set as the consumer needs them, which runs for `consumer_runs`.
pub fn of_queues(set: &QueueSettings, consumer_runs: DurationMs) -> Vec<Found> {
    const QUEUE: &str = "queue";
    let mut found = Vec::new();
    let least = consumer_runs.times(6);
    if set.visibility < least {
        found.push(Found::mend(
            QUEUE,
            format!(
                "hides a received message for {}: a message comes back while its batch still runs; set its \
                 visibility timeout to {least} at least, 6 times the consumer's timeout",
                set.visibility
            ),
        ));
    }
    match &set.redrive {
        Some((to, _)) if *to != set.dead_letters => found.push(Found::mend(
            QUEUE,
            format!("its redrive policy names {to}: it must name the dead-letter queue {}", set.dead_letters),
        )),
        Some((_, receives)) if *receives < 2 => found.push(Found::mend(
            QUEUE,
            "its redrive policy moves a message that was received once: one throttled poll dead-letters it; \
             set maxReceiveCount to 6",
        )),
        Some(_) => {}
        None => found.push(Found::mend(
            QUEUE,
            "has no redrive policy: a message whose function cannot even start comes again for ever; name the \
             dead-letter queue, with a maxReceiveCount of 6",
        )),
    }
    if set.dead_kept <= set.kept {
        found.push(Found::mend(
            "dead-letter queue",
            format!(
                "keeps a message for {} and the queue for {}: what SQS moves keeps its age, and would be gone \
                 when it arrives; keep dead letters for 14 days",
                set.dead_kept, set.kept
            ),
        ));
    }
    if found.is_empty() {
        let says = format!(
            "hides a message for {}, keeps it for {}, and moves it to its DLQ",
            set.visibility, set.kept
        );
        found.push(Found::fine(QUEUE, says));
    }
    found
}

/// How far clocks may be apart: what the margin of a lease is made for.
pub const CLOCK_SKEW: DurationMs = DurationMs::from_secs(2);

/// Whether this machine's clock agrees with another's, which was told in whole seconds.
pub fn of_clock(ours: TimeMs, theirs: TimeMs, whose: &str) -> Found {
    let apart = ours.since(theirs).max(theirs.since(ours));
    let direction = if ours > theirs { "ahead of" } else { "behind" };
    match apart <= CLOCK_SKEW.plus(DurationMs::from_secs(1)) {
        true => Found::fine("clock", format!("agrees with {whose}")),
        false => Found::mend(
            "clock",
            format!(
                "is {apart} {direction} {whose}: leases and deadlines are wall-clock times; synchronise it"
            ),
        ),
    }
}
