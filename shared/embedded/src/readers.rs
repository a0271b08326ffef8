//! The readers: a few threads with a connection each, so that a long listing keeps nobody waiting.
//!
//! A reading begins after it was asked for, so it sees every write that was answered before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::schema::{OpenError, open_reader};

/// One for loads, and one for the listing that somebody may be waiting for at the same time.
const READERS: usize = 2;

type Reading = Box<dyn FnOnce(&Connection) + Send>;

/// The way to the readers' threads, which end when the last of these is dropped.
pub(crate) struct Readers {
    readings: Sender<Reading>,
}

impl Readers {
    /// Starts the threads.
    pub(crate) fn start(path: &Path, busy: Duration) -> Result<Self, OpenError> {
        let (readings, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..READERS {
            let conn = open_reader(path, busy)?;
            let waiting = waiting.clone();
            std::thread::Builder::new()
                .name("waybill-reader".to_owned())
                .spawn(move || read_until_closed(&conn, &waiting))?;
        }
        Ok(Self { readings })
    }

    /// Runs `work` on the file as it is now.
    pub(crate) async fn run<T, W>(&self, work: W) -> Result<T, Fault>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (to, answer) = oneshot::channel();
        let reading: Reading = Box::new(move |conn| {
            if to.is_closed() {
                return;
            }
            // A panic must end this reading alone, not its thread.
            let read = catch_unwind(AssertUnwindSafe(|| work(conn))).unwrap_or(Err(Fault::Panicked));
            // Nobody waits any more: nothing was changed either.
            let _ = to.send(read);
        });
        self.readings.send(reading).map_err(|_| Fault::Stopped)?;
        answer.await.unwrap_or(Err(Fault::Stopped))
    }
}

fn read_until_closed(conn: &Connection, waiting: &Mutex<Receiver<Reading>>) {
    loop {
        // Whoever waits holds the lock; the others wait for the lock, which is as good.
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(reading) => reading(conn),
            Err(_) => return,
        }
    }
}
