//! Wall-clock times and spans in whole milliseconds, and how they are written and read.
//!
//! Leases and deadlines are wall-clock times: the monotonic clock of a frozen function stops.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fault::InvalidField;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z. Printed as RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimeMs(i64);

/// A span of time in milliseconds, never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationMs(u64);

/// The rule that [`TimeMs::parse`] holds, for error texts.
pub const TIME_RULE: &str = "an RFC 3339 time with an offset, such as 2026-08-09T02:30:00Z";

/// The rule that [`DurationMs::parse`] holds, for error texts.
pub const DURATION_RULE: &str = "a whole number and one of ms, s, m, h, d, such as \"15s\"";

impl TimeMs {
    /// From milliseconds since the Unix epoch.
    pub const fn from_unix_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_unix_ms(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub const fn as_unix_s(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Reads RFC 3339. An offset is required: a local time without one names no point in time.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidField> {
        if let Ok(at) = text.parse::<jiff::Timestamp>() {
            return Ok(Self(at.as_millisecond()));
        }
        let fault = match text.parse::<jiff::civil::DateTime>() {
            Ok(_) => "has no offset from UTC".to_owned(),
            Err(_) => format!("{:?} is not a time", excerpt(text)),
        };
        Err(InvalidField::new(field, fault, TIME_RULE))
    }

    /// This time moved later, held at the end of what can be written.
    pub const fn plus(self, span: DurationMs) -> Self {
        Self(self.0.saturating_add_unsigned(span.0))
    }

    /// This time moved earlier.
    pub const fn minus(self, span: DurationMs) -> Self {
        Self(self.0.saturating_sub_unsigned(span.0))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: TimeMs) -> DurationMs {
        DurationMs(self.0.saturating_sub(earlier.0).max(0).unsigned_abs())
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

impl fmt::Display for TimeMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl DurationMs {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// From milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// From seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Milliseconds.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// Whole seconds, rounded up: a queue delay is never early.
    pub const fn whole_secs_up(self) -> u64 {
        self.0.div_ceil(1000)
    }

    /// Both spans one after the other.
    pub const fn plus(self, other: DurationMs) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// This span `n` times, held at the largest that can be written.
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// The same span for the standard library's timers.
    pub const fn as_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }

    /// Reads `250ms`, `15s`, `15m`, `24h` or `7d`: a whole number and one unit.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidField> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let unit_ms: u64 = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => {
                return Err(InvalidField::new(
                    field,
                    format!("{:?} is not a duration", excerpt(text)),
                    DURATION_RULE,
                ));
            }
        };
        let number: Option<u64> = number.parse().ok();
        match number.and_then(|n| n.checked_mul(unit_ms)).filter(|ms| *ms <= DurationMs::LONGEST.0) {
            Some(ms) => Ok(Self(ms)),
            None if digits == 0 => {
                Err(InvalidField::new(field, format!("{:?} is not a duration", excerpt(text)), DURATION_RULE))
            }
            None => Err(InvalidField::new(field, "is longer than 366 days", DURATION_RULE)),
        }
    }

    /// The longest span that a configuration or a recipient may ask for: 366 days.
    pub const LONGEST: Self = Self(366 * 86_400_000);
}

/// A person's reading: `350ms`, `2.4s`, `3m20s`, `5h00m`, `2d03h`.
impl fmt::Display for DurationMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0;
        let s = ms / 1000;
        match ms {
            0..1000 => write!(f, "{ms}ms"),
            1000..60_000 if ms.is_multiple_of(1000) => write!(f, "{s}s"),
            1000..60_000 => write!(f, "{}.{}s", s, ms % 1000 / 100),
            60_000..3_600_000 => write!(f, "{}m{:02}s", s / 60, s % 60),
            3_600_000..86_400_000 => write!(f, "{}h{:02}m", s / 3600, s % 3600 / 60),
            _ => write!(f, "{}d{:02}h", s / 86_400, s % 86_400 / 3600),
        }
    }
}

/// RFC 3339 text in serialised documents that people read (`#[serde(with = "rfc3339")]`).
pub mod rfc3339 {
    use super::TimeMs;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes the time as text.
    pub fn serialize<S: Serializer>(time: &TimeMs, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(time)
    }

    /// Reads the time from text.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TimeMs, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        TimeMs::parse("time", &text).map_err(D::Error::custom)
    }

    /// The same for a time that may be absent.
    pub mod option {
        use super::TimeMs;
        use serde::{Deserialize, Deserializer, Serializer, de::Error};

        /// Writes the time as text, or nothing.
        pub fn serialize<S: Serializer>(time: &Option<TimeMs>, to: S) -> Result<S::Ok, S::Error> {
            match time {
                Some(time) => to.collect_str(time),
                None => to.serialize_none(),
            }
        }

        /// Reads the time from text, where there is one.
        pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TimeMs>, D::Error> {
            let text = Option::<String>::deserialize(from)?;
            text.map(|text| TimeMs::parse("time", &text).map_err(D::Error::custom)).transpose()
        }
    }
}
