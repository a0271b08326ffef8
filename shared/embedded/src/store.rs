//! The handle: what the ports of one file share.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::watch;
use waybill_service::ports::{Clock, PortResult};

use crate::fault::Fault;
use crate::readers::Readers;
use crate::schema::{BUSY_TIMEOUT, OpenError, open_writer};
use crate::turns::Turns;
use crate::writer::Writer;

/// The name under which the ledger's faults are reported.
pub(crate) const LEDGER: &str = "ledger";
/// The name under which the queue's faults are reported.
pub(crate) const QUEUE: &str = "queue";

/// Ledger, catalogue, office and queue on one SQLite file. Clones share its threads, which end with
/// the last clone.
pub struct EmbeddedStore<C> {
    threads: Arc<Threads>,
    pub(crate) clock: Arc<C>,
}

struct Threads {
    writer: Writer,
    readers: Readers,
    arrivals: watch::Sender<u64>,
    turns: Arc<Turns>,
}

impl<C: Clock> EmbeddedStore<C> {
    /// Opens the file, or makes it. Blocks for a moment: to be called when a program starts.
    pub fn open(path: &Path, clock: C) -> Result<Self, OpenError> {
        Self::open_waiting(path, clock, BUSY_TIMEOUT)
    }

    pub(crate) fn open_waiting(path: &Path, clock: C, busy: Duration) -> Result<Self, OpenError> {
        let writer = Writer::start(open_writer(path, busy)?, busy)?;
        let readers = Readers::start(path, busy)?;
        let threads = Threads { writer, readers, arrivals: watch::Sender::new(0), turns: Arc::default() };
        Ok(Self { threads: Arc::new(threads), clock: Arc::new(clock) })
    }
}

impl<C> EmbeddedStore<C> {
    /// Changes whenever this process has put a message into the queue, or changed when one is visible:
    /// a poller that sleeps until [`Inbox::next_visible_at`](waybill_service::ports::Inbox) looks
    /// again. What other processes send is found by looking only.
    pub fn arrivals(&self) -> watch::Receiver<u64> {
        self.threads.arrivals.subscribe()
    }

    pub(crate) fn arrived(&self) {
        self.threads.arrivals.send_modify(|count| *count += 1);
    }

    pub(crate) fn turns(&self) -> Arc<Turns> {
        self.threads.turns.clone()
    }

    /// Runs `work` in a transaction; answered means durable.
    pub(crate) async fn write<T, W>(&self, port: &'static str, work: W) -> PortResult<T>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.threads.writer.run(work).await.map_err(|fault| fault.at(port))
    }

    /// Runs `work` on the file as it is now.
    pub(crate) async fn read<T, W>(&self, port: &'static str, work: W) -> PortResult<T>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.threads.readers.run(work).await.map_err(|fault| fault.at(port))
    }
}

impl<C> Clone for EmbeddedStore<C> {
    fn clone(&self) -> Self {
        Self { threads: self.threads.clone(), clock: self.clock.clone() }
    }
}

impl<C> fmt::Debug for EmbeddedStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStore").finish_non_exhaustive()
    }
}
