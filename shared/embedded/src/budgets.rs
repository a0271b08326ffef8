//! The budgets of destinations: one row each, whose revision every write compares.

use rusqlite::{Connection, OptionalExtension as _, params};
use waybill_domain::budget::Usage;
use waybill_domain::identity::DestinationName;
use waybill_service::ports::{Budgets, Clock, KeptUsage, PortResult, UsageSet};

use crate::fault::Fault;
use crate::rows;
use crate::store::{EmbeddedStore, LEDGER};

const SELECT: &str = "SELECT revision, usage FROM budget WHERE destination = ?";

const INSERT: &str = "
    INSERT INTO budget (destination, revision, usage) VALUES (?1, 1, ?2) ON CONFLICT DO NOTHING";

const UPDATE: &str = "
    UPDATE budget SET revision = revision + 1, usage = ?2 WHERE destination = ?1 AND revision = ?3";

impl<C: Clock + 'static> Budgets for EmbeddedStore<C> {
    async fn usage(&self, destination: &DestinationName) -> PortResult<KeptUsage> {
        let destination = destination.clone();
        self.read(LEDGER, move |conn| select(conn, &destination)).await
    }

    async fn set_usage(
        &self,
        destination: &DestinationName,
        expected: u64,
        usage: &Usage,
    ) -> PortResult<UsageSet> {
        let destination = destination.clone();
        let text = serde_json::to_string(usage)
            .map_err(|cause| unreadable(&destination, cause))
            .map_err(|fault| fault.at(LEDGER))?;
        let setting = self.write(LEDGER, move |conn| {
            let name = destination.as_str();
            let written = match expected {
                0 => conn.prepare_cached(INSERT)?.execute(params![name, text])?,
                _ => conn.prepare_cached(UPDATE)?.execute(params![name, text, expected.cast_signed()])?,
            };
            match written {
                0 => Ok(UsageSet::Lost(select(conn, &destination)?)),
                _ => Ok(UsageSet::Landed),
            }
        });
        setting.await
    }
}

fn select(conn: &Connection, destination: &DestinationName) -> Result<KeptUsage, Fault> {
    let mut select = conn.prepare_cached(SELECT)?;
    let stored = select
        .query_row([destination.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?;
    let Some((revision, text)) = stored else { return Ok(KeptUsage::default()) };
    let usage = rows::from_json("budget", destination, &text)?;
    Ok(KeptUsage { revision: revision.cast_unsigned(), usage })
}

fn unreadable(destination: &DestinationName, cause: serde_json::Error) -> Fault {
    Fault::Unreadable { what: "budget", key: destination.to_string(), cause }
}
