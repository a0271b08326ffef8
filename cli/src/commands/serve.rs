//! `waybill serve`: the whole system in one process, until it is told to stop.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::Globals;
use super::config::{DEFAULT_FILE, load, locality};
use crate::backend::Backend;
use crate::exit::{Exit, Failure};
use crate::serve::{self, Settings};

/// How the system is run.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file
    #[arg(long, default_value = DEFAULT_FILE)]
    config: PathBuf,
    /// The data file; the same as --backend embedded:FILE
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Where events are taken
    #[arg(long, default_value = "127.0.0.1:8787")]
    listen: SocketAddr,
    /// For local development: take recipients on this machine and plain HTTP, and let callers on
    /// this machine publish without a token
    #[arg(long)]
    allow_local: bool,
    /// How many deliveries are worked on at once
    #[arg(long, default_value = "256")]
    concurrency: NonZeroUsize,
}

pub(super) async fn run(globals: &Globals, arguments: Arguments) -> Result<Exit, Failure> {
    let Arguments { config, data, listen, allow_local, concurrency } = arguments;
    let locality = locality(allow_local);
    let settings = Settings {
        config: load(&config, locality)?,
        backend: data.map_or_else(|| globals.backend.clone(), Backend::embedded),
        listen,
        locality,
        concurrency,
        output: globals.output,
    };
    serve::run(settings).await
}
