//! `waybill serve`: the whole system in one process, until it is told to stop.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::Globals;
use super::config::{DEFAULT_FILE, locality};
use crate::exit::{Exit, Failure};
use crate::serve::{self, Given, Settings};

/// How the system is run.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file: put in force if it is new. Without it, waybill.toml if that is there,
    /// and otherwise what is in force in the data file
    #[arg(long)]
    config: Option<PathBuf>,
    /// The data file; the same as --backend embedded:FILE, and not to be given beside it
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Where events are taken
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8787", value_parser = listen)]
    listen: SocketAddr,
    /// For local development: take recipients on this machine and plain HTTP, and let callers on
    /// this machine publish without a token
    #[arg(long)]
    allow_local: bool,
    /// How many deliveries are worked on at once
    #[arg(long, default_value = "256", value_parser = concurrency)]
    concurrency: NonZeroUsize,
}

pub(super) async fn run(globals: &Globals, arguments: Arguments) -> Result<Exit, Failure> {
    let Arguments { config, data, listen, allow_local, concurrency } = arguments;
    let data = match (data, &globals.named_backend) {
        (Some(_), Some(_)) => {
            let sentence = "--data and --backend both say where ledger and queue are: give one of them";
            return Err(Failure::wrong_input(sentence));
        }
        (Some(file), None) => Some(file),
        (None, _) => globals.backend().data_file().map(Path::to_owned),
    };
    let Some(data) = data else {
        let sentence = "serve runs the embedded backend: on AWS the functions take, send and repair";
        return Err(Failure::wrong_input(sentence));
    };
    let locality = locality(allow_local);
    let is_named = config.is_some();
    let config_file = config.unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    let given = match Given::read(&config_file, locality)? {
        None if is_named => return Err(serve::nothing_given(&config_file)),
        given => given,
    };
    let (operator, output) = (globals.operator.clone(), globals.output);
    serve::run(Settings { given, config_file, data, listen, locality, concurrency, operator, output }).await
}

/// An address and a port. `localhost` is this machine over IPv4; other names are not looked up: a
/// server listens at an address of its own.
fn listen(text: &str) -> Result<SocketAddr, &'static str> {
    let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    match local {
        Some(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        None => {
            text.parse().map_err(|_| "an IP address and a port, such as 127.0.0.1:8787 or localhost:8787")
        }
    }
}

fn concurrency(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "a whole number from 1 on")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_only_this_machine_has_a_name() {
        assert_eq!(listen("localhost:8788").unwrap(), "127.0.0.1:8788".parse().unwrap());
        assert_eq!(listen("[::1]:0").unwrap().port(), 0);
        for text in ["localhost", "localhost:", "localhost:70000", "example.com:80", "127.0.0.1", ":8787"] {
            assert!(listen(text).is_err(), "{text}");
        }
        assert!(concurrency("0").is_err() && concurrency("-1").is_err() && concurrency("1").is_ok());
    }
}
