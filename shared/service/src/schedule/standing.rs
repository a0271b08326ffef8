//! How a schedule stands for one of its tenants: what is next, what was last and what became of it, and
//! what is owed. Asks the same questions as a tick, and changes nothing.

use waybill_domain::delivery::Record;
use waybill_domain::identity::TenantId;
use waybill_domain::schedule::{Clocks, Coming, Window, owed};
use waybill_domain::time::TimeMs;

use super::{key_of, key_under, under_former_ids};
use crate::config::{Config, Schedule};
use crate::ports::{Ledger, PortResult};

/// How far ahead a firing is looked for: in 28 years every date falls on every weekday.
const FARTHEST: usize = 366 * 28;
/// How far ahead it is said when the clocks on the wall jump at a firing.
const YEAR: usize = 366;

/// A schedule's standing for one tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// What it fires for next.
    pub next: Option<Coming>,
    /// Its next firing, within a year, at a time that the clocks skip or show twice.
    pub jump: Option<Coming>,
    /// The window that it fired for last within `catch_up`, with its delivery where there is one.
    pub last: Option<(Window, Option<Record>)>,
    /// Windows that have no delivery and get one at the next tick, the oldest first.
    pub owed: Vec<Window>,
    /// Windows within `catch_up` that have no delivery and get none: the schedule was not in force.
    pub before_it_began: usize,
}

/// Looks a schedule's windows up in the ledger.
pub async fn standing(
    ledger: &impl Ledger,
    config: &Config,
    schedule: &Schedule,
    tenant: &TenantId,
    now: TimeMs,
) -> PortResult<Standing> {
    let mut last = None;
    let mut known = Vec::new();
    for window in schedule.timing.closed_windows(schedule.catch_up, now) {
        let record = ledger.load(&key_of(schedule, tenant, &window)).await?;
        known.push((window, record.is_some()));
        last = Some((window, record));
    }
    let mut owed = owed(&known, schedule.since.get(tenant).copied(), config.applied_at);
    let mut without = known.iter().filter(|(_, is_published)| !is_published).count();
    for (window, ids) in under_former_ids(schedule, tenant, &known) {
        match (ledger.load(&key_under(ids, schedule, tenant, &window)).await?, &mut last) {
            (None, _) => owed.push(window),
            (Some(record), Some((newest, found))) if *newest == window => {
                *found = Some(record);
                without -= 1;
            }
            (Some(_), _) => without -= 1,
        }
    }
    owed.sort_by_key(|window| window.fires_at);
    Ok(Standing {
        next: schedule.timing.coming(now, FARTHEST).next(),
        jump: schedule.timing.coming(now, YEAR).find(|coming| coming.clocks != Clocks::Show),
        last,
        before_it_began: without - owed.len(),
        owed,
    })
}
