//! The ledger in memory: every write is atomic, and every write is remembered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use waybill_domain::attempt::Attempt;
use waybill_domain::delivery::{Change, Record};
use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::time::TimeMs;
use waybill_service::ports::{Applied, Created, Cursor, KeptUsage, Ledger, Page, PortResult};

use super::clauses::Clause;
use super::listing::{ascending, key, page};
use super::rows::{Row, Rows};

/// One write that landed.
#[derive(Debug, Clone)]
pub struct Write {
    /// The record before it; `None` where it was created.
    pub before: Option<Record>,
    /// The record after it.
    pub after: Record,
}

/// A ledger in memory. Copies of it share one store.
#[derive(Debug, Clone, Default)]
pub struct MemoryLedger {
    store: Arc<Mutex<Store>>,
}

#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) rows: Rows,
    dropped: Option<Clause>,
    pub(super) budgets: BTreeMap<DestinationName, KeptUsage>,
    held: BTreeMap<DestinationName, BTreeSet<(String, DeliveryKey)>>,
    index_lags: bool,
    journal: Vec<Write>,
    /// Evidence that was written over with something else.
    altered: Vec<(DeliveryKey, Attempt)>,
}

impl MemoryLedger {
    /// A ledger that leaves a clause of its conditional writes out, if one is named.
    pub fn without(clause: Option<Clause>) -> Self {
        let ledger = Self::default();
        ledger.store().dropped = clause;
        ledger
    }

    /// Whether the indexes lag behind the records as far as they ever may: while they do, they list
    /// every delivery, whatever its record says by now.
    pub fn let_indexes_lag(&self, lag: bool) {
        self.store().index_lags = lag;
    }

    /// The writes since the last call, in order.
    pub fn take_journal(&self) -> Vec<Write> {
        std::mem::take(&mut self.store().journal)
    }

    /// Evidence that was written over with something else since the last call, as it was before.
    pub fn take_altered_evidence(&self) -> Vec<(DeliveryKey, Attempt)> {
        std::mem::take(&mut self.store().altered)
    }

    /// Writes a record without comparing anything. No honest caller does this.
    pub fn overwrite(&self, record: Record) {
        let mut store = self.store();
        let Some(row) = store.rows.get_mut(&record.delivery.key()) else { return };
        let before = std::mem::replace(&mut row.record, record.clone());
        store.reindex(&before, &record);
        store.journal.push(Write { before: Some(before), after: record });
    }

    /// Forgets a payload, as a store that cleaned up too early does.
    pub fn drop_payload(&self, key: &DeliveryKey) {
        if let Some(row) = self.store().rows.get_mut(key) {
            row.payload = None;
        }
    }

    /// Every record, by key.
    pub fn records(&self) -> Vec<Record> {
        self.store().rows.values().map(|row| row.record.clone()).collect()
    }

    /// One record, looked at without asking a port.
    pub fn peek(&self, key: &DeliveryKey) -> Option<Record> {
        self.store().rows.get(key).map(|row| row.record.clone())
    }

    /// Reads what is stored of a delivery without copying it.
    pub fn inspect<T>(&self, key: &DeliveryKey, look: impl FnOnce(&Record) -> T) -> Option<T> {
        self.store().rows.get(key).map(|row| look(&row.record))
    }

    /// The evidence of a delivery, looked at without asking a port.
    pub fn evidence(&self, key: &DeliveryKey) -> Vec<Attempt> {
        self.store().rows.get(key).map(|row| row.attempts.values().cloned().collect()).unwrap_or_default()
    }

    /// When something next stands in an index of things to look at: now, where anything is held.
    pub fn next_look(&self, now: TimeMs) -> Option<TimeMs> {
        let store = self.store();
        let due = store.rows.values().filter_map(|row| match row.record.hold {
            Some(_) if row.record.state.is_open() => Some(now),
            _ => row.record.look_at,
        });
        due.min()
    }

    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger for MemoryLedger {
    async fn create(&self, record: &Record, payload: &Bytes) -> PortResult<Created> {
        let mut store = self.store();
        let key = record.delivery.key();
        let stored = store.rows.get(&key).map(|row| row.record.clone());
        if let Some(stored) = stored.clone().filter(|_| store.compares(Clause::CreateAbsent)) {
            return Ok(Created::Exists(Box::new(stored)));
        }
        let row =
            Row { record: record.clone(), payload: Some(payload.clone()), attempts: Default::default() };
        store.rows.insert(key, row);
        store.journal.push(Write { before: stored, after: record.clone() });
        Ok(Created::New)
    }

    async fn load(&self, key: &DeliveryKey) -> PortResult<Option<Record>> {
        Ok(self.peek(key))
    }

    async fn payload(&self, key: &DeliveryKey) -> PortResult<Option<Bytes>> {
        Ok(self.store().rows.get(key).and_then(|row| row.payload.clone()))
    }

    async fn apply(&self, change: &Change) -> PortResult<Applied> {
        let mut store = self.store();
        let state = store.compares(Clause::ApplyState);
        let revision = store.compares(Clause::ApplyRevision);
        let Some(row) = store.rows.get_mut(&change.after().delivery.key()) else {
            return Ok(Applied::Lost(None));
        };
        let expected = change.expected();
        let is_as_expected = (!state || row.record.state == expected.state)
            && (!revision || row.record.revision == expected.revision);
        if !is_as_expected {
            return Ok(Applied::Lost(Some(Box::new(row.record.clone()))));
        }
        let before = std::mem::replace(&mut row.record, change.after().clone());
        store.reindex(&before, change.after());
        store.journal.push(Write { before: Some(before), after: change.after().clone() });
        Ok(Applied::Landed)
    }

    async fn add_attempt(&self, key: &DeliveryKey, attempt: &Attempt) -> PortResult<()> {
        let mut store = self.store();
        let is_kept = store.compares(Clause::EvidenceAbsent);
        if let Some(row) = store.rows.get_mut(key) {
            let place = (attempt.number, attempt.witness, attempt.token.clone());
            match is_kept {
                true => drop(row.attempts.entry(place).or_insert_with(|| attempt.clone())),
                false => {
                    let before = row.attempts.insert(place, attempt.clone());
                    store.altered.extend(before.filter(|before| before != attempt).map(|a| (key.clone(), a)));
                }
            }
        }
        Ok(())
    }

    async fn attempts(&self, key: &DeliveryKey) -> PortResult<Vec<Attempt>> {
        Ok(self.evidence(key))
    }

    async fn due_for_look(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        let store = self.store();
        let due = store.rows.iter().filter_map(|(at, row)| {
            let look_at = if store.index_lags { Some(now) } else { row.record.look_at };
            let look_at = look_at.filter(|look_at| *look_at <= now)?;
            Some((key([&ascending(look_at), at.tenant.as_str(), at.delivery_id.as_str()]), at.clone()))
        });
        Ok(page(due.collect(), limit, from))
    }

    async fn held_destinations(&self) -> PortResult<Vec<DestinationName>> {
        let store = self.store();
        if store.index_lags {
            let all = store.rows.values().map(|row| row.record.delivery.destination.clone());
            return Ok(all.collect::<BTreeSet<_>>().into_iter().collect());
        }
        Ok(store.held.iter().filter(|(_, held)| !held.is_empty()).map(|(name, _)| name.clone()).collect())
    }

    async fn held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        let store = self.store();
        if store.index_lags {
            let of_it = store.rows.values().filter(|row| row.record.delivery.destination == *destination);
            return Ok(page(of_it.map(|row| placed(&row.record)).collect(), limit, from));
        }
        let Some(held) = store.held.get(destination) else { return Ok(page(Vec::new(), limit, from)) };
        let behind = held.iter().skip_while(|(order, _)| from.is_some_and(|from| *order <= from.0));
        Ok(page(behind.take(limit + 1).cloned().collect(), limit, from))
    }
}

impl Store {
    pub(super) fn compares(&self, clause: Clause) -> bool {
        self.dropped != Some(clause)
    }

    /// Keeps the index of what is held in step with a record that changes.
    fn reindex(&mut self, before: &Record, after: &Record) {
        if is_held(before) == is_held(after) {
            return;
        }
        let held = self.held.entry(after.delivery.destination.clone()).or_default();
        match is_held(after) {
            true => held.insert(placed(after)),
            false => held.remove(&placed(after)),
        };
    }
}

fn is_held(record: &Record) -> bool {
    record.state.is_open() && record.hold.is_some()
}

/// Where a held delivery stands among those of its destination.
fn placed(record: &Record) -> (String, DeliveryKey) {
    let at = record.delivery.key();
    // "~" sorts after every digit: what has no deadline comes last.
    let deadline = record.delivery.deadline.map_or("~".to_owned(), ascending);
    (key([&deadline, at.tenant.as_str(), at.delivery_id.as_str()]), at)
}
