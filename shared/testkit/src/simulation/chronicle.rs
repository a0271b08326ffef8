//! What happened in one history: counted always, written down only when somebody wants to read it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waybill_domain::admit::Admission;
use waybill_domain::delivery::Record;
use waybill_domain::identity::{DeliveryKey, MessageId};
use waybill_service::ports::Clock;

use crate::clock::VirtualClock;

use super::coverage::{self, Coverage};
use super::sight::OnAdmission;

/// The account of one history. Copies share it.
#[derive(Debug, Clone)]
pub struct Chronicle {
    clock: VirtualClock,
    pages: Arc<Mutex<Pages>>,
}

#[derive(Debug)]
struct Pages {
    coverage: Coverage,
    /// Which revision each actor saw or wrote last of each delivery.
    views: BTreeMap<(String, DeliveryKey), u64>,
    lines: Option<Vec<String>>,
}

impl Chronicle {
    /// A chronicle that counts, and writes down every step if `keeps_lines`.
    pub fn new(clock: &VirtualClock, keeps_lines: bool) -> Self {
        let pages = Pages {
            coverage: Coverage::default(),
            views: BTreeMap::new(),
            lines: keeps_lines.then(Vec::new),
        };
        Self { clock: clock.clone(), pages: Arc::new(Mutex::new(pages)) }
    }

    /// Writes a line down, if lines are kept.
    pub fn note(&self, line: impl FnOnce() -> String) {
        let at = self.clock.now().since(VirtualClock::T0).as_ms();
        if let Some(lines) = &mut self.pages().lines {
            lines.push(format!("{:>9}.{:03}s  {}", at / 1000, at % 1000, line()));
        }
    }

    /// Counts.
    pub fn count(&self, name: &'static str) {
        self.pages().coverage.count(name);
    }

    /// Counts a fault, and writes it down.
    pub fn fault(&self, name: &'static str, whom: impl FnOnce() -> String) {
        self.count(name);
        self.note(|| format!("{name}: {}", whom()));
    }

    /// An actor saw or wrote this record.
    pub fn saw(&self, actor: &str, record: &Record) {
        self.pages().views.insert((actor.to_owned(), record.delivery.key()), record.revision);
    }

    /// The revision that an actor saw or wrote last of a delivery.
    pub fn view_of(&self, actor: &str, key: &DeliveryKey) -> Option<u64> {
        self.pages().views.get(&(actor.to_owned(), key.clone())).copied()
    }

    /// Changes what is counted.
    pub fn with_coverage<T>(&self, change: impl FnOnce(&mut Coverage) -> T) -> T {
        change(&mut self.pages().coverage)
    }

    /// The lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.pages().lines.clone().unwrap_or_default()
    }

    /// Listens to the admissions of a worker.
    pub fn listening_to(&self, worker: &str) -> OnAdmission {
        let (chronicle, worker) = (self.clone(), worker.to_owned());
        Arc::new(move |record, message_id: &MessageId, admission: &Admission| {
            chronicle.count(coverage::admission(admission));
            chronicle.saw(&worker, record);
            chronicle.note(|| {
                let (id, state) = (short(record.delivery.event_id.as_str()), record.state);
                let (made, revision) = (record.attempts_made, record.revision);
                format!(
                    "{worker} with {message_id} sees {id} {state} made={made} rev={revision}: {admission:?}"
                )
            });
        })
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
