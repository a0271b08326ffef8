//! What the reconciler asks: what is due for a look, and what is held.

use waybill_domain::identity::DeliveryKey;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Cursor, Page, PortResult};

use crate::ledger::DynamoLedger;
use crate::range::{self, Placed, Range};
use crate::registry;
use crate::table::{self, HELD, Index, LAST, OPEN};

impl<P> DynamoLedger<P> {
    pub(crate) async fn page_of_due(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        let from = range::place("look", from)?.map_or_else(|| "0".to_owned(), range::after);
        // Whatever is looked at now begins with its digits; one millisecond later begins past them.
        let to = table::digits(now.plus(DurationMs::from_ms(1)));
        let shards: Vec<String> = (0..table::OPEN_SHARDS).map(table::open_shard).collect();
        let found = self.range(OPEN, from, to).merged(&shards, limit + 1).await?;
        Ok(page(found, limit, |placed| range::cursor("look", &placed.order)))
    }

    pub(crate) async fn page_of_held(
        &self,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        let place = range::place("held", from)?.map(|place| place.split_once('/').unwrap_or((place, "")));
        let first = place.map_or("!", |(destination, _)| destination);
        let destinations = registry::names(&self.client, &self.table, table::HELD_TO, first, LAST).await?;
        let mut found = Vec::new();
        for destination in destinations {
            let from = match place {
                Some((same, order)) if same == destination => range::after(order),
                _ => "0".to_owned(),
            };
            let held = self.range(HELD, from, LAST.to_owned());
            let held = held.merged(&[table::held_to(&destination)], limit + 1 - found.len()).await?;
            found.extend(
                held.into_iter()
                    .map(|Placed { order, key }| Placed { order: format!("{destination}/{order}"), key }),
            );
            if found.len() > limit {
                break;
            }
        }
        Ok(page(found, limit, |placed| range::cursor("held", &placed.order)))
    }

    /// A part of an index, in its own order.
    pub(crate) fn range(&self, index: Index, from: String, to: String) -> Range<'_> {
        Range { client: &self.client, table: &self.table, index, from, to, newest_first: false }
    }
}

/// The first `limit` of what was found; what goes further only says that another page follows.
fn page(mut found: Vec<Placed>, limit: usize, cursor: impl Fn(&Placed) -> Cursor) -> Page<DeliveryKey> {
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(cursor);
    Page { items: found.into_iter().map(|placed| placed.key).collect(), next }
}
