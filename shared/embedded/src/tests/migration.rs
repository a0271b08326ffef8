//! A file of an older version is brought to this build's in one transaction, and keeps what it holds.

use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;
use waybill_domain::authority::Book;
use waybill_domain::time::DurationMs;
use waybill_service::office::Office as _;
use waybill_service::ports::Inbox as _;
use waybill_service::sweep::DeadLetterBox as _;

use super::{Still, fresh};
use crate::{EmbeddedStore, OpenError, SCHEMA_VERSION};

/// A file as version 1 wrote it, with something in each of its tables.
fn of_version_1(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(include_str!("../schema.sql")).unwrap();
    conn.execute_batch(
        "PRAGMA application_id = 0x57415942; PRAGMA user_version = 1; PRAGMA journal_mode = WAL;
         INSERT INTO delivery (delivery_id, tenant, destination, first_queued_at, state, revision, record)
         VALUES ('whd_1', 'acme', 'books', 7, 'pending', 3, '{}');
         INSERT INTO payload VALUES (1, x'00ff');
         INSERT INTO attempt VALUES ('whd_1', 'acme', 1, 'tok', 'worker', '{}');
         INSERT INTO message (message_id, body, visible_at) VALUES ('msg_1', 'wake up', 0);
         INSERT INTO dead_message (message_id, body, attributes, buried_at)
         VALUES ('msg_2', 'a dead letter', '{\"reason\":\"gone\"}', 0);",
    )
    .unwrap();
    conn
}

/// Everything that version 1 knew of.
fn contents(conn: &Connection) -> Vec<String> {
    let mut all = Vec::new();
    for sql in [
        "SELECT json_array(id, delivery_id, tenant, destination, first_queued_at, deadline, state, revision, \
         look_at, release_order, reason, ended_at, record) FROM delivery",
        "SELECT json_array(delivery, hex(bytes)) FROM payload",
        "SELECT json_array(delivery_id, tenant, number, token, witness, evidence) FROM attempt",
        "SELECT json_array(id, message_id, body, attributes, visible_at, receive_count, receipt) FROM message",
        "SELECT json_array(id, message_id, body, attributes, buried_at) FROM dead_message",
    ] {
        let mut select = conn.prepare(sql).unwrap();
        let rows = select.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let before = all.len();
        all.extend(rows.map(Result::unwrap));
        assert!(all.len() > before, "{sql}: nothing there");
    }
    all
}

fn version(conn: &Connection) -> i64 {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

fn tables(conn: &Connection) -> Vec<(String, String)> {
    let sql = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let mut select = conn.prepare(sql).unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_file_of_version_1_keeps_everything_and_gets_the_tables_of_a_new_one() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("waybill.db");
    let raw = of_version_1(&path);
    let before = contents(&raw);

    let store = EmbeddedStore::open(&path, Still).unwrap();
    assert_eq!(version(&raw), SCHEMA_VERSION);
    assert_eq!(contents(&raw), before);
    let (_new, new_dir) = fresh();
    assert_eq!(tables(&raw), tables(&Connection::open(new_dir.path().join("waybill.db")).unwrap()));

    // What it held is used as before, and what was added is there to be used.
    assert_eq!(store.receive(9, DurationMs::from_secs(1)).await.unwrap()[0].body, "wake up");
    assert_eq!(store.take(9, DurationMs::from_secs(1)).await.unwrap()[0].body, "a dead letter");
    assert_eq!(store.head(&Book::Across).await.unwrap(), None);
    drop(store);
    drop(EmbeddedStore::open(&path, Still).unwrap());
    assert_eq!(contents(&raw).len(), before.len());
}

#[test]
fn a_migration_that_fails_leaves_the_file_as_it_was() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("waybill.db");
    let raw = of_version_1(&path);
    // Somebody's own table is in the way of one of the last.
    raw.execute_batch("CREATE TABLE document (title TEXT)").unwrap();
    let before = (version(&raw), tables(&raw), contents(&raw));
    let error = EmbeddedStore::open(&path, Still).unwrap_err();
    assert!(matches!(error, OpenError::Sqlite(_)), "{error:?}");
    assert_eq!((version(&raw), tables(&raw), contents(&raw)), before);
}

#[test]
fn many_may_open_an_older_file_at_once() {
    for _ in 0..10 {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("waybill.db");
        drop(of_version_1(&path));
        let opening: Vec<_> = (0..4)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || EmbeddedStore::open(&path, Still))
            })
            .collect();
        for opened in opening {
            opened.join().unwrap().unwrap();
        }
    }
}

/// A command beside a `serve` that never rests from writing: it only reads, and gets no turn to write.
#[tokio::test]
async fn a_file_that_is_whole_is_opened_and_read_while_somebody_else_writes() {
    let (store, dir) = fresh();
    let path = dir.path().join("waybill.db");
    let writing = Connection::open(&path).unwrap();
    writing.execute_batch("BEGIN IMMEDIATE").unwrap();
    let busy = std::time::Duration::from_millis(50);
    let beside = EmbeddedStore::open_waiting(&path, Still, busy).unwrap();
    assert_eq!(beside.books().await.unwrap(), []);
    writing.execute_batch("ROLLBACK; DROP TABLE budget; BEGIN IMMEDIATE").unwrap();
    let error = EmbeddedStore::open_waiting(&path, Still, busy).unwrap_err();
    assert!(matches!(error, OpenError::Sqlite(_)), "what is missing must be made: {error:?}");
    writing.execute_batch("ROLLBACK").unwrap();
    EmbeddedStore::open_waiting(&path, Still, busy).unwrap();
    assert!(tables(&writing).iter().any(|(name, _)| name == "budget"));
    drop(store);
}
