//! Threads live as long as somebody holds the store, and no longer.

use std::time::{Duration, Instant};

use super::fresh;
use crate::store::LEDGER;

/// What "answered means durable" rests on. It is a setting of each connection, not of the file.
#[tokio::test]
async fn every_commit_is_synced() {
    const FULL: i64 = 2;
    let (store, _dir) = fresh();
    let setting = store.write(LEDGER, |conn| {
        Ok(conn.query_row("SELECT synchronous FROM pragma_synchronous", [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(setting.await.unwrap(), FULL);
}

#[tokio::test]
async fn the_threads_end_with_the_last_handle() {
    let (store, dir) = fresh();
    let clone = store.clone();
    drop(store);
    clone.read(LEDGER, |_| Ok(())).await.unwrap();
    assert!(dir.path().join("waybill.db-wal").exists());
    drop(clone);
    // The last connection that is closed takes the write-ahead log with it.
    let patience = Instant::now() + Duration::from_secs(10);
    while dir.path().join("waybill.db-wal").exists() {
        assert!(Instant::now() < patience, "a connection is still open");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_reading_that_panics_ends_alone() {
    let (store, _dir) = fresh();
    for _ in 0..5 {
        let error = store
            .read(LEDGER, |conn| if conn.is_autocommit() { panic!("on purpose") } else { Ok(()) })
            .await
            .unwrap_err();
        assert!(error.in_full().contains("panicked"), "{}", error.in_full());
    }
    store.read(LEDGER, |_| Ok(())).await.unwrap();
}
