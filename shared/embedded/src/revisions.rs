//! The history of the configuration: a revision, its document and its audit entry are one
//! transaction.

use rusqlite::{Connection, OptionalExtension, Row, params};
use waybill_domain::audit::Entry;
use waybill_domain::identity::ConfigRevision;
use waybill_service::office::{Entered, Revision, Revisions};
use waybill_service::ports::{Clock, Cursor, Page, PortResult};

use crate::cursor;
use crate::fault::Fault;
use crate::office::{add, follows_head};
use crate::rows::{from_json, text, to_json};
use crate::store::{EmbeddedStore, LEDGER};

const NEWEST: &str = "SELECT number, facts FROM revision ORDER BY number DESC LIMIT 1";

const NEWEST_NUMBER: &str = "SELECT coalesce(max(number), 0) FROM revision";

const INSERT: &str = "INSERT INTO revision (number, facts) VALUES (?, ?)";

const HISTORY: &str = "
    SELECT number, facts, json_array(number) FROM revision WHERE number < ? ORDER BY number DESC LIMIT ?";

const DOCUMENT: &str = "SELECT text FROM document WHERE revision = ?";

const KEEP: &str = "INSERT INTO document (revision, text) VALUES (?, ?) ON CONFLICT (revision) DO NOTHING";

impl<C: Clock + 'static> Revisions for EmbeddedStore<C> {
    async fn in_force(&self) -> PortResult<Option<Revision>> {
        let reading = self.read(LEDGER, |conn| {
            let mut newest = conn.prepare_cached(NEWEST)?;
            let mut found = newest.query([])?;
            found.next()?.map(revision).transpose()
        });
        reading.await
    }

    async fn document(&self, revision: &ConfigRevision) -> PortResult<Option<String>> {
        let revision = revision.clone();
        self.read(LEDGER, move |conn| stored(conn, &revision)).await
    }

    async fn install(&self, revision: &Revision, document: &str, entry: &Entry) -> PortResult<Entered> {
        let (revision, document, entry) = (revision.clone(), document.to_owned(), entry.clone());
        let installing = self.write(LEDGER, move |conn| {
            let newest: i64 = conn.prepare_cached(NEWEST_NUMBER)?.query_row([], |row| row.get(0))?;
            let number = revision.number.cast_signed();
            if number != newest + 1 {
                return Ok(Entered::Overtaken);
            }
            if !follows_head(conn, &entry)? {
                return Ok(Entered::HeadMoved);
            }
            keep(conn, &revision.revision, &document)?;
            let facts = to_json("configuration", &revision.revision, &revision)?;
            conn.prepare_cached(INSERT)?.execute(params![number, facts])?;
            add(conn, &entry)?;
            Ok(Entered::Landed)
        });
        installing.await
    }

    async fn history(&self, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Revision>> {
        let from = cursor::read::<(i64,)>("history", from).map_err(|fault| fault.at(LEDGER))?;
        let reading = self.read(LEDGER, move |conn| {
            let (below,) = from.unwrap_or((i64::MAX,));
            let (limit, further) = cursor::one_further(limit);
            let mut history = conn.prepare_cached(HISTORY)?;
            let found = history.query(params![below, further])?;
            Ok(cursor::page("history", cursor::placed(found, 2, revision)?, limit))
        });
        reading.await
    }
}

/// Keeps a document under its digest. What stands there already must say the same.
fn keep(conn: &Connection, revision: &ConfigRevision, document: &str) -> Result<(), Fault> {
    conn.prepare_cached(KEEP)?.execute([revision.as_str(), document])?;
    match stored(conn, revision)?.as_deref() == Some(document) {
        true => Ok(()),
        false => Err(Fault::Refused(format!("the configuration {revision} is stored with another text"))),
    }
}

fn stored(conn: &Connection, revision: &ConfigRevision) -> Result<Option<String>, Fault> {
    let mut select = conn.prepare_cached(DOCUMENT)?;
    Ok(select.query_row([revision.as_str()], |row| row.get(0)).optional()?)
}

/// Reads a revision of the columns `number` and `facts`, in this order.
fn revision(row: &Row<'_>) -> Result<Revision, Fault> {
    let number: i64 = row.get(0)?;
    from_json("configuration", number, text(row, 1)?)
}
