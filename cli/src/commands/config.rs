//! `waybill config check`: every fault of the file at once, or what the file says in short.

use std::path::{Path, PathBuf};

use serde_json::json;
use waybill_domain::address::Locality;
use waybill_service::config::Config;
use waybill_service::config_file::{self, ConfigFault};

use super::Globals;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::config::summary;

/// Where the configuration is, unless a command is told otherwise.
pub(crate) const DEFAULT_FILE: &str = "waybill.toml";

/// What can be done with the configuration.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Read the file as a whole and name every fault
    Check {
        /// The configuration file
        #[arg(default_value = DEFAULT_FILE)]
        file: PathBuf,
        /// Take recipients on this machine and plain HTTP, for local development
        #[arg(long)]
        allow_local: bool,
    },
}

/// Why a configuration is not there to be used.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The file cannot be read.
    Unread(String),
    /// The file has faults.
    Faulty(Vec<ConfigFault>),
}

pub(super) fn run(globals: &Globals, command: Command) -> Result<Exit, Failure> {
    let Command::Check { file, allow_local } = command;
    match (read(&file, locality(allow_local)), globals.output) {
        (Ok(config), Format::Table) => out::line(summary(&config)),
        (Ok(config), Format::Json) => out::json(&json!({
            "config_revision": config.revision.as_str(),
            "destinations": config.destinations.keys().map(ToString::to_string).collect::<Vec<_>>(),
            "producers": config.producers.keys().collect::<Vec<_>>(),
        })),
        (Err(Unusable::Faulty(faults)), Format::Json) => {
            for ConfigFault { line, key, fault, rule } in faults {
                out::json(&json!({ "line": line, "key": key, "fault": fault, "rule": rule }));
            }
            return Ok(Exit::WrongInput);
        }
        (Err(unusable), _) => return Err(unusable.of(&file)),
    }
    Ok(Exit::Done)
}

/// The configuration in `file`, or the failure that lists its faults.
pub(crate) fn load(file: &Path, locality: Locality) -> Result<Config, Failure> {
    read(file, locality).map_err(|unusable| unusable.of(file))
}

/// What `--allow-local` stands for.
pub(crate) fn locality(allow_local: bool) -> Locality {
    if allow_local { Locality::AllowLocal } else { Locality::PublicOnly }
}

fn read(file: &Path, locality: Locality) -> Result<Config, Unusable> {
    let bytes = std::fs::read(file).map_err(|error| Unusable::Unread(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        Unusable::Unread(format!("line {line}: is not UTF-8"))
    })?;
    config_file::parse(&text, locality).map_err(Unusable::Faulty)
}

impl Unusable {
    fn of(self, file: &Path) -> Failure {
        let file = file.display();
        Failure::wrong_input(match self {
            Unusable::Unread(why) => format!("{file}: {why}"),
            Unusable::Faulty(faults) => {
                let lines: Vec<String> = faults.iter().map(|fault| format!("{file}: {fault}")).collect();
                lines.join("\n")
            }
        })
    }
}
