//! The budgets of destinations in memory.

use waybill_domain::budget::Usage;
use waybill_domain::identity::DestinationName;
use waybill_domain::suspension::Health;
use waybill_service::ports::{Budgets, KeptUsage, PortResult, UsageSet};

use super::clauses::Clause;
use super::ledger::MemoryLedger;

impl Budgets for MemoryLedger {
    async fn usage(&self, destination: &DestinationName) -> PortResult<KeptUsage> {
        Ok(self.peek_usage(destination))
    }

    async fn set_usage(
        &self,
        destination: &DestinationName,
        expected: u64,
        usage: &Usage,
    ) -> PortResult<UsageSet> {
        let mut store = self.store();
        let is_compared = store.compares(Clause::UsageRevision);
        let kept = store.budgets.entry(destination.clone()).or_default();
        if is_compared && kept.revision != expected {
            return Ok(UsageSet::Lost(kept.clone()));
        }
        *kept = KeptUsage { revision: kept.revision.max(expected) + 1, usage: usage.clone() };
        Ok(UsageSet::Landed)
    }
}

impl MemoryLedger {
    /// What is used of a budget, looked at without asking a port. Its revision counts the writes.
    pub fn peek_usage(&self, destination: &DestinationName) -> KeptUsage {
        self.store().budgets.get(destination).cloned().unwrap_or_default()
    }

    /// Reads how a destination does without copying it.
    pub fn inspect_health<T>(
        &self,
        destination: &DestinationName,
        look: impl FnOnce(&Health) -> T,
    ) -> Option<T> {
        self.store().budgets.get(destination).map(|kept| look(&kept.usage.health))
    }
}
