//! The clock of a rehearsal: real time runs while something runs, and waits are skipped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::Clock;

/// A wall clock that begins when the story begins. Copies share it.
#[derive(Debug, Clone)]
pub(crate) struct StoryClock {
    begin: TimeMs,
    started: Instant,
    skipped_ms: Arc<AtomicU64>,
}

impl StoryClock {
    /// A clock that shows `begin` now.
    pub(crate) fn beginning_at(begin: TimeMs) -> Self {
        Self { begin, started: Instant::now(), skipped_ms: Arc::default() }
    }

    /// Skips what is left until `at`. Never moves back.
    pub(crate) fn skip_to(&self, at: TimeMs) {
        self.skipped_ms.fetch_add(at.since(self.now()).as_ms(), Ordering::Relaxed);
    }
}

impl Clock for StoryClock {
    fn now(&self) -> TimeMs {
        let ran = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.begin.plus(DurationMs::from_ms(ran.saturating_add(self.skipped_ms.load(Ordering::Relaxed))))
    }
}
