//! How many deliveries of a destination are held, and why: for whoever asks, never on a delivery's way.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use waybill_domain::delivery::Record;
use waybill_domain::hold::HoldReason;
use waybill_domain::identity::DestinationName;

use crate::ports::{Cursor, Ledger, PortResult};

/// How many records are read at once.
const TOGETHER: usize = 20;

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

/// Counts what is held of a destination, among the `most` with the earliest deadlines, as far as it is
/// meant: each is read, for the index does not say why it is held.
pub async fn count_held(
    ledger: &impl Ledger,
    destination: &DestinationName,
    most: usize,
    is_meant: impl Fn(&Record) -> bool,
) -> PortResult<HeldCount> {
    let (mut count, mut looked_at) = (HeldCount::default(), 0);
    let mut from: Option<Cursor> = None;
    loop {
        let page = ledger.held(destination, TOGETHER.min(most - looked_at), from.as_ref()).await?;
        looked_at += page.items.len();
        let records = try_join_all(page.items.iter().map(|key| ledger.load(key))).await?;
        for record in records.into_iter().flatten().filter(|record| is_meant(record)) {
            if let Some(held) = &record.hold {
                *count.by_reason.entry(held.reason).or_default() += 1;
            }
        }
        from = page.next;
        if from.is_none() || looked_at >= most {
            count.more = from.is_some();
            return Ok(count);
        }
    }
}
