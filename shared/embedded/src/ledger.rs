//! The ledger: each change is one compare-and-set in one transaction.

use bytes::Bytes;
use rusqlite::params;
use waybill_domain::attempt::Attempt;
use waybill_domain::delivery::{Change, Record};
use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::time::TimeMs;
use waybill_service::ports::{Applied, Clock, Created, Cursor, Ledger, Page, PortResult};

use crate::cursor;
use crate::delivery::{compare_and_set, insert, primary, select, select_payload};
use crate::fault::Fault;
use crate::rows;
use crate::store::{EmbeddedStore, LEDGER};

const INSERT_PAYLOAD: &str = "INSERT INTO payload (delivery, bytes) VALUES (?, ?)";

const INSERT_ATTEMPT: &str = "
    INSERT INTO attempt (delivery_id, tenant, number, token, witness, evidence) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (delivery_id, tenant, number, token, witness) DO NOTHING";

const SELECT_ATTEMPTS: &str = "SELECT evidence FROM attempt WHERE delivery_id = ? AND tenant = ?";

pub(crate) const DUE: &str = "
    SELECT tenant, delivery_id, json_array(look_at, tenant, delivery_id) FROM delivery
    WHERE look_at IS NOT NULL AND look_at <= ?1 AND (look_at, tenant, delivery_id) > (?2, ?3, ?4)
    ORDER BY look_at, tenant, delivery_id LIMIT ?5";

pub(crate) const HELD: &str = "
    SELECT tenant, delivery_id, json_array(release_order, tenant, delivery_id) FROM delivery
    WHERE release_order IS NOT NULL AND destination = ?1
      AND (release_order, tenant, delivery_id) > (?2, ?3, ?4)
    ORDER BY release_order, tenant, delivery_id LIMIT ?5";

/// From one name to the next, so that it costs as much as there are destinations, not deliveries.
pub(crate) const HELD_DESTINATIONS: &str = "
    WITH RECURSIVE found (name) AS (
        SELECT min(destination) FROM delivery WHERE release_order IS NOT NULL
        UNION ALL
        SELECT (SELECT min(destination) FROM delivery
                WHERE release_order IS NOT NULL AND destination > found.name)
        FROM found WHERE found.name IS NOT NULL
    )
    SELECT name FROM found WHERE name IS NOT NULL";

impl<C: Clock + 'static> Ledger for EmbeddedStore<C> {
    async fn create(&self, record: &Record, payload: &Bytes) -> PortResult<Created> {
        let (record, payload) = (record.clone(), payload.clone());
        let key = record.delivery.key();
        let text = rows::to_json("record", &key, &record).map_err(|fault| fault.at(LEDGER))?;
        // One transaction holds both, so that nobody ever sees the one without the other.
        let creation = self.write(LEDGER, move |conn| match insert(conn, &record, &text)? {
            Some(id) => {
                conn.prepare_cached(INSERT_PAYLOAD)?.execute(params![id, &payload[..]])?;
                Ok(Created::New)
            }
            None => match select(conn, &key)? {
                Some(stored) => Ok(Created::Exists(Box::new(stored))),
                None => Err(Fault::Refused(format!("{key} is neither stored nor can it be"))),
            },
        });
        creation.await
    }

    async fn load(&self, key: &DeliveryKey) -> PortResult<Option<Record>> {
        let key = key.clone();
        self.read(LEDGER, move |conn| select(conn, &key)).await
    }

    async fn load_all(&self, keys: &[DeliveryKey]) -> PortResult<Vec<PortResult<Option<Record>>>> {
        let keys = keys.to_vec();
        let reading = self.read(LEDGER, move |conn| {
            // As one transaction: whenever a reader begins one after somebody wrote, it forgets what it has
            // in its cache, and reads the way from the roots to the record anew.
            let snapshot = conn.unchecked_transaction()?;
            let records: Vec<_> = keys.iter().map(|key| select(&snapshot, key)).collect();
            Ok(records)
        });
        let records = reading.await?;
        Ok(records.into_iter().map(|record| record.map_err(|fault| fault.at(LEDGER))).collect())
    }

    async fn payload(&self, key: &DeliveryKey) -> PortResult<Option<Bytes>> {
        let key = key.clone();
        let bytes = self.read(LEDGER, move |conn| select_payload(conn, &key)).await?;
        Ok(bytes.map(Bytes::from))
    }

    async fn apply(&self, change: &Change) -> PortResult<Applied> {
        let change = change.clone();
        let key = change.after().delivery.key();
        let text = rows::to_json("record", &key, change.after()).map_err(|fault| fault.at(LEDGER))?;
        let application = self.write(LEDGER, move |conn| {
            if compare_and_set(conn, &change, &text)? {
                return Ok(Applied::Landed);
            }
            Ok(Applied::Lost(select(conn, &key)?.map(Box::new)))
        });
        application.await
    }

    async fn add_attempt(&self, key: &DeliveryKey, attempt: &Attempt) -> PortResult<()> {
        let key = key.clone();
        let (number, token) = (attempt.number.get(), attempt.token.as_str().to_owned());
        let witness = attempt.witness.as_str();
        let evidence = rows::to_json("attempt", &key, attempt).map_err(|fault| fault.at(LEDGER))?;
        let addition = self.write(LEDGER, move |conn| {
            let [id, tenant] = primary(&key);
            conn.prepare_cached(INSERT_ATTEMPT)?
                .execute(params![id, tenant, number, token, witness, evidence])?;
            Ok(())
        });
        addition.await
    }

    async fn attempts(&self, key: &DeliveryKey) -> PortResult<Vec<Attempt>> {
        let key = key.clone();
        let reading = self.read(LEDGER, move |conn| {
            let mut select = conn.prepare_cached(SELECT_ATTEMPTS)?;
            let mut stored = select.query(primary(&key))?;
            let mut attempts: Vec<Attempt> = Vec::new();
            while let Some(row) = stored.next()? {
                attempts.push(rows::from_json("attempt", &key, rows::text(row, 0)?)?);
            }
            // By the witnesses' own order, which is not that of their names.
            attempts.sort_by_key(|attempt| (attempt.number, attempt.witness));
            Ok(attempts)
        });
        reading.await
    }

    async fn due_for_look(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        let from = cursor::read::<(i64, String, String)>("look", from).map_err(|fault| fault.at(LEDGER))?;
        let reading = self.read(LEDGER, move |conn| {
            let (at, tenant, id) = from.unwrap_or((i64::MIN, String::new(), String::new()));
            let (limit, further) = cursor::one_further(limit);
            let mut due = conn.prepare_cached(DUE)?;
            let found = due.query(params![now.as_unix_ms(), at, tenant, id, further])?;
            Ok(cursor::page("look", cursor::placed(found, 2, rows::key)?, limit))
        });
        reading.await
    }

    async fn held_destinations(&self) -> PortResult<Vec<DestinationName>> {
        let reading = self.read(LEDGER, move |conn| {
            let mut select = conn.prepare_cached(HELD_DESTINATIONS)?;
            let mut stored = select.query([])?;
            let mut names = Vec::new();
            while let Some(row) = stored.next()? {
                names.push(rows::destination(row, 0)?);
            }
            Ok(names)
        });
        reading.await
    }

    async fn held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        let from = cursor::read::<(i64, String, String)>("held", from).map_err(|fault| fault.at(LEDGER))?;
        let destination = destination.clone();
        let reading = self.read(LEDGER, move |conn| {
            let (at, tenant, id) = from.unwrap_or((i64::MIN, String::new(), String::new()));
            let (limit, further) = cursor::one_further(limit);
            let mut held = conn.prepare_cached(HELD)?;
            let found = held.query(params![destination.as_str(), at, tenant, id, further])?;
            Ok(cursor::page("held", cursor::placed(found, 2, rows::key)?, limit))
        });
        reading.await
    }
}
