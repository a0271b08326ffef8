//! One `serve` per data file: an advisory lock on a file beside it, held by the process and released
//! by the operating system when it ends, however it ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::exit::{Failure, in_words};

/// The lock. Given up before the start was a success, it takes the file along that it made.
pub(super) struct Lock {
    path: PathBuf,
    /// The lock lives as long as the open file.
    _file: File,
    leaves_no_trace: bool,
}

impl Lock {
    /// Takes the lock.
    pub(super) fn take(data: &Path) -> Result<Self, Failure> {
        let path = beside(data);
        let refuse = |why: String| Failure::failed(format!("{}: {why}", data.display()));
        loop {
            let (file, is_new) = open(&path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => refuse("there is no such folder to keep it in".to_owned()),
                _ => refuse(format!("its lock {} cannot be opened: {}", path.display(), in_words(&error))),
            })?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(refuse(format!(
                        "another waybill serve works on it and holds {}",
                        path.display()
                    )));
                }
                Err(TryLockError::Error(error)) => {
                    return Err(refuse(format!(
                        "its lock {} cannot be taken: {}",
                        path.display(),
                        in_words(&error)
                    )));
                }
            }
            // Its maker may have removed it between our opening and our locking: then what we hold is a
            // file that nobody else finds, and somebody else may hold the one that is found.
            if is_at(&file, &path) {
                return Ok(Self { path, _file: file, leaves_no_trace: is_new });
            }
        }
    }

    /// The start was a success: the file stays, as the data does.
    pub(super) fn keep(&mut self) {
        self.leaves_no_trace = false;
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.leaves_no_trace {
            // Still locked, so it is ours to remove; whoever opened it meanwhile looks again.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file, and whether this call made it.
fn open(path: &Path) -> io::Result<(File, bool)> {
    match OpenOptions::new().create_new(true).write(true).open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
            Ok((file, false))
        }
        Err(error) => Err(error),
    }
}

/// Whether the open file is the one that stands at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

fn beside(data: &Path) -> PathBuf {
    let mut path = data.as_os_str().to_owned();
    path.push(".lock");
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_given_up_early_takes_along_only_what_it_made() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("w.db");
        let first = Lock::take(&data).unwrap();
        assert!(Lock::take(&data).is_err());
        // Whoever was refused leaves the holder's file alone.
        assert!(beside(&data).exists());
        drop(first);
        assert!(!beside(&data).exists());

        let mut started = Lock::take(&data).unwrap();
        started.keep();
        drop(started);
        assert!(beside(&data).exists());
        drop(Lock::take(&data).unwrap());
        assert!(beside(&data).exists(), "it was there before");
    }

    #[test]
    fn a_file_that_was_removed_and_made_again_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.db.lock");
        let (file, is_new) = open(&path).unwrap();
        assert!(is_new && is_at(&file, &path));
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&file, &path));
        let (_other, _) = open(&path).unwrap();
        assert!(!is_at(&file, &path));
    }
}
