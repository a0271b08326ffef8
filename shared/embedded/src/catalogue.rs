//! What an operator asks for: listings, and dead letters by reason.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};
use waybill_domain::delivery::Record;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::{DeliveryId, DestinationName, TenantId};
use waybill_domain::time::TimeMs;
use waybill_service::ports::{
    Catalogue, Clock, Cursor, DeadLetterFilter, DeadLetterGroup, Filter, Page, PortResult,
};

use crate::cursor::{self, Placed};
use crate::fault::Fault;
use crate::rows::{self, text};
use crate::store::{EmbeddedStore, LEDGER};

/// Where a listing of deliveries goes on: tenant, first queueing, delivery ID.
type ListPlace = (String, i64, String);

/// What dead letters are listed by, in this order.
const DEAD_LETTER_ORDER: [&str; 5] = ["tenant", "destination", "reason", "ended_at", "delivery_id"];

/// Where a listing of dead letters goes on: [`DEAD_LETTER_ORDER`].
pub(crate) type DeadLetterPlace = (String, String, String, i64, String);

impl<C: Clock + 'static> Catalogue for EmbeddedStore<C> {
    async fn list(&self, filter: &Filter, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Record>> {
        let filter = filter.clone();
        let from = cursor::read::<ListPlace>("list", from).map_err(|fault| fault.at(LEDGER))?;
        self.read(LEDGER, move |conn| list(conn, &filter, limit, from)).await
    }

    async fn find(&self, id: &DeliveryId) -> PortResult<Vec<Record>> {
        const SQL: &str =
            "SELECT tenant, delivery_id, record FROM delivery WHERE delivery_id = ? ORDER BY tenant";
        let id = id.clone();
        let reading = self.read(LEDGER, move |conn| {
            let mut find = conn.prepare_cached(SQL)?;
            let mut found = find.query([id.as_str()])?;
            let mut records = Vec::new();
            while let Some(row) = found.next()? {
                records.push(rows::record(row)?);
            }
            Ok(records)
        });
        reading.await
    }

    async fn dead_letter_summary(&self, tenant: Option<&TenantId>) -> PortResult<Vec<DeadLetterGroup>> {
        let query = summary(tenant);
        let reading = self.read(LEDGER, move |conn| {
            let mut summary = conn.prepare_cached(&query.sql)?;
            let mut groups = summary.query(params_from_iter(query.values))?;
            let mut found = Vec::new();
            while let Some(row) = groups.next()? {
                found.push(group(row)?);
            }
            Ok(found)
        });
        reading.await
    }

    async fn oldest_dead_letter(&self) -> PortResult<Option<TimeMs>> {
        self.read(LEDGER, oldest_dead_letter).await
    }

    async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Record>> {
        let from = cursor::read::<DeadLetterPlace>("dead", from).map_err(|fault| fault.at(LEDGER))?;
        let (limit, further) = cursor::one_further(limit);
        let query = dead_letters(filter, from, further);
        let reading = self.read(LEDGER, move |conn| {
            let mut select = conn.prepare_cached(&query.sql)?;
            let found = select.query(params_from_iter(query.values))?;
            Ok(cursor::page("dead", cursor::placed(found, 3, rows::record)?, limit))
        });
        reading.await
    }
}

/// What a person closed is still in the state `dead_lettered`, and has no reason any more.
const DEAD: &str = "state = 'dead_lettered' AND reason IS NOT NULL";

pub(crate) fn summary(tenant: Option<&TenantId>) -> Query {
    let mut query = Query::new(&format!(
        "SELECT tenant, destination, reason, count(*), min(ended_at), min(deadline)
         FROM delivery INDEXED BY delivery_by_reason WHERE {DEAD}",
    ));
    if let Some(tenant) = tenant {
        query.and("tenant = ?", [Value::from(tenant.as_str().to_owned())]);
    }
    query.end("GROUP BY tenant, destination, reason ORDER BY tenant, destination, reason");
    query
}

/// From group to group: the first of each is its oldest, and the index leads past the others.
fn oldest_dead_letter(conn: &Connection) -> Result<Option<TimeMs>, Fault> {
    let mut next = conn.prepare_cached(&oldest_of_next_group())?;
    let mut group = [String::new(), String::new(), String::new()];
    let mut oldest: Option<i64> = None;
    loop {
        let found = next.query_row(params_from_iter(&group), |row| {
            Ok(([row.get(0)?, row.get(1)?, row.get(2)?], row.get::<_, i64>(3)?))
        });
        let Some((found, ended_at)) = found.optional()? else { break };
        group = found;
        oldest = Some(oldest.map_or(ended_at, |oldest| oldest.min(ended_at)));
    }
    Ok(oldest.map(TimeMs::from_unix_ms))
}

pub(crate) fn oldest_of_next_group() -> String {
    format!(
        "SELECT tenant, destination, reason, ended_at FROM delivery INDEXED BY delivery_by_reason
         WHERE {DEAD} AND (tenant, destination, reason) > (?, ?, ?)
         ORDER BY tenant, destination, reason, ended_at LIMIT 1",
    )
}

/// Tenant by tenant, so that each is one range of the index, read backwards.
fn list(
    conn: &Connection,
    filter: &Filter,
    limit: usize,
    from: Option<ListPlace>,
) -> Result<Page<Record>, Fault> {
    let (limit, further) = cursor::one_further(limit);
    let wanted = filter.tenant.as_ref().map(|tenant| tenant.as_str().to_owned());
    let (mut tenant, mut below) = match from {
        // Or a place in one tenant's listing would lead into it from another's.
        Some((tenant, ..)) if wanted.as_ref().is_some_and(|wanted| *wanted != tenant) => {
            return Err(Fault::Refused(format!("the place belongs to another listing than {wanted:?}'s")));
        }
        Some((tenant, at, id)) => (Some(tenant), Some((at, id))),
        None if wanted.is_some() => (wanted.clone(), None),
        None => (tenant_after(conn, "")?, None),
    };
    let mut found: Vec<Placed<Record>> = Vec::new();
    while let Some(current) = tenant {
        let query = list_of_tenant(filter, &current, below.take(), further - found.len() as i64);
        let mut select = conn.prepare_cached(&query.sql)?;
        let rows = select.query(params_from_iter(query.values))?;
        found.extend(cursor::placed(rows, 3, rows::record)?);
        let enough = found.len() > limit || wanted.is_some();
        tenant = if enough { None } else { tenant_after(conn, &current)? };
    }
    Ok(cursor::page("list", found, limit))
}

pub(crate) fn list_of_tenant(
    filter: &Filter,
    tenant: &str,
    below: Option<(i64, String)>,
    rows: i64,
) -> Query {
    let mut query = Query::new(
        "SELECT tenant, delivery_id, record, json_array(tenant, first_queued_at, delivery_id)
         FROM delivery INDEXED BY delivery_by_time WHERE tenant = ?",
    );
    query.values.push(tenant.to_owned().into());
    if let Some((at, id)) = below {
        query.and("(first_queued_at, delivery_id) < (?, ?)", [at.into(), id.into()]);
    }
    if let Some(since) = filter.since {
        query.and("first_queued_at >= ?", [since.as_unix_ms().into()]);
    }
    if let Some(destination) = &filter.destination {
        query.and("destination = ?", [destination.as_str().to_owned().into()]);
    }
    if let Some(state) = filter.state {
        query.and("state = ?", [state.as_str().to_owned().into()]);
    }
    query.end("ORDER BY first_queued_at DESC, delivery_id DESC LIMIT ?");
    query.values.push(rows.into());
    query
}

fn tenant_after(conn: &Connection, tenant: &str) -> Result<Option<String>, Fault> {
    const SQL: &str = "SELECT tenant FROM delivery WHERE tenant > ? ORDER BY tenant LIMIT 1";
    Ok(conn.prepare_cached(SQL)?.query_row([tenant], |row| row.get(0)).optional()?)
}

pub(crate) fn dead_letters(filter: &DeadLetterFilter, from: Option<DeadLetterPlace>, rows: i64) -> Query {
    let mut query = Query::new(&format!(
        "SELECT tenant, delivery_id, record, json_array(tenant, destination, reason, ended_at, delivery_id)
         FROM delivery INDEXED BY delivery_by_reason WHERE {DEAD}",
    ));
    let fixed = [
        filter.tenant.as_ref().map(|tenant| tenant.as_str()),
        filter.destination.as_ref().map(|destination| destination.as_str()),
        filter.reason.as_ref().map(|reason| reason.as_str()),
    ];
    for (column, value) in DEAD_LETTER_ORDER.iter().zip(fixed) {
        if let Some(value) = value {
            query.and(&format!("{column} = ?"), [value.to_owned().into()]);
        }
    }
    if let Some(before) = filter.ended_before {
        query.and("ended_at < ?", [before.as_unix_ms().into()]);
    }
    if let Some((tenant, destination, reason, ended_at, id)) = from {
        // Only what the filter leaves open is compared: then the index leads straight to the place.
        let equal = fixed.iter().take_while(|value| value.is_some()).count();
        let open = DEAD_LETTER_ORDER[equal..].join(", ");
        let marks = vec!["?"; DEAD_LETTER_ORDER.len() - equal].join(", ");
        let place: [Value; 5] =
            [tenant.into(), destination.into(), reason.into(), ended_at.into(), id.into()];
        query.and(&format!("({open}) > ({marks})"), place.into_iter().skip(equal));
    }
    query.end(&format!("ORDER BY {} LIMIT ?", DEAD_LETTER_ORDER.join(", ")));
    query.values.push(rows.into());
    query
}

fn group(row: &Row<'_>) -> Result<DeadLetterGroup, Fault> {
    let refuse = |fault| Fault::Refused(format!("a group of dead letters cannot be read: {fault}"));
    Ok(DeadLetterGroup {
        tenant: TenantId::parse(text(row, 0)?).map_err(refuse)?,
        destination: DestinationName::parse(text(row, 1)?).map_err(refuse)?,
        reason: DeadLetterReason::try_from(text(row, 2)?.to_owned()).map_err(refuse)?,
        count: row.get::<_, i64>(3)?.unsigned_abs(),
        oldest_ended_at: TimeMs::from_unix_ms(row.get(4)?),
        nearest_deadline: row.get::<_, Option<i64>>(5)?.map(TimeMs::from_unix_ms),
    })
}

/// A query whose clauses depend on the filter. Values are always bound, never written into it.
pub(crate) struct Query {
    pub(crate) sql: String,
    values: Vec<Value>,
}

impl Query {
    fn new(beginning: &str) -> Self {
        Self { sql: beginning.to_owned(), values: Vec::new() }
    }

    fn and(&mut self, clause: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(clause);
        self.values.extend(values);
    }

    fn end(&mut self, ending: &str) {
        self.sql.push(' ');
        self.sql.push_str(ending);
    }
}
