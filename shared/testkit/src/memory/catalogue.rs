//! What an operator asks of the ledger in memory.

use std::collections::BTreeMap;

use waybill_domain::delivery::Record;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::{DeliveryId, DestinationName, TenantId};
use waybill_domain::time::TimeMs;
use waybill_service::ports::{
    Catalogue, Cursor, DeadLetterFilter, DeadLetterGroup, Filter, Page, PortResult,
};

use super::ledger::MemoryLedger;
use super::listing::{ascending, descending, key, page};

impl Catalogue for MemoryLedger {
    async fn list(&self, filter: &Filter, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Record>> {
        let shown = self.records().into_iter().filter(|record| shows(filter, record));
        let keyed = shown.map(|record| {
            let delivery = &record.delivery;
            let newest_first = descending(delivery.first_queued_at);
            (key([delivery.tenant.as_str(), &newest_first, delivery.id.as_str()]), record)
        });
        Ok(page(keyed.collect(), limit, from))
    }

    async fn find(&self, id: &DeliveryId) -> PortResult<Vec<Record>> {
        Ok(self.records().into_iter().filter(|record| record.delivery.id == *id).collect())
    }

    async fn dead_letter_summary(&self, tenant: Option<&TenantId>) -> PortResult<Vec<DeadLetterGroup>> {
        let mut groups: BTreeMap<(TenantId, DestinationName, &str), DeadLetterGroup> = BTreeMap::new();
        for (record, reason) in self.dead(|_, _| true) {
            let delivery = &record.delivery;
            if tenant.is_some_and(|tenant| *tenant != delivery.tenant) {
                continue;
            }
            let ended_at = record.ended_at.unwrap_or(record.due_at);
            let at = (delivery.tenant.clone(), delivery.destination.clone(), reason.as_str());
            let group = groups.entry(at).or_insert_with(|| DeadLetterGroup {
                tenant: delivery.tenant.clone(),
                destination: delivery.destination.clone(),
                reason,
                count: 0,
                oldest_ended_at: ended_at,
                nearest_deadline: None,
            });
            group.count += 1;
            group.oldest_ended_at = group.oldest_ended_at.min(ended_at);
            group.nearest_deadline = [group.nearest_deadline, delivery.deadline].into_iter().flatten().min();
        }
        Ok(groups.into_values().collect())
    }

    async fn oldest_dead_letter(&self) -> PortResult<Option<TimeMs>> {
        let dead = self.dead(|_, _| true);
        Ok(dead.iter().map(|(record, _)| record.ended_at.unwrap_or(record.due_at)).min())
    }

    async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Record>> {
        let shown = self.dead(|record, reason| {
            let delivery = &record.delivery;
            filter.tenant.as_ref().is_none_or(|tenant| *tenant == delivery.tenant)
                && filter.destination.as_ref().is_none_or(|name| *name == delivery.destination)
                && filter.reason.is_none_or(|wanted| wanted == reason)
                && filter.ended_before.is_none_or(|before| record.ended_at.is_some_and(|at| at < before))
        });
        let keyed = shown.into_iter().map(|(record, reason)| {
            let delivery = &record.delivery;
            let oldest_first = ascending(record.ended_at.unwrap_or(record.due_at));
            let parts = [
                delivery.tenant.as_str(),
                delivery.destination.as_str(),
                reason.as_str(),
                &oldest_first,
                delivery.id.as_str(),
            ];
            (key(parts), record)
        });
        Ok(page(keyed.collect(), limit, from))
    }
}

impl MemoryLedger {
    /// The dead letters that are `wanted`; what is not is not even copied.
    fn dead(&self, wanted: impl Fn(&Record, DeadLetterReason) -> bool) -> Vec<(Record, DeadLetterReason)> {
        let store = self.store();
        let dead = store.rows.values().filter_map(|row| {
            let reason = row.record.dead_letter_reason()?;
            wanted(&row.record, reason).then(|| (row.record.clone(), reason))
        });
        dead.collect()
    }
}

fn shows(filter: &Filter, record: &Record) -> bool {
    let delivery = &record.delivery;
    filter.tenant.as_ref().is_none_or(|tenant| *tenant == delivery.tenant)
        && filter.destination.as_ref().is_none_or(|name| *name == delivery.destination)
        && filter.state.is_none_or(|state| state == record.state)
        && filter.since.is_none_or(|since| delivery.first_queued_at >= since)
}
