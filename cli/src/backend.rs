//! Where the ledger and the queue are: `--backend embedded:PATH`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use waybill_embedded::EmbeddedStore;
use waybill_service::ports::in_full;
use waybill_system::SystemClock;

use crate::exit::{Failure, said_once};

/// The embedded backend on the real clock.
pub(crate) type Store = EmbeddedStore<SystemClock>;

/// Where the ledger and the queue are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backend {
    path: PathBuf,
}

impl Backend {
    /// The embedded backend on this file.
    pub(crate) fn embedded(path: PathBuf) -> Self {
        Self { path }
    }

    /// The data file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file; makes it if it is not there.
    pub(crate) fn open_or_make(&self) -> Result<Store, Failure> {
        EmbeddedStore::open(&self.path, SystemClock).map_err(|error| {
            Failure::failed(format!("{}: {}", self.path.display(), said_once(&in_full(&error))))
        })
    }

    /// Opens a file that is there: a mistyped path must not be answered with an empty ledger.
    pub(crate) fn open(&self) -> Result<Store, Failure> {
        if !self.path.exists() {
            let path = self.path.display();
            let sentence = format!("{path}: there is no such data file; --backend embedded:PATH names it");
            return Err(Failure::failed(sentence));
        }
        self.open_or_make()
    }
}

impl Default for Backend {
    fn default() -> Self {
        Self::embedded(PathBuf::from("waybill.db"))
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("embedded", path)) if !path.is_empty() => Ok(Self::embedded(PathBuf::from(path))),
            _ if text == "aws" => Err("the AWS backend is known, but not built in this version".to_owned()),
            _ => Err("a backend is embedded:PATH, such as embedded:waybill.db".to_owned()),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "embedded:{}", self.path.display())
    }
}
