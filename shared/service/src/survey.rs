//! A look at a destination's deliveries, for whoever reckons with them ([`waybill_domain::capacity`]).
//! Bounded, whatever there is: what was not looked at is told.

use std::collections::BTreeSet;

use waybill_domain::capacity::measured::Tally;
use waybill_domain::delivery::{Record, State};
use waybill_domain::identity::{DeliveryKey, DestinationName, TenantId};
use waybill_domain::time::TimeMs;

use crate::held::each_held;
use crate::ports::{Catalogue, Cursor, Filter, Ledger, Page, PortResult};

/// The most deliveries that are looked at, over all tenants, or [`MOST_OF_EACH`] of each tenant where that is
/// more; and beside them the most held ones, and the most that wait for their attempt, to whichever destination.
pub const MOST: usize = 10_000;

/// The most deliveries of each tenant that are looked at, however many tenants there are.
pub const MOST_OF_EACH: usize = PAGE;

/// How many are asked for at once.
const PAGE: usize = 200;

/// The most deliveries whose evidence is read.
const MOST_EVIDENCE: usize = 200;

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The destination.
    pub destination: &'a DestinationName,
    /// All tenants that it serves: their deliveries take the same places.
    pub tenants: &'a [TenantId],
    /// Deliveries first queued at this time or later.
    pub since: TimeMs,
    /// The time.
    pub now: TimeMs,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    /// The destination's deliveries.
    pub tally: Tally,
    /// How many deliveries were read for it, to whichever destination.
    pub looked_at: usize,
    /// From when on all were looked at: later than what was asked for where there were too many.
    pub from: TimeMs,
    /// Whether there may be more that are held than were counted, none of them with a nearer deadline.
    pub more_held: bool,
    /// Whether more may wait for their attempt, first queued before `from`, than were counted.
    pub more_wait: bool,
}

/// Looks at the newest deliveries of each tenant, and at what waits or is held and is older.
pub async fn survey(ledger: &(impl Ledger + Catalogue), asked: Asked<'_>) -> PortResult<Survey> {
    let Asked { destination, tenants, now, .. } = asked;
    let most = (MOST / tenants.len().max(1)).max(MOST_OF_EACH);
    let (mut looked_at, mut from, mut found) = (0, asked.since, Vec::new());
    for tenant in tenants {
        // To whichever destination: a store reads them all, and the bound is on what it reads.
        let filter = Filter { tenant: Some(tenant.clone()), since: Some(asked.since), ..Filter::default() };
        let newest = newest(ledger, &filter, most).await?;
        looked_at += newest.records.len();
        if let (true, Some(oldest)) = (newest.is_cut, newest.records.last()) {
            from = from.max(oldest.delivery.first_queued_at);
        }
        found.extend(newest.records.into_iter().filter(|record| record.delivery.destination == *destination));
    }

    let mut tally = Tally::new(now);
    let is_meant = |record: &&Record| record.delivery.first_queued_at >= from;
    found.iter().filter(is_meant).for_each(|record| tally.arrival(record));
    let repeated = found
        .iter()
        .filter(is_meant)
        .filter(|record| record.state == State::Succeeded && record.attempts_made > 1);
    for record in repeated.take(MOST_EVIDENCE) {
        tally.evidence(&ledger.attempts(&record.delivery.key()).await?);
    }
    let within: BTreeSet<DeliveryKey> = found.iter().filter(is_meant).map(|it| it.delivery.key()).collect();
    let is_older = |record: &Record| record.delivery.first_queued_at < from;
    // One that is held or let go meanwhile is found twice.
    let mut older = BTreeSet::new();
    let are_all_open = each_open(
        ledger,
        |key| tenants.contains(&key.tenant) && !within.contains(key),
        |record| {
            let is_its = record.delivery.destination == *destination && record.hold.is_none();
            if is_its && is_older(&record) && older.insert(record.delivery.key()) {
                tally.waiting(&record);
            }
        },
    )
    .await?;
    let mut held = 0;
    let are_all_held = each_held(
        ledger,
        destination,
        |key| tenants.contains(&key.tenant),
        |record| {
            if is_older(&record) && older.insert(record.delivery.key()) {
                tally.waiting(&record);
            }
            held += 1;
            held < MOST
        },
    )
    .await?;
    Ok(Survey { tally, looked_at, from, more_held: !are_all_held, more_wait: !are_all_open })
}

/// Looks at the deliveries that are meant of those that must be looked after: all that wait for their attempt are
/// among them, and of what has ended only what the DLQ was not told of. Whether it came to the end.
async fn each_open(
    ledger: &impl Ledger,
    is_meant: impl Fn(&DeliveryKey) -> bool,
    mut look: impl FnMut(Record),
) -> PortResult<bool> {
    let (mut from, mut passed): (Option<Cursor>, usize) = (None, 0);
    loop {
        let Page { mut items, next } = ledger.due_for_look(WHENEVER, PAGE, from.as_ref()).await?;
        passed += items.len();
        items.retain(&is_meant);
        for record in ledger.load_all(&items).await? {
            record?.into_iter().for_each(&mut look);
        }
        from = next;
        if from.is_none() || passed >= MOST {
            return Ok(from.is_none());
        }
    }
}

/// After every look.
const WHENEVER: TimeMs = TimeMs::from_unix_ms(i64::MAX);

struct Newest {
    records: Vec<Record>,
    is_cut: bool,
}

/// The newest deliveries that match, newest first, up to `most`.
async fn newest(ledger: &impl Catalogue, filter: &Filter, most: usize) -> PortResult<Newest> {
    let (mut records, mut from) = (Vec::new(), None);
    loop {
        let page = ledger.list(filter, PAGE.min(most - records.len()), from.as_ref()).await?;
        records.extend(page.items);
        from = page.next;
        if from.is_none() || records.len() >= most {
            return Ok(Newest { records, is_cut: from.is_some() });
        }
    }
}
