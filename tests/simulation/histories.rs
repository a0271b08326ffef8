//! Seeded histories of the whole system: a thousand in every run of the tests, ten thousand in CI (`make
//! simulate`), each the same on every machine.

use std::time::Duration;

use waybill_testkit::simulation::coverage::EXCEPTIONS;
use waybill_testkit::simulation::{Setup, replay, run};

use crate::crowd::Crowd;

/// How many histories `make test` runs.
const SEEDS: u64 = 1_000;

/// From how many on everything must have been met.
const ENOUGH: u64 = 10_000;

#[test]
fn every_history_keeps_every_promise() {
    if let Some(seed) = number("WAYBILL_SEED") {
        println!("{}", replay(seed, Setup::default()));
        assert!(run(seed, Setup::default()).is_ok(), "see the last line");
        return;
    }
    let seeds = number("WAYBILL_SEEDS").unwrap_or(SEEDS);
    let time = number("WAYBILL_SECONDS").map(Duration::from_secs);
    let first = number("WAYBILL_FIRST_SEED").unwrap_or(0);
    let crowd = Crowd::of(first, time.map_or(seeds, |_| u64::MAX), time, Setup::default());
    println!("{crowd}{}", crowd.coverage);
    crowd.assert_clean();
    for (name, why) in EXCEPTIONS {
        assert_eq!(crowd.coverage.of(name), 0, "{name} was met, although {why}");
    }
    if crowd.histories >= ENOUGH {
        let missing = crowd.coverage.missing();
        assert_eq!(missing, Vec::<&str>::new(), "never met in {} histories", crowd.histories);
    }
}

#[test]
fn a_seed_repeats_its_history_to_the_letter() {
    let replay = |seed| replay(seed, Setup::default());
    assert_eq!(replay(17), replay(17));
    assert_ne!(replay(17), replay(18));
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
