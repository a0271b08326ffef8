//! What is held of a destination, and why: for whoever asks, never on a delivery's way.

use std::collections::BTreeMap;

use waybill_domain::delivery::Record;
use waybill_domain::hold::HoldReason;
use waybill_domain::identity::{DeliveryKey, DestinationName};

use crate::ports::{Cursor, Ledger, Page, PortResult};

/// How many are asked for at once.
const PAGE: usize = 100;

/// What is held of a destination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldCount {
    /// How many, for each reason that holds any.
    pub by_reason: BTreeMap<HoldReason, usize>,
    /// Whether there may be more: it was not counted to the end.
    pub more: bool,
}

impl HeldCount {
    /// All of them.
    pub fn total(&self) -> usize {
        self.by_reason.values().sum()
    }
}

/// The most that are gone through for one destination, whosesoever they are: whoever asks for one tenant's of
/// a destination that serves many reads past all others'.
pub const MOST_PASSED: usize = 10_000;

/// Looks at every held delivery of a destination that is meant, earliest deadline first, until `look` wants
/// no more or [`MOST_PASSED`] were passed: each is read, for the index does not say why it is held. Whether it
/// came to the end.
pub async fn each_held(
    ledger: &impl Ledger,
    destination: &DestinationName,
    is_meant: impl Fn(&DeliveryKey) -> bool,
    mut look: impl FnMut(Record) -> bool,
) -> PortResult<bool> {
    let (mut from, mut passed): (Option<Cursor>, usize) = (None, 0);
    loop {
        let Page { mut items, next } = ledger.held(destination, PAGE, from.as_ref()).await?;
        passed += items.len();
        items.retain(&is_meant);
        for record in ledger.load_all(&items).await? {
            if let Some(record) = record?.filter(|record| record.hold.is_some())
                && !look(record)
            {
                return Ok(false);
            }
        }
        from = next;
        if from.is_none() {
            return Ok(true);
        }
        if passed >= MOST_PASSED {
            return Ok(false);
        }
    }
}

/// Counts what is held of a destination and meant, up to `most`.
pub async fn count_held(
    ledger: &impl Ledger,
    destination: &DestinationName,
    most: usize,
    is_meant: impl Fn(&DeliveryKey) -> bool,
) -> PortResult<HeldCount> {
    let (mut count, mut counted) = (HeldCount::default(), 0);
    let is_to_the_end = each_held(ledger, destination, is_meant, |record| {
        if counted == most {
            return false;
        }
        counted += 1;
        if let Some(held) = &record.hold {
            *count.by_reason.entry(held.reason).or_default() += 1;
        }
        true
    })
    .await?;
    Ok(HeldCount { more: !is_to_the_end, ..count })
}
