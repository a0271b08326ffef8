//! What the conformance exam cannot see from outside.

mod group_commit;
mod health;
mod migration;
mod plans;
mod threads;
mod turns;

use tempfile::TempDir;
use waybill_domain::time::TimeMs;
use waybill_service::ports::Clock;

use crate::EmbeddedStore;

/// A clock that stands still: nothing here is about time.
struct Still;

impl Clock for Still {
    fn now(&self) -> TimeMs {
        TimeMs::from_unix_ms(0)
    }
}

fn fresh() -> (EmbeddedStore<Still>, TempDir) {
    let dir = TempDir::new().unwrap();
    let busy = std::time::Duration::from_millis(50);
    let store = EmbeddedStore::open_waiting(&dir.path().join("waybill.db"), Still, busy).unwrap();
    (store, dir)
}
