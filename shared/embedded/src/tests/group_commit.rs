//! Writes that share a commit share nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use rusqlite::{Connection, params};
use tokio::task::JoinHandle;
use waybill_service::ports::{PortError, PortResult};

use super::{Still, fresh};
use crate::EmbeddedStore;
use crate::fault::Fault;
use crate::schema::open_writer;
use crate::store::QUEUE;
use crate::writer::Writer;

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_is_undone_alone() {
    let (store, _dir) = fresh();
    let gate = hold_writer(&store).await;
    let before = insert(&store, "before");
    let failing = spawn(&store, |conn| {
        add(conn, "half done")?;
        Err::<(), _>(Fault::Refused("changed its mind".to_owned()))
    });
    let after = insert(&store, "after");
    gate.open();

    before.await.unwrap().unwrap();
    after.await.unwrap().unwrap();
    let error = failing.await.unwrap().unwrap_err();
    assert!(matches!(error, PortError::NeedsPerson { .. }), "{error:?}");
    assert_eq!(bodies(&store).await, ["before", "after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_panics_is_undone_alone() {
    let (store, _dir) = fresh();
    let gate = hold_writer(&store).await;
    let panicking = spawn(&store, |conn| {
        add(conn, "half done")?;
        if conn.is_autocommit() { Ok(()) } else { panic!("a fault of ours, on purpose") }
    });
    let after = insert(&store, "after");
    gate.open();

    let error = panicking.await.unwrap().unwrap_err();
    assert!(error.in_full().contains("panicked"), "{}", error.in_full());
    after.await.unwrap().unwrap();
    assert_eq!(bodies(&store).await, ["after"]);
}

/// The whole group is told, and nothing of it stands: those that had run, and those that had not.
#[tokio::test(flavor = "multi_thread")]
async fn where_the_transaction_is_lost_all_of_its_writes_are() {
    let (store, _dir) = fresh();
    insert(&store, "settled before").await.unwrap().unwrap();
    let gate = hold_writer(&store).await;
    let before = insert(&store, "before");
    // As a full disk may make SQLite do.
    let fatal = spawn(&store, |conn| {
        conn.execute_batch("ROLLBACK")?;
        Err::<(), _>(Fault::Refused("a disk that fills".to_owned()))
    });
    let after = insert(&store, "after");
    gate.open();

    for lost in [before, after] {
        let error = lost.await.unwrap().unwrap_err();
        assert!(matches!(error, PortError::AskLater { port: "queue", .. }), "{error:?}");
    }
    assert!(fatal.await.unwrap().is_err());
    assert_eq!(bodies(&store).await, ["settled before"]);
    insert(&store, "life goes on").await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_commit_fails_all_of_its_writes_do() {
    let (store, _dir) = fresh();
    let gate = hold_writer(&store).await;
    let before = insert(&store, "before");
    // A deferred foreign key is the one thing that SQLite looks at only when committing. It must be
    // switched on outside a transaction, so this leaves the group's and begins it anew.
    let breaking = spawn(&store, |conn| {
        conn.execute_batch(
            "ROLLBACK; PRAGMA foreign_keys = ON; BEGIN IMMEDIATE; SAVEPOINT job;
             CREATE TABLE parent (id INTEGER PRIMARY KEY);
             CREATE TABLE child (of INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
             INSERT INTO child VALUES (7);",
        )?;
        Ok(())
    });
    let after = insert(&store, "after");
    gate.open();

    for lost in [before, breaking, after] {
        let error = lost.await.unwrap().unwrap_err();
        assert!(matches!(error, PortError::AskLater { .. }), "{error:?}");
        assert!(error.in_full().contains("FOREIGN KEY"), "{}", error.in_full());
    }
    assert_eq!(bodies(&store).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_worth_asking_again() {
    let (store, _dir) = fresh();
    let filled = spawn(&store, |conn| {
        let pages: i64 = conn.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        for _ in 0..1000 {
            add(conn, &"x".repeat(5000))?;
        }
        Ok(())
    });
    let error = filled.await.unwrap().unwrap_err();
    assert!(matches!(error, PortError::AskLater { .. }), "{error:?}");
    assert_eq!(bodies(&store).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_use_is_worth_asking_again() {
    let (store, dir) = fresh();
    let other = Connection::open(dir.path().join("waybill.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = insert(&store, "body").await.unwrap().unwrap_err();
    assert!(matches!(error, PortError::AskLater { .. }), "{error:?}");
    assert_eq!(bodies(&store).await, [""; 0], "reading waits for no writer");
    other.execute_batch("COMMIT").unwrap();
    insert(&store, "body").await.unwrap().unwrap();
}

/// More than one group: each would wait once more, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_while_another_process_writes_waits_no_longer_than_the_first() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("waybill.db");
    let store = EmbeddedStore::open_waiting(&path, Still, std::time::Duration::from_secs(1)).unwrap();
    let other = Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut inserts: Vec<_> = (0..300).map(|_| insert(&store, "body")).collect();
    let (last, first) = (inserts.pop().unwrap(), inserts.swap_remove(0));
    assert!(first.await.unwrap().is_err());
    other.execute_batch("COMMIT").unwrap();
    assert!(last.await.unwrap().is_err(), "it waited as long");
    insert(&store, "body").await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_a_moment_before_a_group_gives_up_is_tried_next() {
    static GROUP_WAITS: AtomicBool = AtomicBool::new(false);
    static GIVE_UP: AtomicBool = AtomicBool::new(false);
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("waybill.db");
    // No job of this test ever has waited half as long.
    let hour = std::time::Duration::from_secs(3600);
    let mut conn = open_writer(&path, hour).unwrap();
    conn.busy_handler(Some(|_| {
        GROUP_WAITS.store(true, Ordering::SeqCst);
        while !GIVE_UP.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        false
    }))
    .unwrap();
    let writer = Arc::new(Writer::start(conn, hour).unwrap());
    let insert = |body: &'static str| {
        let writer = writer.clone();
        asked(async move { writer.run(move |conn| add(conn, body)).await })
    };
    let other = Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let first = insert("first");
    while !GROUP_WAITS.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    let young = insert("young");
    other.execute_batch("COMMIT").unwrap();
    GIVE_UP.store(true, Ordering::SeqCst);
    assert!(first.await.unwrap().is_err());
    young.await.unwrap().unwrap();
    let kept: String =
        other.query_row("SELECT group_concat(body) FROM message", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, "young");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_caller_went_away_before_its_turn_is_not_made() {
    let (store, _dir) = fresh();
    let gate = hold_writer(&store).await;
    let abandoned = insert(&store, "abandoned");
    tokio::task::yield_now().await;
    abandoned.abort();
    assert!(abandoned.await.unwrap_err().is_cancelled());
    gate.open();
    insert(&store, "wanted").await.unwrap().unwrap();
    assert_eq!(bodies(&store).await, ["wanted"]);
}

/// Keeps the writer busy, so that what is asked for meanwhile shares one commit.
async fn hold_writer(store: &EmbeddedStore<Still>) -> Gate {
    let (open, wait) = channel::<()>();
    let (held, is_held) = tokio::sync::oneshot::channel();
    let job = spawn(store, move |_| {
        let _ = held.send(());
        let _ = wait.recv();
        Ok(())
    });
    is_held.await.unwrap();
    Gate { _job: job, open }
}

struct Gate {
    _job: JoinHandle<PortResult<()>>,
    open: std::sync::mpsc::Sender<()>,
}

impl Gate {
    fn open(self) {
        // What was spawned before has been asked for by now, in the order of spawning.
        self.open.send(()).unwrap();
    }
}

/// Asks at once, and lets the answer come when it comes.
fn spawn<T: Send + 'static>(
    store: &EmbeddedStore<Still>,
    work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
) -> JoinHandle<PortResult<T>> {
    let store = store.clone();
    asked(async move { store.write(QUEUE, work).await })
}

fn asked<F>(asking: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut asking = Box::pin(asking);
    // The first poll puts the job into the writer's line.
    let first = Future::poll(asking.as_mut(), &mut std::task::Context::from_waker(std::task::Waker::noop()));
    match first {
        std::task::Poll::Ready(answer) => tokio::spawn(async move { answer }),
        std::task::Poll::Pending => tokio::spawn(asking),
    }
}

fn insert(store: &EmbeddedStore<Still>, body: &'static str) -> JoinHandle<PortResult<()>> {
    spawn(store, move |conn| add(conn, body))
}

fn add(conn: &Connection, body: &str) -> Result<(), Fault> {
    conn.execute("INSERT INTO message (message_id, body, visible_at) VALUES ('msg', ?, 0)", params![body])?;
    Ok(())
}

async fn bodies(store: &EmbeddedStore<Still>) -> Vec<String> {
    let read = store.read(QUEUE, |conn| {
        let mut select = conn.prepare("SELECT body FROM message ORDER BY id")?;
        let bodies = select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(bodies)
    });
    read.await.unwrap()
}
