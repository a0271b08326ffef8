//! The delivery table: insert if absent, read, compare and set.

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use waybill_domain::delivery::{Change, Record};
use waybill_domain::identity::DeliveryKey;

use crate::fault::Fault;
use crate::rows::{self, Indexed};

const INSERT: &str = "
    INSERT INTO delivery (delivery_id, tenant, destination, first_queued_at, deadline,
                          state, revision, look_at, release_order, reason, ended_at, record)
    VALUES (:delivery_id, :tenant, :destination, :first_queued_at, :deadline,
            :state, :revision, :look_at, :release_order, :reason, :ended_at, :record)
    ON CONFLICT (delivery_id, tenant) DO NOTHING";

const SELECT: &str = "SELECT tenant, delivery_id, record FROM delivery WHERE delivery_id = ? AND tenant = ?";

const SELECT_PAYLOAD: &str = "
    SELECT bytes FROM payload JOIN delivery ON payload.delivery = delivery.id
    WHERE delivery_id = ? AND tenant = ?";

/// A change that moves no index: a claim. The last two lines say that it is one, so that none of
/// the indexes need be written.
const UPDATE_IN_PLACE: &str = "
    UPDATE delivery SET revision = :revision, record = :record
    WHERE delivery_id = :delivery_id AND tenant = :tenant
      AND state = :expected_state AND revision = :expected_revision
      AND state = :state AND look_at IS :look_at AND release_order IS :release_order
      AND reason IS :reason AND ended_at IS :ended_at";

/// Any change. The third line is the compare-and-set.
const UPDATE: &str = "
    UPDATE delivery SET revision = :revision, record = :record, state = :state, look_at = :look_at,
                        release_order = :release_order, reason = :reason, ended_at = :ended_at
    WHERE delivery_id = :delivery_id AND tenant = :tenant
      AND state = :expected_state AND revision = :expected_revision";

/// Stores a new record and answers its `id`; `None` if there is one already.
pub(crate) fn insert(conn: &Connection, record: &Record, text: &str) -> Result<Option<i64>, Fault> {
    let Indexed { state, revision, look_at, release_order, reason, ended_at } = Indexed::of(record);
    let delivery = &record.delivery;
    let inserted = conn.prepare_cached(INSERT)?.execute(named_params! {
        ":delivery_id": delivery.id.as_str(),
        ":tenant": delivery.tenant.as_str(),
        ":destination": delivery.destination.as_str(),
        ":first_queued_at": delivery.first_queued_at.as_unix_ms(),
        ":deadline": delivery.deadline.map(|at| at.as_unix_ms()),
        ":state": state,
        ":revision": revision,
        ":look_at": look_at,
        ":release_order": release_order,
        ":reason": reason,
        ":ended_at": ended_at,
        ":record": text,
    })?;
    Ok((inserted == 1).then(|| conn.last_insert_rowid()))
}

/// The record that is stored.
pub(crate) fn select(conn: &Connection, key: &DeliveryKey) -> Result<Option<Record>, Fault> {
    let mut select = conn.prepare_cached(SELECT)?;
    let mut found = select.query(primary(key))?;
    found.next()?.map(rows::record).transpose()
}

/// Makes the change if the stored record has the expected state and revision; whether it did.
pub(crate) fn compare_and_set(conn: &Connection, change: &Change, text: &str) -> Result<bool, Fault> {
    let (expected, after) = (change.expected(), change.after());
    // Only a change within its state can leave every index alone.
    let in_place = expected.state == after.state && update(conn, UPDATE_IN_PLACE, change, text)?;
    Ok(in_place || update(conn, UPDATE, change, text)?)
}

fn update(conn: &Connection, sql: &str, change: &Change, text: &str) -> Result<bool, Fault> {
    let (expected, after) = (change.expected(), change.after());
    let Indexed { state, revision, look_at, release_order, reason, ended_at } = Indexed::of(after);
    let updated = conn.prepare_cached(sql)?.execute(named_params! {
        ":delivery_id": after.delivery.id.as_str(),
        ":tenant": after.delivery.tenant.as_str(),
        ":expected_state": expected.state.as_str(),
        ":expected_revision": expected.revision.cast_signed(),
        ":state": state,
        ":revision": revision,
        ":look_at": look_at,
        ":release_order": release_order,
        ":reason": reason,
        ":ended_at": ended_at,
        ":record": text,
    })?;
    Ok(updated == 1)
}

/// The parts of the primary key, in the order of its index.
pub(crate) fn primary(key: &DeliveryKey) -> [&str; 2] {
    [key.delivery_id.as_str(), key.tenant.as_str()]
}

/// The frozen bytes of a delivery.
pub(crate) fn select_payload(conn: &Connection, key: &DeliveryKey) -> Result<Option<Vec<u8>>, Fault> {
    let mut select = conn.prepare_cached(SELECT_PAYLOAD)?;
    Ok(select.query_row(primary(key), |row: &Row<'_>| row.get(0)).optional()?)
}
