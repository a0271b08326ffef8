//! The checkpointer: a thread that carries what was committed from the write-ahead log into the file, so
//! that the writer, and everybody who waits for it, does not wait for that.
//!
//! It changes nothing of what is durable: a commit is on disk before it is answered, in the log. A passive
//! checkpoint waits for nobody and keeps nobody waiting; what it cannot carry over yet, the next one does.
//! Only where it falls far behind does the writer checkpoint by itself, as the limit of
//! [`open_writer`](crate::schema::open_writer) says, and then little is left to be done.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::schema::{OpenError, open_reader};

/// How long after a commit it begins: often enough that there is little to do at a time, and seldom enough
/// that what is written again and again is carried over once.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells the checkpointer of commits; its thread ends when this is dropped.
pub(crate) struct Committed(SyncSender<()>);

impl Committed {
    /// There is something to be carried over.
    pub(crate) fn note(&self) {
        // Full: it knows already.
        let _ = self.0.try_send(());
    }
}

/// Starts the thread, with a connection of its own.
pub(crate) fn start(path: &Path, busy: Duration) -> Result<Committed, OpenError> {
    let conn = open_reader(path, busy)?;
    let (committed, noted) = sync_channel(1);
    std::thread::Builder::new()
        .name("waybill-checkpointer".to_owned())
        .spawn(move || checkpoint_until_closed(&conn, &noted))?;
    Ok(Committed(committed))
}

fn checkpoint_until_closed(conn: &Connection, noted: &Receiver<()>) {
    while noted.recv().is_ok() {
        let due = Instant::now() + PAUSE;
        loop {
            match noted.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        let done = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(0));
        if let Err(cause) = done {
            tracing::warn!(%cause, "not checkpointed: the writer does it when the log has grown");
        }
    }
}
