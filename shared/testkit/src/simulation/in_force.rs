//! The configuration in force, as processes make it of what the office has: the newest revision, dated, under
//! every open order.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use waybill_domain::address::Locality;
use waybill_domain::audit::{Act, Draft, Entry};
use waybill_domain::authority::Book;
use waybill_domain::order::{Order, Signed};
use waybill_domain::time::DurationMs;
use waybill_service::acts::is_within_its_book;
use waybill_service::config::{Config, Schedule};
use waybill_service::config_file;
use waybill_service::office::{Entered, Revision, Revisions as _};
use waybill_service::schedule::history::dated;

use crate::clock::VirtualClock;
use crate::memory::MemoryOffice;

/// After how many writes of the office, and what was read then.
type Last = (u64, Arc<Config>);

/// What was read last, and when: until the office is written to, it is what would be read again.
#[derive(Debug, Clone, Default)]
pub(super) struct InForce {
    last: Arc<Mutex<Option<Last>>>,
}

impl InForce {
    /// The configuration in force; `otherwise` where none was ever put in force.
    pub(super) fn read(&self, office: &MemoryOffice, otherwise: &Arc<Config>) -> Arc<Config> {
        let writes = office.writes();
        if writes == 0 {
            return otherwise.clone();
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, config)) = last.as_ref().filter(|(at, _)| *at == writes) {
            return config.clone();
        }
        let config = match office.peek_in_force() {
            Some((revision, document)) => dated(Config::clone(&parsed(&document)), &revision),
            None => Config::clone(otherwise),
        };
        let open: Vec<Order> = office.peek_orders().into_iter().filter(Order::is_open).collect();
        let config = config.under(open.iter().filter(|order| is_within_its_book(order)));
        let config = Arc::new(config);
        *last = Some((writes, config.clone()));
        config
    }
}

/// How many documents a thread keeps: histories that go on for hours have new ones all the time.
const MOST_KNOWN: usize = 2_000;

/// A document, read once by each thread: histories share a few.
pub(super) fn parsed(document: &str) -> Arc<Config> {
    thread_local! {
        static KNOWN: RefCell<HashMap<String, Arc<Config>>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(config) = known.get(document) {
            return config.clone();
        }
        let config = config_file::parse(document, Locality::PublicOnly);
        let config = Arc::new(config.unwrap_or_else(|faults| panic!("{faults:?}\n{document}")));
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(document.to_owned(), config.clone());
        config
    })
}

/// Puts the first revision in force, a day before any history begins.
pub(super) fn put_first(office: &MemoryOffice, document: &str) {
    let at = VirtualClock::T0.minus(DurationMs::from_secs(86_400));
    let config = parsed(document);
    let signed = Signed { by: "operator.0".to_owned(), at, why: "the beginning".to_owned() };
    let draft = Draft {
        book: Book::Across,
        at,
        who: signed.by.clone(),
        act: Act::ConfigApplied,
        subject: config.revision.to_string(),
        why: Some(signed.why.clone()),
        details: serde_json::Value::Null,
    };
    let since = |schedule: &Schedule| {
        let keys = schedule.tenants.iter().map(|tenant| (format!("{}:{tenant}", schedule.name), at));
        keys.collect::<Vec<_>>()
    };
    let schedules = config.schedules.iter().flat_map(since).collect();
    let (revision, former) = (config.revision.clone(), BTreeMap::new());
    let revision = Revision { number: 1, revision, signed, schedules, former };
    let entry = Entry::after(None, draft, "operator.0-1");
    let installed = office.install(&revision, document, &entry).now_or_never();
    assert!(matches!(installed, Some(Ok(Entered::Landed))), "{installed:?}");
}
