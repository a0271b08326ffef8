//! What was answered is there after kill -9 at any point, and the file is whole.
//!
//! A child process (this binary again) writes in a loop and prints the key of each write once it
//! was answered. It is killed while it writes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use waybill_domain::time::DurationMs;
use waybill_embedded::EmbeddedStore;
use waybill_service::ports::{Inbox, Ledger, Outgoing, Queue};
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::conformance::fixture::{claim, pending_event, t};

const FILE: &str = "WAYBILL_TEST_FILE";
const WRITERS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn everything_answered_is_there_after_kill_9() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("waybill.db");
    let mut answered = BTreeSet::new();
    // Several deaths of one file: each later life begins with what the kill left behind.
    for life in 0..6 {
        answered.extend(killed_at_work(&path, life));
        everything_is_there(&path, &answered).await;
    }
}

/// What the child had answered when it was killed, a while after it had begun to write.
fn killed_at_work(path: &Path, life: u64) -> Vec<String> {
    let mut child = child(path, life);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (told, telling) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            // The first may share its line with what the test harness prints; the last may be cut.
            let event = line.split_once("answered ").and_then(|(_, rest)| rest.strip_suffix(';'));
            if let Some(event) = event {
                told.send(event.to_owned()).unwrap();
            }
        }
    });
    let patience = Duration::from_secs(60);
    let mut answered: Vec<String> = (0..20).map(|_| telling.recv_timeout(patience).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(17 * life));
    // SIGKILL, on Unix.
    child.kill().unwrap();
    child.wait().unwrap();
    answered.extend(telling);
    answered
}

fn child(path: &Path, life: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "survives_kill::writes_until_killed", "--nocapture"])
        .env(FILE, path)
        .env("WAYBILL_TEST_LIFE", life.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

async fn everything_is_there(path: &Path, answered: &BTreeSet<String>) {
    let raw = rusqlite::Connection::open(path).unwrap();
    let whole: String = raw.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");

    let store = EmbeddedStore::open(path, VirtualClock::default()).unwrap();
    let mut messages = raw.prepare("SELECT count(*) FROM message WHERE body = ?").unwrap();
    for event in answered {
        let key = pending_event(event).delivery.key();
        let record =
            store.load(&key).await.unwrap().unwrap_or_else(|| panic!("{event} was answered and is lost"));
        assert_eq!(record.revision, 1, "{event}: its claim was answered too");
        assert_eq!(store.payload(&key).await.unwrap(), Some(Bytes::from(event.clone())), "{event}");
        let sent: i64 = messages.query_row([event], |row| row.get(0)).unwrap();
        assert_eq!(sent, 1, "{event}: its message was answered too");
    }
    assert_eq!(orphans(&raw), 0, "a record without its payload, or a payload without its record");
}

fn orphans(raw: &rusqlite::Connection) -> i64 {
    let sql = "SELECT (SELECT count(*) FROM delivery WHERE id NOT IN (SELECT delivery FROM payload))
                    + (SELECT count(*) FROM payload WHERE delivery NOT IN (SELECT id FROM delivery))";
    raw.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The child that is killed. Never ends by itself once it was told a file; otherwise it has nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "the parent reads it")]
async fn writes_until_killed() {
    let (Ok(path), Ok(life)) = (std::env::var(FILE), std::env::var("WAYBILL_TEST_LIFE")) else { return };
    let store = EmbeddedStore::open(Path::new(&path), VirtualClock::default()).unwrap();
    let writers = (0..WRITERS).map(async |writer| {
        for n in 0.. {
            let event = format!("life-{life}-writer-{writer}-{n}");
            let record = pending_event(&event);
            store.create(&record, &Bytes::from(event.clone())).await.unwrap();
            store.apply(&claim(&record, "tok", t(1))).await.unwrap();
            store.send(Outgoing { body: event.clone(), delay: DurationMs::from_secs(900) }).await.unwrap();
            store.receive(1, DurationMs::from_secs(1)).await.unwrap();
            println!("answered {event};");
        }
    });
    futures::future::join_all(writers).await;
}
