//! What operators ask of the ledger.

use waybill_domain::delivery::{Record, State};
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::{DeliveryId, DestinationName, TenantId};
use waybill_domain::time::TimeMs;

use super::{Cursor, Page, PortResult};

/// What an operator may ask of the ledger beside single deliveries.
pub trait Catalogue: Send + Sync {
    /// Records that match, by tenant, newest first within a tenant.
    fn list(
        &self,
        filter: &Filter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> impl Future<Output = PortResult<Page<Record>>> + Send;

    /// Every record with this ID: one, unless two tenants' identifiers met.
    fn find(&self, id: &DeliveryId) -> impl Future<Output = PortResult<Vec<Record>>> + Send;

    /// Dead letters, counted by tenant, destination and reason, in this order; of one tenant or all.
    fn dead_letter_summary(
        &self,
        tenant: Option<&TenantId>,
    ) -> impl Future<Output = PortResult<Vec<DeadLetterGroup>>> + Send;

    /// When the oldest dead letter of all tenants ended; `None` where there is none. Costs a look for
    /// each tenant, destination and reason that has some, however many these are.
    fn oldest_dead_letter(&self) -> impl Future<Output = PortResult<Option<TimeMs>>> + Send;

    /// Dead letters that match, by tenant, destination and reason, oldest first within these.
    fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> impl Future<Output = PortResult<Page<Record>>> + Send;
}

/// Which records a listing shows. Absent fields match everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Of this tenant.
    pub tenant: Option<TenantId>,
    /// To this destination.
    pub destination: Option<DestinationName>,
    /// In this state.
    pub state: Option<State>,
    /// First queued at this time or later.
    pub since: Option<TimeMs>,
}

/// Which dead letters a listing shows. Absent fields match everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeadLetterFilter {
    /// Of this tenant.
    pub tenant: Option<TenantId>,
    /// To this destination.
    pub destination: Option<DestinationName>,
    /// Dead-lettered for this reason.
    pub reason: Option<DeadLetterReason>,
    /// Ended before this time: what ended later is not in a plan made at it.
    pub ended_before: Option<TimeMs>,
}

/// Dead letters of one tenant and destination that ended for one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetterGroup {
    /// Whose.
    pub tenant: TenantId,
    /// To whom.
    pub destination: DestinationName,
    /// Why automation ended.
    pub reason: DeadLetterReason,
    /// How many there are; at least 1.
    pub count: u64,
    /// When the oldest of them ended.
    pub oldest_ended_at: TimeMs,
    /// The nearest deadline among them, passed or not; `None` where none has one.
    pub nearest_deadline: Option<TimeMs>,
}
