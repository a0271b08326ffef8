//! One `serve` per data file: an advisory lock on a file beside it, held by the process and released
//! by the operating system when it ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// Takes the lock, and keeps it for as long as the answer lives.
pub(super) fn hold(data: &Path) -> Result<File, Failure> {
    let path = beside(data);
    let refuse = |why: String| Failure::failed(format!("{}: {why}", data.display()));
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file =
        file.map_err(|error| refuse(format!("its lock {} cannot be opened: {error}", path.display())))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(refuse(format!("another waybill serve works on it and holds {}", path.display())))
        }
        Err(TryLockError::Error(error)) => {
            Err(refuse(format!("its lock {} cannot be taken: {error}", path.display())))
        }
    }
}

fn beside(data: &Path) -> PathBuf {
    let mut path = data.as_os_str().to_owned();
    path.push(".lock");
    PathBuf::from(path)
}
