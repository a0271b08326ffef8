//! The backend in memory, on which the simulator runs, sits the exam too.

use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::Clock;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::conformance::{Buried, QueueCandidate};
use waybill_testkit::memory::{MemoryLedger, MemoryOffice, MemoryQueue, QueueRules};
use waybill_testkit::{dead_letter_box_exam, ledger_exam, office_exam, queue_exam};

ledger_exam!(crate::memory::ledger);
office_exam!(crate::memory::office);
queue_exam!(crate::memory::queue);
dead_letter_box_exam!(crate::memory::queue);

const MAX_RECEIVES: u32 = 6;

async fn ledger() -> (MemoryLedger, ()) {
    (MemoryLedger::default(), ())
}

async fn office() -> (MemoryOffice, ()) {
    (MemoryOffice::default(), ())
}

async fn queue() -> Memory {
    let clock = VirtualClock::default();
    let rules = QueueRules { max_receives: Some(MAX_RECEIVES), ..QueueRules::default() };
    Memory { queue: MemoryQueue::new(&clock, rules), clock }
}

struct Memory {
    queue: MemoryQueue,
    clock: VirtualClock,
}

impl QueueCandidate for Memory {
    type Queue = MemoryQueue;

    fn queue(&self) -> &MemoryQueue {
        &self.queue
    }

    async fn browse_dlq(&self) -> Vec<Buried> {
        let attributes = |of: Vec<(&'static str, String)>| {
            of.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        };
        let lying = self.queue.dead_letters().into_iter();
        lying.map(|dead| Buried { body: dead.body, attributes: attributes(dead.attributes) }).collect()
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
