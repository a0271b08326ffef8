//! The time that one attempt has, as one monotonic instant at which everything stops.

use std::future::Future;

use tokio::time::{Instant, timeout_at};
use waybill_domain::attempt::SendWindow;
use waybill_domain::time::DurationMs;

/// What is left of an attempt's time. It only ever shrinks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    until: Instant,
    /// What the attempt was given in all, for the operator.
    timeout: DurationMs,
    /// Whether the deadline or the horizon leaves less than that.
    cut_by_limit: bool,
}

/// The budget ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elapsed;

impl Budget {
    /// From now on, `rest` of the window's time.
    pub(crate) fn start(rest: DurationMs, window: &SendWindow) -> Self {
        Self {
            until: later(rest),
            timeout: window.timeout,
            cut_by_limit: window.limit_at < window.started_at.plus(window.timeout),
        }
    }

    /// The same, but no more than `rest` from now: a wall clock that ran ahead counts, one that
    /// jumped back gives nothing.
    pub(crate) fn cut_to(self, rest: DurationMs) -> Self {
        Self { until: self.until.min(later(rest)), ..self }
    }

    /// An equal share of what is left, where `sharers` have to make do with it.
    pub(crate) fn share(&self, sharers: usize) -> Self {
        let left = self.until.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(sharers.max(1)).unwrap_or(u32::MAX);
        Self { until: Instant::now() + share, ..*self }
    }

    /// What `future` comes to, if it does so in time.
    pub(crate) async fn within<F: Future>(&self, future: F) -> Result<F::Output, Elapsed> {
        timeout_at(self.until, future).await.map_err(|_| Elapsed)
    }

    /// `within 15s`, or what cut it shorter: the end of a sentence.
    pub(crate) fn in_words(&self) -> String {
        if self.cut_by_limit {
            format!("in the part of {} that the delivery's deadline or horizon left", self.timeout)
        } else {
            format!("within {}", self.timeout)
        }
    }
}

/// Held well below what an instant can hold.
fn later(rest: DurationMs) -> Instant {
    Instant::now() + rest.min(DurationMs::LONGEST).as_std()
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use super::*;
    use waybill_domain::time::TimeMs;

    /// How long `budget` lets a future that never ends go on.
    async fn lasts(budget: Budget) -> Duration {
        let from = Instant::now();
        assert_eq!(budget.within(pending::<()>()).await, Err(Elapsed));
        from.elapsed()
    }

    fn fifteen_seconds() -> Budget {
        let at = TimeMs::from_unix_ms(0);
        let far = at.plus(DurationMs::from_secs(3600));
        let timeout = DurationMs::from_secs(15);
        Budget::start(timeout, &SendWindow { lease_until: far, limit_at: far, timeout, started_at: at })
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_only_shrinks() {
        let secs = Duration::from_secs;
        assert_eq!(lasts(fifteen_seconds()).await, secs(15));
        assert_eq!(lasts(fifteen_seconds().cut_to(DurationMs::from_secs(4))).await, secs(4));
        assert_eq!(lasts(fifteen_seconds().cut_to(DurationMs::from_secs(400))).await, secs(15));
        assert_eq!(lasts(fifteen_seconds().share(3)).await, secs(5));
        let budget = fifteen_seconds();
        tokio::time::advance(secs(9)).await;
        assert_eq!(lasts(budget.share(2)).await, secs(3));
        assert_eq!(lasts(budget).await, secs(3));
        assert_eq!(lasts(budget.share(2)).await, secs(0));
    }
}
