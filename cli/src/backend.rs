//! Where the ledger and the queue are: `--backend embedded:PATH`, or `--backend aws`.
//!
//! A build without the feature `aws` knows the embedded backend alone. A command is written once,
//! over ports; [`on_store`] runs it on whichever backend is asked for.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use waybill_domain::time::DurationMs;
use waybill_embedded::EmbeddedStore;
use waybill_service::config_file::SecretStores;
use waybill_service::ports::in_full;
use waybill_system::SystemClock;

use crate::exit::{Failure, said_once};

/// The embedded backend on the real clock.
pub(crate) type Store = EmbeddedStore<SystemClock>;

/// Where the ledger and the queue are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Backend {
    /// In this file.
    Embedded(PathBuf),
    /// In the table and the queues that the environment names.
    #[cfg(feature = "aws")]
    Aws,
}

/// A backend that is open.
#[derive(Debug)]
pub(crate) enum Opened {
    /// The embedded one.
    Embedded(Store),
    /// The one on AWS.
    #[cfg(feature = "aws")]
    Aws(Box<aws::AwsStore>),
}

impl Opened {
    /// Whether a command itself carries out what it ordered. On AWS the functions alone do: operators
    /// never write a delivery.
    pub(crate) fn carries_out_orders(&self) -> bool {
        match self {
            Self::Embedded(_) => true,
            #[cfg(feature = "aws")]
            Self::Aws(_) => false,
        }
    }
}

/// Runs `$body` with the ledger and the queue of whichever backend is open.
macro_rules! on_store {
    ($opened:expr, |$ledger:ident, $queue:pat_param| $body:expr) => {
        match &$opened {
            $crate::backend::Opened::Embedded(store) => {
                let ($ledger, $queue) = (store, store);
                $body
            }
            #[cfg(feature = "aws")]
            $crate::backend::Opened::Aws(store) => {
                let ($ledger, $queue) = (&store.ledger, &store.queue);
                $body
            }
        }
    };
}
pub(crate) use on_store;

/// Runs `$body` with the ledger and the office of whichever backend is open.
macro_rules! on_office {
    ($opened:expr, |$ledger:pat_param, $office:ident| $body:expr) => {
        match &$opened {
            $crate::backend::Opened::Embedded(store) => {
                let ($ledger, $office) = (store, store);
                $body
            }
            #[cfg(feature = "aws")]
            $crate::backend::Opened::Aws(store) => {
                let ($ledger, $office) = (&store.ledger, &store.office);
                $body
            }
        }
    };
}
pub(crate) use on_office;

impl Backend {
    /// The embedded backend on this file.
    pub(crate) fn embedded(path: PathBuf) -> Self {
        Self::Embedded(path)
    }

    /// Which references to secrets can be resolved there.
    pub(crate) fn secret_stores(&self) -> SecretStores {
        match self {
            Self::Embedded(_) => SecretStores::Environment,
            #[cfg(feature = "aws")]
            Self::Aws => SecretStores::Aws,
        }
    }

    /// How long a worker runs there before it is ended; `None` where it runs until it is told to stop.
    pub(crate) fn worker_runs(&self) -> Result<Option<DurationMs>, Failure> {
        match self {
            Self::Embedded(_) => Ok(None),
            #[cfg(feature = "aws")]
            Self::Aws => match waybill_aws::consumer_runs() {
                Ok(runs) => Ok(Some(runs)),
                Err(odd) => Err(Failure::wrong_input(odd.to_string())),
            },
        }
    }

    /// The data file of the embedded backend.
    pub(crate) fn data_file(&self) -> Option<&Path> {
        match self {
            Self::Embedded(path) => Some(path),
            #[cfg(feature = "aws")]
            Self::Aws => None,
        }
    }

    /// Opens it; makes the embedded one's file if it is not there.
    pub(crate) async fn open_or_make(&self) -> Result<Opened, Failure> {
        match self {
            Self::Embedded(path) => open_file(path).map(Opened::Embedded),
            #[cfg(feature = "aws")]
            Self::Aws => aws::open().await.map(|store| Opened::Aws(Box::new(store))),
        }
    }

    /// Opens what is there: a mistyped path must not be answered with an empty ledger.
    pub(crate) async fn open(&self) -> Result<Opened, Failure> {
        if let Some(path) = self.data_file().filter(|path| !path.exists()) {
            let path = path.display();
            let sentence = format!("{path}: there is no such data file; --backend embedded:PATH names it");
            return Err(Failure::failed(sentence));
        }
        self.open_or_make().await
    }
}

/// Opens the embedded backend's file; makes it if it is not there.
pub(crate) fn open_file(path: &Path) -> Result<Store, Failure> {
    EmbeddedStore::open(path, SystemClock)
        .map_err(|error| Failure::failed(format!("{}: {}", path.display(), said_once(&in_full(&error)))))
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
            #[cfg(feature = "aws")]
            _ if text == "aws" => Ok(Self::Aws),
            #[cfg(not(feature = "aws"))]
            _ if text == "aws" => Err("this build has no AWS backend: build with --features aws".to_owned()),
            _ if cfg!(feature = "aws") => {
                Err("a backend is embedded:PATH, such as embedded:waybill.db, or aws".to_owned())
            }
            _ => Err("a backend is embedded:PATH, such as embedded:waybill.db".to_owned()),
        }
    }
}

/// As a person names it: the data file, or AWS.
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded(path) => write!(f, "{}", path.display()),
            #[cfg(feature = "aws")]
            Self::Aws => f.write_str("aws"),
        }
    }
}

/// The backend on AWS: where it is stands in the environment, as for the functions.
#[cfg(feature = "aws")]
pub(crate) mod aws {
    use std::sync::Arc;

    use waybill_aws::clients::{Clients, Limits, loader};
    use waybill_aws::{AwsOffice, AwsSecrets, Caller, DynamoLedger, Place, SqsQueue, consumer_runs, examine};
    use waybill_service::config::Config;
    use waybill_service::examination::Found;
    use waybill_service::ports::in_full;
    use waybill_system::SystemClock;

    use crate::exit::Failure;

    /// Ledger, queue and office, where they are, and who asks.
    #[derive(Debug)]
    pub(crate) struct AwsStore {
        pub(crate) ledger: DynamoLedger,
        pub(crate) queue: SqsQueue,
        pub(crate) office: AwsOffice,
        pub(crate) caller: Caller,
        place: Place,
        clients: Clients,
    }

    /// Whatever the environment names.
    pub(super) async fn open() -> Result<AwsStore, Failure> {
        let place = Place::from_environment().map_err(|missing| Failure::wrong_input(missing.to_string()))?;
        let config = loader(Limits::default()).load().await;
        let (clients, caller) = (Clients::of(&config), Caller::of(&config).await?);
        let (ledger, queue, office) = (place.ledger(&clients), place.queue(&clients), place.office(&clients));
        Ok(AwsStore { ledger, queue, office, caller, place, clients })
    }

    impl AwsStore {
        /// What the configuration's references name, as far as the caller may read it.
        pub(crate) fn secrets(&self) -> AwsSecrets<SystemClock> {
            AwsSecrets::new(self.clients.clone(), SystemClock)
        }

        /// How everything that the environment names is set.
        pub(crate) async fn examined(&self) -> Result<Vec<Found>, Failure> {
            let runs = consumer_runs().map_err(|odd| Failure::wrong_input(odd.to_string()))?;
            Ok(examine(&self.clients, &self.place, &SystemClock, runs).await)
        }

        /// The configuration in force.
        pub(crate) async fn configuration(&self) -> Result<Arc<Config>, Failure> {
            let source = self.place.configuration(&self.clients, SystemClock);
            source.current().await.map_err(|error| Failure::failed(in_full(&error)))
        }
    }
}
