//! What an operator asks for: listings, and dead letters by reason.
//!
//! Indexes name the deliveries and lag behind; every record shown is read strongly, and what does
//! not match any more is left out. So a page may be short, or empty, while more follows.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use waybill_domain::delivery::Record;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::{DeliveryId, DeliveryKey, DestinationName, TenantId};
use waybill_domain::time::TimeMs;
use waybill_service::ports::{
    Catalogue, Cursor, DeadLetterFilter, DeadLetterGroup, Filter, Ledger, Page, PortResult,
};

use crate::fault::{Fault, LEDGER};
use crate::ledger::DynamoLedger;
use crate::payloads::BigPayloads;
use crate::range::{self, Placed, Range};
use crate::registry;
use crate::table::{self, BY_DAY, DEAD, LAST, NEVER};

/// How many records are read at once.
const AT_ONCE: usize = 16;

/// How many ranges one page reads at most: days without a match are passed over page by page.
const MOST_RANGES: usize = 50;

impl<P: BigPayloads> Catalogue for DynamoLedger<P> {
    async fn list(&self, filter: &Filter, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Record>> {
        let mut place = ListPlace::read(range::place("list", from)?, filter)?;
        let (limit, mut ranges) = (limit.max(1), 0);
        let mut items = Vec::new();
        for tenant in self.tenants(filter.tenant.as_ref(), &place.tenant).await? {
            place.enter(&tenant);
            let since = filter.since.map_or_else(|| "!".to_owned(), table::date);
            let mut days =
                registry::names(&self.client, &self.table, &table::days(&tenant), &since, &place.day).await?;
            while let Some(day) = days.pop() {
                if ranges == MOST_RANGES {
                    place.enter_day(&day);
                    return Ok(place.page(items));
                }
                ranges += 1;
                place.enter_day(&day);
                if self.list_day(filter, &mut place, limit, &mut items).await? {
                    return Ok(place.page(items));
                }
            }
        }
        Ok(Page { items, next: None })
    }

    async fn find(&self, id: &DeliveryId) -> PortResult<Vec<Record>> {
        let mut keys = Vec::new();
        for tenant in self.tenants(None, "!").await? {
            keys.push(DeliveryKey { tenant: tenant_id(&tenant)?, delivery_id: id.clone() });
        }
        self.records(keys).await
    }

    async fn dead_letter_summary(&self, tenant: Option<&TenantId>) -> PortResult<Vec<DeadLetterGroup>> {
        let mut summary = Vec::new();
        for tenant in self.tenants(tenant, "!").await? {
            let mut groups: BTreeMap<(String, String), DeadLetterGroup> = BTreeMap::new();
            let everything = self.range(DEAD, "!".to_owned(), LAST.to_owned());
            for placed in everything.merged(&shards(&tenant), usize::MAX).await? {
                let dead = DeadPlace::read(&placed)?;
                let group = DeadLetterGroup {
                    tenant: placed.key.tenant.clone(),
                    destination: DestinationName::parse(dead.destination).map_err(refused)?,
                    reason: DeadLetterReason::try_from(dead.reason.to_owned()).map_err(refused)?,
                    count: 0,
                    oldest_ended_at: dead.ended_at,
                    nearest_deadline: None,
                };
                let group = groups.entry((dead.destination.into(), dead.reason.into())).or_insert(group);
                group.count += 1;
                group.oldest_ended_at = group.oldest_ended_at.min(dead.ended_at);
                group.nearest_deadline = group.nearest_deadline.into_iter().chain(dead.deadline).min();
            }
            summary.extend(groups.into_values());
        }
        Ok(summary)
    }

    async fn oldest_dead_letter(&self) -> PortResult<Option<TimeMs>> {
        let tenants = self.tenants(None, "!").await?;
        let asking = stream::iter(tenants).map(|tenant| self.oldest_dead_letter_of(tenant));
        let oldest: Vec<Option<TimeMs>> = asking.buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(oldest.into_iter().flatten().min())
    }

    async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Record>> {
        let (from_tenant, place) = match range::place("dead", from)? {
            Some(place) => place.split_once('/').unwrap_or((place, "")),
            None => ("!", ""),
        };
        let limit = limit.max(1);
        let mut items = Vec::new();
        for tenant in self.tenants(filter.tenant.as_ref(), from_tenant).await? {
            let (first, to) = dead_range(filter);
            let mut from = if tenant == from_tenant { range::after(place).max(first) } else { first };
            loop {
                let wanted = limit - items.len();
                let range = self.range(DEAD, from, to.clone());
                let found = range.merged(&shards(&tenant), wanted).await?;
                let is_last = found.len() < wanted;
                let Some(last) = found.last().map(|placed| placed.order.clone()) else { break };
                let mut keys = Vec::new();
                for placed in found {
                    if matches(filter, &DeadPlace::read(&placed)?) {
                        keys.push(placed.key);
                    }
                }
                let records = self.records(keys).await?;
                items.extend(records.into_iter().filter(|record| record.dead_letter_reason().is_some()));
                if items.len() >= limit {
                    let next = Some(range::cursor("dead", &format!("{tenant}/{last}")));
                    return Ok(Page { items, next });
                }
                if is_last {
                    break;
                }
                from = range::after(&last);
            }
        }
        Ok(Page { items, next: None })
    }
}

impl<P: BigPayloads> DynamoLedger<P> {
    /// The tenant that is asked for, or all from this name on.
    async fn tenants(&self, wanted: Option<&TenantId>, from: &str) -> PortResult<Vec<String>> {
        match wanted {
            Some(tenant) => Ok(vec![tenant.as_str().to_owned()]),
            None => registry::names(&self.client, &self.table, table::TENANTS, from, LAST).await,
        }
    }

    /// From group to group: the first of each is its oldest.
    async fn oldest_dead_letter_of(&self, tenant: String) -> PortResult<Option<TimeMs>> {
        let (shards, mut from) = (shards(&tenant), "!".to_owned());
        let mut oldest: Option<TimeMs> = None;
        while let Some(placed) = self.range(DEAD, from, LAST.to_owned()).merged(&shards, 1).await?.pop() {
            let DeadPlace { destination, reason, ended_at, .. } = DeadPlace::read(&placed)?;
            oldest = Some(oldest.map_or(ended_at, |oldest| oldest.min(ended_at)));
            from = format!("{destination}#{reason}#{LAST}");
        }
        Ok(oldest)
    }

    /// The records under these keys, in this order, without those that are gone.
    async fn records(&self, keys: Vec<DeliveryKey>) -> PortResult<Vec<Record>> {
        let reading = stream::iter(keys).map(|key| async move { self.load(&key).await });
        let read: Vec<Option<Record>> = reading.buffered(AT_ONCE).try_collect().await?;
        Ok(read.into_iter().flatten().collect())
    }

    /// Lists one day on from `place`; whether the page is full.
    async fn list_day(
        &self,
        filter: &Filter,
        place: &mut ListPlace,
        limit: usize,
        items: &mut Vec<Record>,
    ) -> PortResult<bool> {
        let day = table::day(&place.tenant, &place.day);
        loop {
            let from = filter.since.map_or_else(|| "!".to_owned(), table::digits);
            let below = if place.below == LAST { LAST.to_owned() } else { range::before(&place.below) };
            let wanted = limit - items.len();
            let range = Range { newest_first: true, ..self.range(BY_DAY, from, below) };
            let found = range.merged(std::slice::from_ref(&day), wanted).await?;
            let is_last = found.len() < wanted;
            let Some(last) = found.last() else { return Ok(false) };
            place.below = last.order.clone();
            let records = self.records(found.into_iter().map(|placed| placed.key).collect()).await?;
            items.extend(records.into_iter().filter(|record| is_listed(filter, record)));
            if items.len() >= limit {
                return Ok(true);
            }
            if is_last {
                return Ok(false);
            }
        }
    }
}

fn is_listed(filter: &Filter, record: &Record) -> bool {
    let delivery = &record.delivery;
    filter.destination.as_ref().is_none_or(|destination| *destination == delivery.destination)
        && filter.state.is_none_or(|state| state == record.state)
        && filter.since.is_none_or(|since| delivery.first_queued_at >= since)
}

/// Where a listing of deliveries goes on: in this tenant's day, below this place.
struct ListPlace {
    tenant: String,
    day: String,
    below: String,
}

impl ListPlace {
    fn read(cursor: Option<&str>, filter: &Filter) -> PortResult<Self> {
        let Some(place) = cursor else {
            return Ok(Self { tenant: "!".to_owned(), day: LAST.to_owned(), below: LAST.to_owned() });
        };
        let parts: Vec<&str> = place.splitn(3, '/').collect();
        let [tenant, day, below] = parts[..] else {
            return Err(refused(format!("{place:?} is not a place in this listing")));
        };
        // Or a place in one tenant's listing would lead into it from another's.
        if filter.tenant.as_ref().is_some_and(|wanted| wanted.as_str() != tenant) {
            return Err(refused("the place belongs to another tenant's listing"));
        }
        Ok(Self { tenant: tenant.to_owned(), day: day.to_owned(), below: below.to_owned() })
    }

    /// To the newest day of a tenant, unless the place is within this tenant already.
    fn enter(&mut self, tenant: &str) {
        if self.tenant != tenant {
            *self = Self { tenant: tenant.to_owned(), day: LAST.to_owned(), below: LAST.to_owned() };
        }
    }

    /// To the newest delivery of a day, unless the place is within this day already.
    fn enter_day(&mut self, day: &str) {
        if self.day != day {
            (self.day, self.below) = (day.to_owned(), LAST.to_owned());
        }
    }

    fn page(self, items: Vec<Record>) -> Page<Record> {
        let place = format!("{}/{}/{}", self.tenant, self.day, self.below);
        Page { items, next: Some(range::cursor("list", &place)) }
    }
}

/// What an index of dead letters tells of one.
struct DeadPlace<'a> {
    destination: &'a str,
    reason: &'a str,
    ended_at: TimeMs,
    deadline: Option<TimeMs>,
}

impl<'a> DeadPlace<'a> {
    fn read(placed: &'a Placed) -> PortResult<Self> {
        let parts: Vec<&str> = placed.order.split('#').collect();
        let time = |digits: &str| digits.parse().map(TimeMs::from_unix_ms).ok();
        if let [destination, reason, ended_at, _, deadline] = parts[..]
            && let Some(ended_at) = time(ended_at)
        {
            let deadline = time(deadline).filter(|_| deadline != NEVER);
            return Ok(Self { destination, reason, ended_at, deadline });
        }
        Err(refused(format!("{:?} is no place of a dead letter", placed.order)))
    }
}

/// Where the dead letters that match begin and end, as far as their order tells.
fn dead_range(filter: &DeadLetterFilter) -> (String, String) {
    let Some(destination) = &filter.destination else { return ("!".to_owned(), LAST.to_owned()) };
    match filter.reason {
        Some(reason) => (format!("{destination}#{reason}#"), format!("{destination}#{reason}#{LAST}")),
        None => (format!("{destination}#"), format!("{destination}#{LAST}")),
    }
}

fn matches(filter: &DeadLetterFilter, dead: &DeadPlace<'_>) -> bool {
    filter.destination.as_ref().is_none_or(|destination| destination.as_str() == dead.destination)
        && filter.reason.is_none_or(|reason| reason.as_str() == dead.reason)
        && filter.ended_before.is_none_or(|before| dead.ended_at < before)
}

fn shards(tenant: &str) -> Vec<String> {
    (0..table::DEAD_SHARDS).map(|shard| table::dead_shard(tenant, shard)).collect()
}

fn tenant_id(name: &str) -> PortResult<TenantId> {
    TenantId::parse(name).map_err(refused)
}

fn refused(fault: impl ToString) -> waybill_service::ports::PortError {
    Fault::Refused(fault.to_string()).at(LEDGER)
}
