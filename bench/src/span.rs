//! Spans of time, and how they are distributed.

use std::fmt;
use std::time::Duration;

/// A span as people read it: milliseconds.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Ms(pub(crate) f64);

impl From<Duration> for Ms {
    fn from(span: Duration) -> Self {
        Self(span.as_secs_f64() * 1000.0)
    }
}

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ms if ms < 10.0 => write!(f, "{ms:.1} ms"),
            ms => write!(f, "{ms:.0} ms"),
        }
    }
}

/// Many spans.
#[derive(Default)]
pub(crate) struct Spans(Vec<Duration>);

impl Spans {
    pub(crate) fn add(&mut self, span: Duration) {
        self.0.push(span);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The span that `percent` of all do not exceed (nearest rank).
    pub(crate) fn at(&self, percent: f64) -> Ms {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default().into()
    }
}

impl FromIterator<Duration> for Spans {
    fn from_iter<I: IntoIterator<Item = Duration>>(spans: I) -> Self {
        Self(spans.into_iter().collect())
    }
}
