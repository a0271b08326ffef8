//! The writer: one thread, one connection, one commit for many callers.
//!
//! Answered means durable: a job is answered only after the commit that holds it. Each job runs
//! under a savepoint of its own, so one that fails undoes nothing of its neighbours. If the commit
//! fails, all of its jobs did, and each is told so. A job whose caller has gone away before its
//! turn is not run; one whose caller goes away later is done all the same.
//!
//! While another process keeps the file, a job waits for that process at most one and a half times as long
//! as the connection does: whoever has waited half as long when a group gives up is told with that group.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::schema::is_busy;

/// The most jobs of one commit. Beyond this, a longer group saves little and makes all wait.
const MOST_TOGETHER: usize = 256;

/// The way to the writer's thread, which ends when the last of these is dropped.
pub(crate) struct Writer {
    jobs: Sender<Asked>,
}

/// A job, and when it was asked for.
struct Asked {
    at: Instant,
    job: Box<dyn Job>,
}

impl Writer {
    /// Starts the thread; `busy` is how long its connection waits for another process.
    pub(crate) fn start(conn: Connection, busy: Duration) -> std::io::Result<Self> {
        let (jobs, waiting) = channel();
        std::thread::Builder::new()
            .name("waybill-writer".to_owned())
            .spawn(move || write_until_closed(&conn, busy, &waiting))?;
        Ok(Self { jobs })
    }

    /// Runs `work` in a transaction, and returns what it returned once that is on disk.
    pub(crate) async fn run<T, W>(&self, work: W) -> Result<T, Fault>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (to, answer) = oneshot::channel();
        let job = Box::new(Step { work: Some(work), done: None, to });
        self.jobs.send(Asked { at: Instant::now(), job }).map_err(|_| Fault::Stopped)?;
        answer.await.unwrap_or(Err(Fault::Stopped))
    }
}

/// A job of any type.
trait Job: Send {
    /// Whether anybody still waits for it.
    fn is_wanted(&self) -> bool;

    /// Does the work, and keeps what came of it; whether that is to be committed.
    fn run(&mut self, conn: &Connection) -> bool;

    /// Tells the caller. `lost` says why the group was not committed, if it was not.
    fn answer(self: Box<Self>, lost: Option<&Arc<rusqlite::Error>>);
}

struct Step<T, W> {
    work: Option<W>,
    done: Option<Result<T, Fault>>,
    to: oneshot::Sender<Result<T, Fault>>,
}

impl<T, W> Job for Step<T, W>
where
    T: Send,
    W: FnOnce(&Connection) -> Result<T, Fault> + Send,
{
    fn is_wanted(&self) -> bool {
        !self.to.is_closed()
    }

    fn run(&mut self, conn: &Connection) -> bool {
        let Some(work) = self.work.take() else { return false };
        // A panic must end this job alone, not the thread that everybody waits for.
        let done = catch_unwind(AssertUnwindSafe(|| work(conn))).unwrap_or(Err(Fault::Panicked));
        self.done.insert(done).is_ok()
    }

    fn answer(self: Box<Self>, lost: Option<&Arc<rusqlite::Error>>) {
        let answer = match (self.done, lost) {
            // What failed by itself keeps its own reason.
            (Some(Err(fault)), _) => Err(fault),
            (_, Some(cause)) => Err(Fault::NotCommitted(cause.clone())),
            (Some(done), None) => done,
            (None, None) => Err(Fault::Stopped),
        };
        // Nobody waits any more: the write stands, as an answer lost on the network would.
        let _ = self.to.send(answer);
    }
}

fn write_until_closed(conn: &Connection, busy: Duration, waiting: &Receiver<Asked>) {
    let mut line = VecDeque::new();
    loop {
        if line.is_empty() {
            let Ok(first) = waiting.recv() else { return };
            line.push_back(first);
        }
        line.extend(waiting.try_iter().take(MOST_TOGETHER.saturating_sub(line.len())));
        let mut group: Vec<Asked> = line.drain(..line.len().min(MOST_TOGETHER)).collect();
        group.retain(|asked| asked.job.is_wanted());
        if group.is_empty() {
            continue;
        }
        let lost = commit_together(conn, &mut group).err().map(Arc::new);
        if let Some(cause) = &lost {
            // Group by group, the last would be answered long after its caller's patience. Who came a moment
            // ago has hardly waited, and is tried next.
            if is_busy(cause) {
                line.extend(waiting.try_iter());
                let now = Instant::now();
                let has_waited = |asked: &Asked| now.saturating_duration_since(asked.at) >= busy / 2;
                let (waited, young): (Vec<_>, _) = line.into_iter().partition(has_waited);
                group.extend(waited);
                line = young.into();
            }
            tracing::warn!(writes = group.len(), cause = %cause, "a group of writes was not committed");
        }
        for asked in group {
            asked.job.answer(lost.as_ref());
        }
    }
}

/// Runs every job of the group and commits what succeeded. On an error, nothing of it stands.
fn commit_together(conn: &Connection, group: &mut [Asked]) -> rusqlite::Result<()> {
    // IMMEDIATE: to wait for another process here, where waiting is possible, not half-way.
    execute(conn, "BEGIN IMMEDIATE")?;
    let committed = group
        .iter_mut()
        .try_for_each(|asked| run_alone(conn, asked.job.as_mut()))
        .and_then(|()| execute(conn, "COMMIT"));
    // After some failures (a full disk, say) SQLite has rolled back by itself.
    if committed.is_err() && !conn.is_autocommit() {
        execute(conn, "ROLLBACK")?;
    }
    committed
}

/// Runs one job under its own savepoint. An error means that the whole transaction is lost.
fn run_alone(conn: &Connection, job: &mut dyn Job) -> rusqlite::Result<()> {
    execute(conn, "SAVEPOINT job")?;
    if !job.run(conn) {
        // Fails where SQLite has rolled back the transaction, and the savepoint with it.
        execute(conn, "ROLLBACK TO job")?;
    }
    execute(conn, "RELEASE job")
}

fn execute(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
}
