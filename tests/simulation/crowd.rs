//! Many histories on every core, and how fast.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use waybill_testkit::simulation::auditor::Tally;
use waybill_testkit::simulation::coverage::Coverage;
use waybill_testkit::simulation::{Account, Failure, Setup, run};

/// What many histories came to.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    pub(crate) histories: u64,
    pub(crate) failures: Vec<Failure>,
    pub(crate) coverage: Coverage,
    pub(crate) tried: u64,
    pub(crate) tally: Tally,
    pub(crate) most_wake_ups: u32,
    pub(crate) most_spare_wake_ups: u32,
    pub(crate) took: Duration,
}

impl Crowd {
    /// The histories of the seeds from `first` on: so many of them, or as many as fit into `time`.
    pub(crate) fn of(first: u64, many: u64, time: Option<Duration>, setup: Setup) -> Self {
        let (next, crowd, start) = (AtomicU64::new(first), Mutex::new(Self::default()), Instant::now());
        let is_over = || time.is_some_and(|time| start.elapsed() >= time);
        let take =
            || Some(next.fetch_add(1, Ordering::SeqCst)).filter(|seed| *seed - first < many && !is_over());
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
                scope.spawn(|| {
                    while let Some(seed) = take() {
                        let result = run(seed, setup);
                        crowd.lock().unwrap_or_else(PoisonError::into_inner).add(result);
                    }
                });
            }
        });
        let mut crowd = crowd.into_inner().unwrap_or_else(PoisonError::into_inner);
        crowd.took = start.elapsed();
        crowd.failures.sort_by_key(|failure| failure.seed);
        crowd
    }

    fn add(&mut self, result: Result<Account, Failure>) {
        self.histories += 1;
        let account = match result {
            Ok(account) => account,
            Err(failure) => return self.failures.push(failure),
        };
        self.coverage.merge(&account.coverage);
        self.tried += account.tried;
        self.tally = self.tally.plus(account.tally);
        self.most_wake_ups = self.most_wake_ups.max(account.most_wake_ups);
        self.most_spare_wake_ups = self.most_spare_wake_ups.max(account.most_spare_wake_ups);
    }

    /// Fails where a history did, and names the first ones.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        let shown: Vec<String> = self.failures.iter().take(10).map(Failure::to_string).collect();
        let (many, of) = (self.failures.len(), self.histories);
        assert!(self.failures.is_empty(), "{many} of {of} histories broke a promise:\n{}", shown.join("\n"));
    }
}

impl std::fmt::Display for Crowd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = self.histories as f64 / self.took.as_secs_f64().max(0.001);
        writeln!(f, "{} histories in {:.1?}, {rate:.0} a second", self.histories, self.took)?;
        writeln!(
            f,
            "{} faults tried; {} deliveries accepted, {} requests; {} findings",
            self.tried,
            self.tally.accepted,
            self.tally.requests,
            self.failures.len()
        )?;
        writeln!(
            f,
            "after the faults stopped at most {} wake-ups for one delivery, {} beyond one per request",
            self.most_wake_ups, self.most_spare_wake_ups
        )
    }
}
