//! A look at a destination's deliveries, for whoever reckons with them ([`waybill_domain::capacity`]).
//! Bounded, whatever there is: what was not looked at is told.

use waybill_domain::capacity::measured::Tally;
use waybill_domain::delivery::{Record, State};
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::time::TimeMs;

use crate::held::each_held;
use crate::ports::{Catalogue, Filter, Ledger, PortResult};

/// The most deliveries that are looked at, over all tenants; and the most held ones beside.
pub const MOST: usize = 10_000;

/// How many are asked for at once; each tenant is good for one page at least.
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
    /// Whether there may be more that wait than were counted.
    pub more_wait: bool,
}

/// Looks at the newest deliveries of each tenant, and at what is held and older.
pub async fn survey(ledger: &(impl Ledger + Catalogue), asked: Asked<'_>) -> PortResult<Survey> {
    let Asked { destination, tenants, now, .. } = asked;
    let most = (MOST / tenants.len().max(1)).max(PAGE);
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
    let mut held = 0;
    let is_to_the_end = each_held(
        ledger,
        destination,
        |key| tenants.contains(&key.tenant),
        |record| {
            if record.delivery.first_queued_at < from {
                tally.waiting(&record);
            }
            held += 1;
            held < MOST
        },
    )
    .await?;
    Ok(Survey { tally, looked_at, from, more_wait: !is_to_the_end })
}

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
