//! How many may start in a span of time: a rate, and how far its starts are paced.

use serde::{Deserialize, Serialize};

use super::MOST_AHEAD;
use crate::fault::InvalidField;
use crate::time::{DurationMs, TimeMs};

/// The rule that [`Rate::parse`] holds, for error texts.
pub const RATE_RULE: &str = "a whole number from 1 to 100000, / and one of s, m, h, such as \"20/s\"";

/// So many starts in a span, on average. The bucket holds one span's worth: after a pause so many may
/// start at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    number: u32,
    per: DurationMs,
}

impl Rate {
    /// Reads `20/s`, `600/m` or `5/h`.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidField> {
        let refuse = || InvalidField::new(field, format!("{:.40?} is not a rate", text), RATE_RULE);
        let (number, unit) = text.split_once('/').ok_or_else(refuse)?;
        let per = match unit {
            "s" => DurationMs::from_secs(1),
            "m" => DurationMs::from_secs(60),
            "h" => DurationMs::from_secs(3600),
            _ => return Err(refuse()),
        };
        let is_number = number.bytes().all(|digit| digit.is_ascii_digit());
        let number = number.parse().ok().filter(|n| is_number && (1..=100_000).contains(n));
        Ok(Self { number: number.ok_or_else(refuse)?, per })
    }

    /// How many starts a second, on average.
    pub fn per_s(self) -> f64 {
        f64::from(self.number) * 1000.0 / self.per.as_ms() as f64
    }

    pub(super) fn half(self) -> Self {
        Self { number: (self.number / 2).max(1), ..self }
    }

    fn per_us(self) -> i64 {
        micros(self.per)
    }

    pub(super) fn spacing_us(self) -> i64 {
        self.per_us() / i64::from(self.number)
    }
}

/// When a bucket would be full again, in microseconds since the Unix epoch: all there is to know of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Pace(i64);

impl Pace {
    /// When the next one may start, at `now` or later.
    pub(super) fn earliest(self, rate: Rate, now: TimeMs) -> TimeMs {
        let from_us = self.full_at(rate, now) - (rate.per_us() - rate.spacing_us());
        now.max(TimeMs::from_unix_ms(from_us.div_euclid(1000) + i64::from(from_us.rem_euclid(1000) > 0)))
    }

    /// One starts at `at`.
    pub(super) fn charge(&mut self, rate: Rate, at: TimeMs, now: TimeMs) {
        self.0 = self.full_at(rate, now).max(micros_of(at)) + rate.spacing_us();
    }

    /// What a clock promised that was wrong by more than we tolerate is not believed.
    fn full_at(self, rate: Rate, now: TimeMs) -> i64 {
        let honest = micros_of(now) + rate.per_us() + micros(MOST_AHEAD) + micros(TOLERATED);
        if self.0 > honest { 0 } else { self.0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

/// How much further ahead a clock may have been.
const TOLERATED: DurationMs = DurationMs::from_secs(60);

fn micros_of(at: TimeMs) -> i64 {
    at.as_unix_ms().saturating_mul(1000)
}

/// Of a span of this module, none of which is longer than an hour.
fn micros(span: DurationMs) -> i64 {
    span.as_ms().saturating_mul(1000).cast_signed()
}
