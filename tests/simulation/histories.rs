//! Seeded histories: thousands in every run, each the same on every machine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use waybill_testkit::simulation::coverage::{Coverage, EXCEPTIONS};
use waybill_testkit::simulation::{Account, Failure, replay, run};

/// How many histories `make test` runs; `WAYBILL_SEEDS` runs more.
const SEEDS: u64 = 4_000;

/// Wake-ups that are sent for one delivery once the faults have stopped, beyond one for each
/// request: fixed, and far above what was ever seen.
const MOST_SPARE_WAKE_UPS: u32 = 16;

#[test]
fn every_history_keeps_every_promise() {
    if let Some(seed) = number("WAYBILL_SEED") {
        println!("{}", replay(seed, None));
        assert!(run(seed, None).is_ok(), "see the last line");
        return;
    }
    let seeds = number("WAYBILL_SEEDS").unwrap_or(SEEDS);
    let (accounts, failures) = run_all(seeds);
    let shown: Vec<String> = failures.iter().take(10).map(Failure::to_string).collect();
    assert!(failures.is_empty(), "{} of {seeds} histories:\n{}", failures.len(), shown.join("\n"));

    let mut coverage = Coverage::default();
    accounts.iter().for_each(|account| coverage.merge(&account.coverage));
    let spare = accounts.iter().map(|account| account.most_spare_wake_ups).max().unwrap_or(0);
    let most = accounts.iter().map(|account| account.most_wake_ups).max().unwrap_or(0);
    println!("{seeds} histories; after the faults stopped at most {most} wake-ups for one delivery,");
    println!("{spare} beyond one per request\n{coverage}");
    assert!(spare <= MOST_SPARE_WAKE_UPS, "{spare} wake-ups beyond one per request");
    assert_eq!(coverage.missing(), Vec::<&str>::new(), "never met in {seeds} histories");
    for (name, why) in EXCEPTIONS {
        assert_eq!(coverage.of(name), 0, "{name} was met, although {why}");
    }
}

#[test]
fn a_seed_repeats_its_history_to_the_letter() {
    assert_eq!(replay(17, None), replay(17, None));
    assert_ne!(replay(17, None), replay(18, None));
}

fn run_all(seeds: u64) -> (Vec<Account>, Vec<Failure>) {
    let next = AtomicU64::new(0);
    let results = Mutex::new((Vec::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds {
                        return;
                    }
                    let result = run(seed, None);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    match result {
                        Ok(account) => results.0.push(account),
                        Err(failure) => results.1.push(failure),
                    }
                }
            });
        }
    });
    let (accounts, mut failures) = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort_by_key(|failure: &Failure| failure.seed);
    (accounts, failures)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
