//! A connection with the settings that the promises rest on, and the check of whose file it is.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use thiserror::Error;

/// The schema that this build reads and writes, kept as the file's `user_version`.
pub const SCHEMA_VERSION: i64 = STEPS.len() as i64;

/// What leads from each version to the next, from an empty file on: a new file goes the same way as an
/// old one, so that both end at the same tables.
const STEPS: [&str; 2] = [include_str!("schema.sql"), include_str!("schema_2.sql")];

/// Tables that an older build of the same version neither makes nor minds.
const ADDED: &str = include_str!("added.sql");

/// `WAYB` in ASCII, kept as the file's `application_id`: whose file it is.
pub(crate) const APPLICATION_ID: i64 = 0x5741_5942;

/// How long a step waits for another process that is writing.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Every statement of this crate, and the few pages of SQL that listings build.
const CACHED_STATEMENTS: usize = 64;

/// Why a file was not opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// A newer build wrote it; nothing was changed.
    #[error(
        "the file has schema version {found}, and this build knows up to {SCHEMA_VERSION}: use a newer waybill"
    )]
    Newer {
        /// The file's version.
        found: i64,
    },
    /// It is a SQLite database of something else; nothing was changed.
    #[error("the file is a SQLite database, but not one of Waybill's")]
    Foreign,
    /// It names no file that keeps anything, such as `:memory:`.
    #[error("the path names no file that keeps what is written to it")]
    Volatile,
    /// SQLite cannot use it.
    #[error("the file cannot be opened as a database")]
    Sqlite(#[from] rusqlite::Error),
    /// The operating system gave no thread.
    #[error("no thread for the store")]
    NoThread(#[from] std::io::Error),
}

/// Opens the one connection that writes, and brings the tables of a new or an older file to this
/// build's version, in one transaction.
pub(crate) fn open_writer(path: &Path, busy: Duration) -> Result<Connection, OpenError> {
    let mut conn = connect(path, busy)?;
    // Before anything is changed, even the journal mode of a file that is not ours.
    let is_whole = is_whole(&conn.transaction()?)?;
    use_wal(&conn, busy)?;
    conn.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = OFF;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA cache_size = -32768;
         PRAGMA journal_size_limit = 67108864;",
    )?;
    // Beside a busy `serve` a turn to write is hard to get, and a command that only reads needs none.
    if is_whole {
        return Ok(conn);
    }
    // Two processes may meet here on one file: the second finds the tables of the first.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = check_version(&tx)?;
    for step in STEPS.iter().skip(found) {
        tx.execute_batch(step)?;
    }
    if found < STEPS.len() {
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    tx.execute_batch(ADDED)?;
    tx.commit()?;
    Ok(conn)
}

/// Opens a connection that only reads. The writer's must have been opened before.
pub(crate) fn open_reader(path: &Path, busy: Duration) -> Result<Connection, OpenError> {
    let conn = connect(path, busy)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

fn connect(path: &Path, busy: Duration) -> Result<Connection, OpenError> {
    // A path is a path: no URI, which could ask for a file that is only in memory.
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(busy)?;
    conn.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok(conn)
}

/// The file's version, 0 for an empty file; an error if it is not ours to write. In one transaction,
/// because another process may be making the tables right now.
fn check_version(conn: &Transaction<'_>) -> Result<usize, OpenError> {
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let (owner, found) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    match (owner, found) {
        (0, 0) if number("SELECT count(*) FROM sqlite_schema")? == 0 => Ok(0),
        (APPLICATION_ID, found) => match usize::try_from(found) {
            Ok(version) if (1..=STEPS.len()).contains(&version) => Ok(version),
            _ => Err(OpenError::Newer { found }),
        },
        _ => Err(OpenError::Foreign),
    }
}

/// Whether the file has every table of this build already.
fn is_whole(conn: &Transaction<'_>) -> Result<bool, OpenError> {
    let mut is_whole = check_version(conn)? == STEPS.len();
    for line in ADDED.lines() {
        let made = ["CREATE TABLE IF NOT EXISTS ", "CREATE INDEX IF NOT EXISTS "];
        let Some(rest) = made.into_iter().find_map(|made| line.strip_prefix(made)) else { continue };
        let name = rest.split([' ', '(']).next().unwrap_or_default();
        let there = "SELECT count(*) FROM sqlite_schema WHERE name = ?";
        is_whole &= conn.query_row(there, [name], |row| row.get::<_, i64>(0))? == 1;
    }
    Ok(is_whole)
}

/// Write-ahead logging: readers and the writer never wait for each other. SQLite does not wait for
/// a lock when it changes the mode, so this does.
fn use_wal(conn: &Connection, busy: Duration) -> Result<(), OpenError> {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    loop {
        let mode = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode {
            Err(error) if is_busy(&error) && waited < busy => {
                std::thread::sleep(PAUSE);
                waited += PAUSE;
            }
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_) => return Err(OpenError::Volatile),
            Err(error) => return Err(error.into()),
        }
    }
}

pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
