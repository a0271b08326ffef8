//! The embedded backend sits the exam.

use tempfile::TempDir;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_embedded::{EmbeddedStore, MAX_RECEIVES};
use waybill_service::ports::Clock;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::conformance::{Buried, QueueCandidate};
use waybill_testkit::{dead_letter_box_exam, ledger_exam, office_exam, queue_exam};

ledger_exam!(crate::embedded::ledger);
office_exam!(crate::embedded::ledger);
queue_exam!(crate::embedded::queue);
dead_letter_box_exam!(crate::embedded::queue);

type Store = EmbeddedStore<VirtualClock>;

async fn ledger() -> (Store, TempDir) {
    let Embedded { store, file, .. } = queue().await;
    (store, file)
}

async fn queue() -> Embedded {
    let file = TempDir::new().unwrap();
    let clock = VirtualClock::default();
    let store = EmbeddedStore::open(&file.path().join("waybill.db"), clock.clone()).unwrap();
    Embedded { store, clock, file }
}

struct Embedded {
    store: Store,
    clock: VirtualClock,
    file: TempDir,
}

impl QueueCandidate for Embedded {
    type Queue = Store;

    fn queue(&self) -> &Store {
        &self.store
    }

    async fn browse_dlq(&self) -> Vec<Buried> {
        let lying = self.store.dead_letter_messages(100).await.unwrap();
        lying.into_iter().map(|dead| Buried { body: dead.body, attributes: dead.attributes }).collect()
    }

    fn max_receives(&self) -> u32 {
        MAX_RECEIVES
    }

    fn now(&self) -> TimeMs {
        self.clock.now()
    }

    async fn pass(&self, span: DurationMs) {
        self.clock.advance(span);
    }
}
