//! A ledger with much history: the rows of two deliveries, cloned.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use waybill_domain::time::TimeMs;
use waybill_embedded::EmbeddedStore;
use waybill_service::config::Config;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::originals::{self, DONE, DUE, LATER, LOST, Named};

/// For the speed of making it only; the measurement opens the file as Waybill does.
const FAST: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
                    PRAGMA cache_size = -4194304;";

const CLONE: &str = "
    INSERT INTO delivery (delivery_id, tenant, destination, first_queued_at, deadline, state, revision, look_at,
                          release_order, reason, ended_at, record)
    SELECT ?2, tenant, destination, first_queued_at, deadline, state, revision, look_at, release_order, reason,
           ended_at, ?3 FROM delivery WHERE id = ?1";

const CLONE_PAYLOAD: &str =
    "INSERT INTO payload (delivery, bytes) SELECT last_insert_rowid(), bytes FROM payload WHERE delivery = ?";

/// A ledger, ready for a round.
pub(super) struct Seeded {
    pub(super) file: PathBuf,
    pub(super) config: Config,
    /// When the round is made.
    pub(super) now: TimeMs,
}

impl Seeded {
    pub(super) fn bytes(&self) -> u64 {
        std::fs::metadata(&self.file).expect("the file stands").len()
    }
}

/// Makes a ledger of `finished` deliveries that succeeded, and [`DUE`] that are due, evenly among them.
pub(super) async fn seed(file: &Path, finished: u64) -> Seeded {
    let clock = VirtualClock::at(VirtualClock::T0);
    let store = EmbeddedStore::open(file, clock.clone()).expect("the file opens");
    originals::make(store.clone(), store, &clock).await;
    clone(file, finished);
    Seeded { file: file.to_owned(), config: originals::config(), now: VirtualClock::T0.plus(LATER) }
}

/// The row of a delivery to clone.
struct Template {
    id: i64,
    named: Named,
    record: String,
}

impl Template {
    fn of(conn: &Connection, event_id: &str) -> Self {
        let named = Named::by(event_id);
        let sql = "SELECT id, record FROM delivery WHERE delivery_id = ?";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let (id, record) = conn.query_row(sql, [named.delivery_id()], read).expect("the template");
        Self { id, named, record }
    }

    fn clone_as(&self, conn: &Connection, event_id: &str) -> rusqlite::Result<()> {
        let clone = Named::by(event_id);
        let record = self.named.renamed(&self.record, &clone);
        conn.prepare_cached(CLONE)?.execute(params![self.id, clone.delivery_id(), record])?;
        conn.prepare_cached(CLONE_PAYLOAD)?.execute([self.id])?;
        Ok(())
    }
}

/// The templates count: the first of each kind stands already.
fn clone(file: &Path, finished: u64) {
    let mut conn = Connection::open(file).expect("the file opens");
    conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;").expect("no log");
    conn.execute_batch(FAST).expect("fast and unsafe");
    let (done, lost) = (Template::of(&conn, DONE), Template::of(&conn, LOST));
    let every = finished / DUE as u64;
    let tx = conn.transaction().expect("a transaction");
    for n in 1..finished {
        done.clone_as(&tx, &format!("done-{n}")).expect("a clone");
        if n % every == 0 {
            lost.clone_as(&tx, &format!("lost-{n}")).expect("a clone");
        }
    }
    tx.commit().expect("all of it");
    let due = "SELECT count(*) FROM delivery WHERE look_at IS NOT NULL";
    let due: i64 = conn.query_row(due, [], |row| row.get(0)).expect("a count");
    assert_eq!(due, DUE as i64, "so many are due");
}
