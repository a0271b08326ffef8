//! The check of writing writes.

use rusqlite::Connection;
use waybill_service::ports::PortError;

use super::fresh;

#[tokio::test(flavor = "multi_thread")]
async fn a_check_reaches_the_disk_and_tells_of_a_turn_that_is_not_to_be_had() {
    let (store, dir) = fresh();
    let other = Connection::open(dir.path().join("waybill.db")).unwrap();
    // Changes with every commit of another connection that wrote a page.
    let commits = || other.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = commits();
    store.check_write().await.unwrap();
    assert_ne!(commits(), before, "something was written");

    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.check_write().await.unwrap_err();
    assert!(matches!(refused, PortError::AskLater { .. }), "{refused:?}");
    other.execute_batch("ROLLBACK").unwrap();
    store.check_write().await.unwrap();
}
