//! One `serve` per data file: an advisory lock on a file beside it, taken before there is a data file,
//! and one on the data file itself ([`Held`]); held by the process and released by the operating
//! system when it ends, however it ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::held::{Held, are_one};
use crate::exit::{Failure, in_words};

/// How often is looked whether the data file is still there.
const PAUSE: Duration = Duration::from_secs(1);

/// The lock. Given up before the start was a success, it takes the file along that it made.
pub(super) struct Lock {
    /// As it was asked for.
    data: PathBuf,
    /// The data file, once it is there.
    held: Option<Held>,
    path: PathBuf,
    /// The lock lives as long as the open file.
    _file: File,
    leaves_no_trace: bool,
}

impl Lock {
    /// Takes the lock.
    pub(super) fn take(data: &Path) -> Result<Self, Failure> {
        let refuse = |why: String| Failure::failed(format!("{}: {why}", data.display()));
        let path = beside(&one_name(data));
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
                let mut lock =
                    Self { data: data.to_owned(), held: None, path, _file: file, leaves_no_trace: is_new };
                lock.held = Held::take(data).map_err(refuse)?;
                return Ok(lock);
            }
        }
    }

    /// The start was a success, and there is a data file now: the lock's file stays, as the data does.
    pub(super) fn keep(&mut self) -> Result<(), Failure> {
        if self.held.is_none() {
            self.held = Held::take(&self.data).map_err(|why| self.says(&why))?;
        }
        if !self.is_in_place() {
            return Err(self.lost());
        }
        self.leaves_no_trace = false;
        Ok(())
    }

    /// Waits until the data file is gone or another one stands in its place, for as long as that takes.
    /// What is accepted from then on would be lost with the file.
    pub(super) async fn until_lost(&self) -> Failure {
        while self.is_in_place() {
            tokio::time::sleep(PAUSE).await;
        }
        self.lost()
    }

    fn is_in_place(&self) -> bool {
        self.held.as_ref().is_some_and(Held::is_in_place)
    }

    fn lost(&self) -> Failure {
        self.says("it was removed or replaced while waybill serve worked on it: nothing more is taken")
    }

    fn says(&self, what: &str) -> Failure {
        Failure::failed(format!("{}: {what}", self.data.display()))
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
        (Ok(open), Ok(there)) => are_one(&open, &there),
        _ => false,
    }
}

/// The path without links and detours: of the file if it is there, otherwise of its folder. What does
/// not exist keeps its name, and is complained of by whoever opens it.
fn one_name(data: &Path) -> PathBuf {
    let in_folder = || {
        let folder = data.parent().filter(|folder| !folder.as_os_str().is_empty());
        Some(fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?.join(data.file_name()?))
    };
    fs::canonicalize(data).ok().or_else(in_folder).unwrap_or_else(|| data.to_owned())
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
        fs::write(&data, "").unwrap();
        started.keep().unwrap();
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
