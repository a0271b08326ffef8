//! What can go wrong with the file, named by what the caller does next.

use std::sync::Arc;

use rusqlite::ErrorCode;
use thiserror::Error;
use waybill_service::ports::PortError;

/// Why a step of the store failed.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error("SQLite refused a step")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the transaction that this write shared did not commit")]
    NotCommitted(#[source] Arc<rusqlite::Error>),
    #[error("the stored {what} of {key} cannot be read")]
    Unreadable {
        what: &'static str,
        key: String,
        #[source]
        cause: serde_json::Error,
    },
    #[error("{0}")]
    Refused(String),
    #[error("the operating system gave no randomness: {0}")]
    NoRandomness(getrandom::Error),
    #[error("a step of the store panicked")]
    Panicked,
    #[error("the store's thread has ended")]
    Stopped,
}

impl Fault {
    /// The same fault for the caller of a port.
    pub(crate) fn at(self, port: &'static str) -> PortError {
        let passes = match &self {
            Fault::Sqlite(error) => passes_by_itself(error),
            Fault::NotCommitted(_) | Fault::NoRandomness(_) | Fault::Stopped => true,
            Fault::Unreadable { .. } | Fault::Refused(_) | Fault::Panicked => false,
        };
        let cause = Box::new(self);
        match passes {
            true => PortError::AskLater { port, cause },
            false => PortError::NeedsPerson { port, cause },
        }
    }
}

/// Whether asking again later can help: the file is in use, or the disk is full or ill.
fn passes_by_itself(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::OperationInterrupted
                | ErrorCode::OperationAborted
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::CannotOpen
        )
    )
}
