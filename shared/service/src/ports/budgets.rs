//! Where the budgets of destinations are kept: one small item each, changed by compare-and-set.

use std::future::Future;

use waybill_domain::budget::Usage;
use waybill_domain::identity::DestinationName;

use super::PortResult;

/// What is used of every destination's budget. Part of the ledger: a backend keeps it there.
pub trait Budgets: Send + Sync {
    /// What is used, read strongly; nothing, at revision 0, where nothing was ever stored.
    fn usage(&self, destination: &DestinationName) -> impl Future<Output = PortResult<KeptUsage>> + Send;

    /// Stores `usage` at revision `expected` + 1, if what is stored has the revision `expected`.
    ///
    /// A store's client may repeat a write of its own that had landed, and then answers `Lost` with
    /// it. The caller needs no mark to recognise it: to take and to give back once more changes nothing.
    fn set_usage(
        &self,
        destination: &DestinationName,
        expected: u64,
        usage: &Usage,
    ) -> impl Future<Output = PortResult<UsageSet>> + Send;
}

/// What is used of a budget, as stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptUsage {
    /// How often it was written.
    pub revision: u64,
    /// What is used.
    pub usage: Usage,
}

/// What became of a compare-and-set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageSet {
    /// It is stored, durably.
    Landed,
    /// Another revision was stored; nothing was changed. What is stored instead.
    Lost(KeptUsage),
}
