//! What passes from a publish to its claim where nothing was waited for. Queueing and holding are none of it.

use super::measured::{Measured, TooFew, enough, percentile};
use crate::delivery::Record;
use crate::hold::HoldReason;
use crate::time::{DurationMs, TimeMs};

/// The revision of a delivery that was created, claimed and settled, and nothing else: neither held nor
/// looked after meanwhile.
const STRAIGHT: u64 = 2;

/// When deliveries came and went, and how long each took to its claim.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stays {
    began: Vec<TimeMs>,
    ended: Vec<TimeMs>,
    straight: Vec<Straight>,
}

/// A delivery that went straight to its first attempt and succeeded.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Straight {
    queued_at: TimeMs,
    ended_at: TimeMs,
    to_the_claim: DurationMs,
}

impl Stays {
    /// Takes a delivery in. It wants a place until it ends, or is held for something else than a place.
    pub(super) fn take(&mut self, record: &Record) {
        let queued_at = record.delivery.first_queued_at;
        let held = record.hold.as_ref().filter(|held| held.reason != HoldReason::Budget);
        self.began.push(queued_at);
        self.ended.extend(record.ended_at.or(held.map(|held| held.since)));
        let is_straight =
            record.attempts_made == 1 && record.revision == STRAIGHT && record.delivery.not_before.is_none();
        if let (true, Some(ended_at), Some(span)) = (is_straight, record.ended_at, record.acknowledged_after)
        {
            let to_the_claim = ended_at.minus(span).since(queued_at);
            self.straight.push(Straight { queued_at, ended_at, to_the_claim });
        }
    }

    /// A quarter of those that found one of `places` free as they came took no longer to their claims.
    pub(super) fn hand_over(mut self, places: u32) -> Result<Measured<DurationMs>, TooFew> {
        self.began.sort_unstable();
        self.ended.sort_unstable();
        let found = self.straight.iter().filter(|it| self.others(it) < places as usize);
        let mut spans: Vec<u64> = found.map(|it| it.to_the_claim.as_ms()).collect();
        spans.sort_unstable();
        let over = enough(spans.len() as u64, "deliveries found a free place as they came in")?;
        Ok(Measured { value: percentile(&spans, 25), over })
    }

    /// How many others had come and not gone as it came; both lists are sorted.
    fn others(&self, it: &Straight) -> usize {
        let until = |moments: &[TimeMs]| moments.partition_point(|at| *at <= it.queued_at);
        let itself = usize::from(it.ended_at > it.queued_at);
        until(&self.began).saturating_sub(until(&self.ended) + itself)
    }
}
