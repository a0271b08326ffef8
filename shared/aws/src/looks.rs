//! What the reconciler asks: what is due for a look, and what is held.

use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Cursor, Page, PortResult};

use crate::fault::{Fault, LEDGER};
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

    pub(crate) async fn names_of_held(&self) -> PortResult<Vec<DestinationName>> {
        let names = registry::names(&self.client, &self.table, table::HELD_TO, "!", LAST).await?;
        let read = |name: String| {
            DestinationName::parse(&name)
                .map_err(|fault| Fault::Refused(format!("a name in {}: {fault}", table::HELD_TO)).at(LEDGER))
        };
        names.into_iter().map(read).collect()
    }

    pub(crate) async fn page_of_held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        let from = range::place("held", from)?.map_or_else(|| "0".to_owned(), range::after);
        let held = self.range(HELD, from, LAST.to_owned());
        let found = held.merged(&[table::held_to(destination.as_str())], limit + 1).await?;
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
