//! Whether the file takes writes, found out by writing.

use waybill_service::ports::{Clock, PortResult};

use crate::schema::APPLICATION_ID;
use crate::store::{EmbeddedStore, LEDGER};

impl<C: Clock> EmbeddedStore<C> {
    /// Writes the file's own mark once more: it changes nothing, and takes what every write takes, a turn,
    /// room on the disk and a sync. Reading would not tell: it goes on while the disk is full or another
    /// process keeps the turn.
    pub async fn check_write(&self) -> PortResult<()> {
        self.write(LEDGER, |conn| Ok(conn.pragma_update(None, "application_id", APPLICATION_ID)?)).await
    }
}
