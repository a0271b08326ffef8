//! How long what is under way may take to end by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use waybill_domain::time::DurationMs;
use waybill_service::config::Config;

/// The longest attempt under any configuration that was worked with, and what comes after it. An attempt
/// that was begun under an earlier configuration keeps the time that this one gave it.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    longest_ms: Arc<AtomicU64>,
    settling: Duration,
}

impl Patience {
    /// `settling` is what an attempt may take beyond its timeout until everything about it is written
    /// down.
    pub(super) fn new(settling: Duration) -> Self {
        Self { longest_ms: Arc::default(), settling }
    }

    /// Work is done under this configuration from now on.
    pub(super) fn note(&self, config: &Config) {
        self.longest_ms.fetch_max(longest_timeout(config).as_ms(), Ordering::Relaxed);
    }

    /// As long as it takes.
    pub(super) fn span(&self) -> Duration {
        Duration::from_millis(self.longest_ms.load(Ordering::Relaxed)) + self.settling
    }
}

/// The longest time that an attempt may take.
pub(super) fn longest_timeout(config: &Config) -> DurationMs {
    config.destinations.values().map(|destination| destination.timeout).max().unwrap_or_default()
}
