//! The data file itself, open and locked for as long as the process lives: one file is one file, under
//! whatever name it is asked for, and whatever becomes of the lock beside it.
//!
//! The descriptor must not be closed before the process ends: with any descriptor of a file, the
//! operating system gives up all POSIX locks that the process has on it, SQLite's among them. This
//! lock is `flock`'s, which is none of those.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::exit::in_words;

/// A data file that is there, and that no other `serve` holds.
pub(super) struct Held {
    path: PathBuf,
    file: File,
}

impl Held {
    /// Holds the file, if there is one. SQLite finds the log that belongs to a file by the file's name:
    /// of two names, each would be another database. So a file has one. Otherwise the sentence that
    /// says why not.
    pub(super) fn take(path: &Path) -> Result<Option<Self>, String> {
        let unusable = |error: io::Error| format!("it cannot be opened: {}", in_words(&error));
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(error)),
        };
        if !fs::metadata(&path).map_err(unusable)?.is_file() {
            return Err("it is not a regular file".to_owned());
        }
        let file = File::open(&path).map_err(unusable)?;
        lock(&file)?;
        match file.metadata().map_err(unusable)?.nlink() {
            0 | 1 => Ok(Some(Self { path, file })),
            names => Err(format!(
                "the file has {names} names (hard links), and each would be another database: remove the others"
            )),
        }
    }

    /// Whether the file still stands where it stood.
    pub(super) fn is_in_place(&self) -> bool {
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(open), Ok(there)) => are_one(&open, &there),
            (_, Err(error)) => error.kind() != ErrorKind::NotFound,
            (Err(_), Ok(_)) => true,
        }
    }
}

/// Whether two looks were at the same file.
pub(super) fn are_one(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// On other systems this lock and SQLite's exclude each other, so it is taken on Linux alone.
fn lock(file: &File) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => "another waybill serve works on it".to_owned(),
        TryLockError::Error(error) => format!("it cannot be locked: {}", in_words(&error)),
    })
}
