//! What one round of the reconciler costs on the embedded backend, by how much history there is.
//!
//! The promise: it depends on what is due, never on history. So the same hundred deliveries are due each
//! time, spread over ledgers that differ in how many deliveries have ended.

mod seed;

use std::time::{Duration, Instant};

use waybill_embedded::EmbeddedStore;
use waybill_service::reconcile::TickLimits;
use waybill_service::round::Round;
use waybill_service::schedule::Learned;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::SeededDice;
use waybill_testkit::originals::DUE;

use crate::machine::{self, Io};
use crate::report;
use crate::span::Ms;
use seed::Seeded;

const SIZES: [u64; 2] = [10_000, 1_000_000];
/// With `BENCH_FULL=1`: it takes some 13 GB of disk for a while.
const FULL_SIZE: u64 = 10_000_000;

/// What a round cost.
struct Cost {
    looked_at: usize,
    woken: usize,
    read: u64,
    written: u64,
    took: Duration,
}

/// Measures all sizes and writes the section.
pub(crate) async fn measure() {
    let machine = machine::described();
    let full = std::env::var("BENCH_FULL").is_ok_and(|set| set == "1");
    let mut rows = Vec::new();
    for size in SIZES.into_iter().chain(full.then_some(FULL_SIZE)) {
        let folder = machine::scratch();
        let seeded = seed::seed(&folder.path().join("ledger.db"), size).await;
        println!("{} finished deliveries stand", report::count(size));
        let due = round(&seeded, "due").await;
        let idle = round(&seeded, "idle").await;
        assert_eq!((due.looked_at, due.woken), (DUE, DUE), "it wakes what is due");
        assert_eq!((idle.looked_at, idle.woken), (0, 0), "and nothing twice");
        let cells =
            |cost: &Cost| [cost.read.to_string(), cost.written.to_string(), Ms::from(cost.took).to_string()];
        let mut row = vec![report::count(size), format!("{:.1} GB", seeded.bytes() as f64 / 1e9)];
        row.extend(cells(&due));
        row.extend(cells(&idle));
        rows.push(row);
    }
    let head = [
        "finished deliveries",
        "file",
        "100 due: pages read",
        "pages written",
        "time",
        "nothing due: pages read",
        "pages written",
        "time",
    ];
    report::write("reconciler", &format!("{machine}\n{}", report::table(&head, &rows)));
}

/// One round by a process that has just opened the file, so that nothing of it is in SQLite's caches.
async fn round(seeded: &Seeded, name: &str) -> Cost {
    let clock = VirtualClock::at(seeded.now);
    let store = EmbeddedStore::open(&seeded.file, clock.clone()).expect("the file opens");
    let dice = SeededDice::new(name, 1);
    let round = Round { ledger: &store, queue: &store, office: &store, clock: &clock, dice: &dice };
    let (before, start) = (Io::now(), Instant::now());
    let report =
        round.run(&seeded.config, &Learned::default(), TickLimits::default()).await.expect("a round");
    let took = start.elapsed();
    let (read, written) = Io::now().pages_since(before);
    Cost { looked_at: report.looked.looked_at, woken: report.looked.woken, read, written, took }
}
