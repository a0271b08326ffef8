//! What a ledger shows of one destination, as inputs of a [`Load`](super::Load). Of too little nothing is
//! concluded: less than [`FEWEST`] is an error that says so.

use thiserror::Error;

use super::hand_over::Stays;
use crate::attempt::{Attempt, Witness};
use crate::delivery::{Limit, Record, State};
use crate::time::{DurationMs, TimeMs};

/// The fewest deliveries of which anything is measured.
pub const FEWEST: u64 = 20;

/// There is too little to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{seen} {of}, and it takes {FEWEST} to measure")]
pub struct TooFew {
    /// How many there are.
    pub seen: u64,
    /// Of what.
    pub of: &'static str,
}

/// A value, and over how many deliveries or requests it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured<T> {
    /// The value.
    pub value: T,
    /// Over how many; at least [`FEWEST`].
    pub over: u64,
}

/// How long a request keeps its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceTime {
    /// On average over all requests, acknowledged or not: this decides how many leave per second.
    pub mean: DurationMs,
    /// Half of the acknowledged ones took no longer.
    pub p50: DurationMs,
    /// 95 of 100 acknowledged ones took no longer.
    pub p95: DurationMs,
    /// From the publish to the claim, where nothing was waited for: a quarter of those that found a free place
    /// took no longer. About so long a place stands empty until the next delivery has it.
    pub hand_over: Result<Measured<DurationMs>, TooFew>,
}

impl ServiceTime {
    /// How long a delivery keeps a place from the next one; without the hand-over where that was not measured.
    pub fn place(&self) -> DurationMs {
        self.hand_over.map_or(self.mean, |hand_over| self.mean.plus(hand_over.value))
    }
}

/// What was seen of a destination's deliveries.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    now: TimeMs,
    arrived: u64,
    oldest: TimeMs,
    succeeded: u64,
    attempts: u64,
    /// When each acknowledged request was settled, and how long it had kept its place.
    acknowledged: Vec<(TimeMs, DurationMs)>,
    stays: Stays,
    failed: Vec<DurationMs>,
    open: u64,
    nearest: Option<Limit>,
}

impl Tally {
    /// Of nothing yet.
    pub fn new(now: TimeMs) -> Self {
        Self {
            now,
            arrived: 0,
            oldest: now,
            succeeded: 0,
            attempts: 0,
            acknowledged: Vec::new(),
            stays: Stays::default(),
            failed: Vec::new(),
            open: 0,
            nearest: None,
        }
    }

    /// Counts a delivery that came in within the time that is looked at.
    pub fn arrival(&mut self, record: &Record) {
        self.arrived += 1;
        self.oldest = self.oldest.min(record.delivery.first_queued_at);
        if record.state == State::Succeeded {
            self.succeeded += 1;
            self.attempts += u64::from(record.attempts_made.max(1));
            if let (Some(ended_at), Some(span)) = (record.ended_at, record.acknowledged_after) {
                self.acknowledged.push((ended_at, span));
            }
        }
        self.stays.take(record);
        self.wait(record);
    }

    /// Counts a delivery that waits and came in before the time that is looked at; nothing where it does not
    /// wait.
    pub fn waiting(&mut self, record: &Record) {
        if record.state.is_open() {
            self.stays.take(record);
            self.wait(record);
        }
    }

    fn wait(&mut self, record: &Record) {
        if !record.state.is_open() {
            return;
        }
        self.open += 1;
        let limit = record.limit(self.now);
        if limit.at > self.now {
            self.nearest = self.nearest.into_iter().chain([limit]).min_by_key(|limit| limit.at);
        }
    }

    /// Takes in how long failed requests of deliveries that succeeded had kept their places. What only its
    /// finder tells of is left out: how long that took, nobody knows.
    pub fn evidence(&mut self, attempts: &[Attempt]) {
        let told = attempts.iter().filter(|attempt| attempt.witness == Witness::Worker);
        self.failed.extend(told.map(|attempt| attempt.ended_at.since(attempt.started_at)));
    }

    /// Deliveries per second: from the oldest that was looked at until now.
    pub fn arrivals_per_s(&self) -> Result<Measured<f64>, TooFew> {
        let over = enough(self.arrived, "deliveries came in")?;
        let span = self.now.since(self.oldest).max(DurationMs::from_secs(1));
        Ok(Measured { value: over as f64 * 1000.0 / span.as_ms() as f64, over })
    }

    /// How long a request keeps its place, of so many places: from the claim to the settle, and until the next
    /// has it.
    pub fn service_time(&self, places: u32) -> Result<Measured<ServiceTime>, TooFew> {
        let over = enough(self.acknowledged.len() as u64, "acknowledged requests with their time")?;
        let mut spans: Vec<u64> = self.acknowledged.iter().map(|(_, span)| span.as_ms()).collect();
        spans.sort_unstable();
        let acknowledged = average(spans.iter().copied());
        let repeats = (self.attempts - self.succeeded) as f64 / self.succeeded as f64;
        let failed = match self.failed.is_empty() {
            true => acknowledged,
            false => average(self.failed.iter().map(|span| span.as_ms())),
        };
        let mean = (acknowledged + repeats * failed) / (1.0 + repeats);
        // 0 is what was too short to be measured.
        let mean = DurationMs::from_ms((mean.round() as u64).max(1));
        let value = ServiceTime {
            mean,
            p50: percentile(&spans, 50),
            p95: percentile(&spans, 95),
            hand_over: self.stays.clone().hand_over(places),
        };
        Ok(Measured { value, over })
    }

    /// Requests beyond one for each delivery that succeeded, in percent.
    pub fn duplicates_percent(&self) -> Result<Measured<f64>, TooFew> {
        let over = enough(self.succeeded, "deliveries succeeded")?;
        Ok(Measured { value: (self.attempts - over) as f64 * 100.0 / over as f64, over })
    }

    /// The most acknowledged requests that kept a place at the same time.
    pub fn most_at_once(&self) -> u64 {
        let begun = self.acknowledged.iter().map(|(end, span)| (end.minus(*span), 1i64));
        let mut changes: Vec<(TimeMs, i64)> =
            begun.chain(self.acknowledged.iter().map(|(end, _)| (*end, -1))).collect();
        // At the same moment a place is given back first.
        changes.sort_unstable();
        let (mut at_once, mut most) = (0i64, 0i64);
        for (_, change) in changes {
            at_once += change;
            most = most.max(at_once);
        }
        most.unsigned_abs()
    }

    /// How many deliveries wait.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// The nearest deadline (or horizon, where that comes first) of what waits that has not come yet.
    pub fn nearest_limit(&self) -> Option<Limit> {
        self.nearest
    }
}

pub(super) fn enough(seen: u64, of: &'static str) -> Result<u64, TooFew> {
    if seen < FEWEST { Err(TooFew { seen, of }) } else { Ok(seen) }
}

/// The nearest rank; 0 of none.
pub(super) fn percentile(sorted_ms: &[u64], percent: usize) -> DurationMs {
    let rank = (sorted_ms.len() * percent).div_ceil(100);
    DurationMs::from_ms(sorted_ms.get(rank.saturating_sub(1)).copied().unwrap_or(0))
}

fn average(spans_ms: impl ExactSizeIterator<Item = u64>) -> f64 {
    let count = spans_ms.len().max(1) as f64;
    spans_ms.sum::<u64>() as f64 / count
}
