//! What was taken how often: every admission, transition, repair and fault, over all histories.
//!
//! A simulator that never went somewhere has not tested it. [`Coverage::missing`] names where.

mod names;

use std::collections::BTreeMap;

use waybill_service::ports::PortResult;
use waybill_service::round::RoundReport;

pub(super) use self::names::{admission, order, write};

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    counts: BTreeMap<&'static str, u64>,
}

/// Everything that must be met at least once, and what it is.
pub const EXPECTED: &[&str] = &[
    "admit acknowledge claimed",
    "admit acknowledge dead_lettered",
    "admit acknowledge final",
    "admit acknowledge held",
    "admit acknowledge superseded",
    "admit claim",
    "admit end destination_removed",
    "admit end expired",
    "admit end horizon_reached",
    "admit hold gate",
    "admit hold run_stopped",
    "admit hold paused",
    "admit hold quarantine",
    "admit leave own_claim",
    "admit leave time_short",
    "admit lift",
    "admit repeat dead_lettered",
    "admit repeat final",
    "admit repeat superseded",
    "admit settle_interrupted",
    "admit wait",
    "write claim",
    "write close",
    "write create",
    "write create, refused",
    "write end destination_removed",
    "write end expired",
    "write end horizon_reached",
    "write expire a dead letter",
    "write hold",
    "write hold, budget",
    "write hold, suspended",
    "write interrupted, ends",
    "write interrupted, retries",
    "write late over dead_lettered",
    "write late over expired",
    "write late over retryable",
    "write lift",
    "write lift, budget",
    "write lift, suspended",
    "write looked",
    "write not_sent",
    "write release",
    "write resolve",
    "write settled, ambiguous",
    "write settled, confirmed",
    "write settled, delivered",
    "write settled, exhausted",
    "write settled, expired",
    "write settled, horizon",
    "write settled, permanent",
    "write settled, retries",
    "write settled, retry_after_past_deadline",
    "write told",
    "order ending carried out",
    "order ending found nothing",
    "order ending given",
    "order hold eased",
    "order hold eased no more",
    "order hold eased to another number",
    "order hold lifted",
    "order hold lifted, which was eased",
    "order hold placed",
    "order run finished",
    "order run goes on",
    "order run halted",
    "order run resumed",
    "order run sampled",
    "order run started",
    "order run stopped",
    "order suspension entered",
    "order suspension lifted by a person",
    "order suspension lifted by a probe",
    "order suspension over, its rule is gone",
    "suspended, gone",
    "suspended, refused",
    "suspended, unreachable",
    "suspended again before its end was entered",
    "probe sent",
    "eased, and held for another destination",
    "eased, held for want of room",
    "eased, lifted when all was through",
    "eased, sent",
    "let go in its turn",
    "tick ended",
    "tick failed",
    "tick held",
    "tick lifted",
    "tick raced",
    "tick told",
    "tick woken",
    "tick working",
    "window published",
    "window refused",
    "fault call fails after",
    "fault call fails before",
    "fault call made twice",
    "fault clock jumps",
    "fault configuration changes",
    "fault console redrives",
    "fault crash after",
    "fault crash before",
    "fault crash while waiting",
    "fault crash with a slot",
    "fault deleted message comes back",
    "fault freeze",
    "fault index lags",
    "fault message comes late",
    "fault message duplicated",
    "fault message lost",
    "fault message moved natively",
    "fault producer repeats",
    "fault queue purged",
    "fault recipient mended",
    "fault recipient refuses",
    "fault run stopped at the worst moment",
    "fault store down",
    "fault stray newer",
    "fault stray undecodable",
    "fault stray unknown",
    "fault two operators",
    "fault two reconcilers",
];

/// What is never met, and why that is right.
pub const EXCEPTIONS: &[(&str, &str)] = &[
    ("admit hold budget", "the budget is asked after the admission, right before the claim"),
    ("admit hold suspended", "so is whether the destination is suspended"),
    (
        "admit end attempts_exhausted",
        "the settle of the last attempt already dead-letters, and a release raises the limit: a record \
         that is open with its attempts used up cannot be written; the row is a second lock",
    ),
    (
        "admit repeat claimed, repeat held",
        "a live claim's own copy is left and never asked to repeat; a held record owes the queue nothing: \
         admit never constructs these two",
    ),
];

impl Coverage {
    /// One more.
    pub fn count(&mut self, name: &'static str) {
        self.add(name, 1);
    }

    /// So many more.
    pub fn add(&mut self, name: &'static str, n: u64) {
        if n > 0 {
            *self.counts.entry(name).or_default() += n;
        }
    }

    /// How often.
    pub fn of(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// Calls that failed or were made twice.
    pub fn failed_calls(&self) -> u64 {
        let calls = ["fault call fails before", "fault call fails after", "fault call made twice"];
        calls.iter().map(|name| self.of(name)).sum()
    }

    /// Everything that another history met, too.
    pub fn merge(&mut self, other: &Coverage) {
        for (name, n) in &other.counts {
            self.add(name, *n);
        }
    }

    /// What was expected and never met.
    pub fn missing(&self) -> Vec<&'static str> {
        EXPECTED.iter().filter(|name| self.of(name) == 0).copied().collect()
    }

    /// What was met and stands in no list.
    pub fn unexpected(&self) -> Vec<&'static str> {
        self.counts.keys().filter(|name| !EXPECTED.contains(name)).copied().collect()
    }

    pub(super) fn round(&mut self, report: &PortResult<RoundReport>) {
        let Ok(RoundReport { windows, looked: report }) = report else { return };
        for (name, n) in [
            ("window published", windows.published),
            ("window refused", windows.refused),
            ("tick woken", report.woken),
            ("tick ended", report.ended),
            ("tick told", report.told),
            ("tick lifted", report.lifted),
            ("tick working", report.working),
            ("tick held", report.held),
            ("tick raced", report.raced),
            ("tick failed", report.failed),
        ] {
            self.add(name, n as u64);
        }
    }
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, n) in &self.counts {
            writeln!(f, "{n:>9}  {name}")?;
        }
        Ok(())
    }
}
