//! `waybill config check`: every fault of the file at once, or what the file says in short. Putting a
//! configuration in force, and what was in force, stand in [`revisions`].

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::json;
use waybill_domain::address::Locality;
use waybill_service::config::Config;
use waybill_service::config_file::{self, ConfigFault, Rules, SecretStores};

use super::{Globals, revisions};
use crate::backend::Backend;
use crate::exit::{Exit, Failure, in_words};
use crate::out::{self, Format};
use crate::serve::secrets::unusable;
use crate::show::config::summary;

/// Where the configuration is, unless a command is told otherwise.
pub(crate) const DEFAULT_FILE: &str = "waybill.toml";

/// What can be done with the configuration.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Print the file with the files that it names within it, as one text that stands by itself
    Bundle {
        /// The configuration file
        #[arg(default_value = DEFAULT_FILE)]
        file: PathBuf,
    },
    /// Read the file as a whole and name every fault
    Check {
        /// The configuration file
        #[arg(default_value = DEFAULT_FILE)]
        file: PathBuf,
        /// Take recipients on this machine and plain HTTP, for local development
        #[arg(long)]
        allow_local: bool,
    },
    /// Put a file in force, as a revision of its own
    Apply(revisions::Apply),
    /// What would change if a file were put in force
    Diff {
        /// The configuration file
        #[arg(default_value = DEFAULT_FILE)]
        file: PathBuf,
    },
    /// A configuration as it was applied: the one in force, or an earlier one
    Show {
        /// Its revision, or its number in the history
        revision: Option<String>,
    },
    /// Those that were in force, newest first: who, when and why
    History,
    /// Put an earlier configuration in force again
    Rollback(revisions::Rollback),
}

/// Why a configuration is not there to be used.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// There is no such file.
    Missing,
    /// The file cannot be read.
    Unread(String),
    /// The file has faults.
    Faulty(Vec<ConfigFault>),
}

pub(super) async fn run(globals: &Globals, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Check { file, allow_local } => check(globals, file, allow_local).await,
        Command::Bundle { file } => {
            out::line(text(&file).map_err(|unusable| unusable.of(&file))?.trim_end());
            Ok(Exit::Done)
        }
        Command::Apply(arguments) => revisions::apply(globals, arguments).await,
        Command::Diff { file } => revisions::diff(globals, &file).await,
        Command::Show { revision } => revisions::show(globals, revision.as_deref()).await,
        Command::History => revisions::history(globals).await,
        Command::Rollback(arguments) => revisions::roll_back(globals, arguments).await,
    }
}

async fn check(globals: &Globals, file: PathBuf, allow_local: bool) -> Result<Exit, Failure> {
    let rules = rules(&globals.backend(), locality(allow_local))?;
    match (read(&file, rules), globals.output) {
        // Secrets may well be set only where the system runs: not a fault of the file.
        (Ok(config), Format::Table) => {
            out::line(summary(&file, &config));
            for warning in warnings(&config, rules).await {
                out::complain(format_args!("warning: {warning}"));
            }
        }
        (Ok(config), Format::Json) => out::json(&json!({
            "config_revision": config.revision.as_str(),
            "destinations": config.destinations.keys().map(ToString::to_string).collect::<Vec<_>>(),
            "schedules": config.schedules.iter().map(|schedule| &schedule.name).collect::<Vec<_>>(),
            "producers": config.producers.keys().collect::<Vec<_>>(),
            "sources": config.sources.keys().collect::<Vec<_>>(),
            "warnings": warnings(&config, rules).await,
        })),
        (Err(unusable), output) => return say(unusable, &file, output, "config check"),
    }
    Ok(Exit::Done)
}

/// Says why a file cannot be used, to a command that takes its name as an argument.
pub(super) fn say(unusable: Unusable, file: &Path, output: Format, command: &str) -> Result<Exit, Failure> {
    match (unusable, output) {
        (Unusable::Faulty(faults), Format::Json) => {
            for ConfigFault { line, key, fault, rule } in faults {
                out::json(&json!({ "line": line, "key": key, "fault": fault, "rule": rule }));
            }
            Ok(Exit::WrongInput)
        }
        (Unusable::Missing, _) => {
            let sentence = format!("{}: there is no such file; {command} FILE names it", file.display());
            Err(Failure::wrong_input(sentence))
        }
        (unusable, _) => Err(unusable.of(file)),
    }
}

/// What a file is held to before it is put in force on a backend.
pub(crate) fn rules(backend: &Backend, locality: Locality) -> Result<Rules, Failure> {
    Ok(Rules { locality, secrets: backend.secret_stores(), worker_runs: backend.worker_runs()? })
}

/// The configuration in `file`, or the failure that lists its faults.
pub(crate) fn load(file: &Path, rules: impl Into<Rules>) -> Result<Config, Failure> {
    read(file, rules.into()).map_err(|unusable| unusable.of(file))
}

/// What `--allow-local` stands for.
pub(crate) fn locality(allow_local: bool) -> Locality {
    if allow_local { Locality::AllowLocal } else { Locality::PublicOnly }
}

/// What would fail at use. On AWS the functions resolve secrets, in an environment of their own and
/// under their own role: what is set here says nothing of it.
pub(super) async fn warnings(config: &Config, rules: Rules) -> Vec<String> {
    match rules.secrets {
        SecretStores::Environment => unusable(config).await.iter().map(ToString::to_string).collect(),
        SecretStores::Aws => Vec::new(),
    }
}

/// The configuration in `file`, or why there is none to be used.
pub(super) fn read(file: &Path, rules: Rules) -> Result<Config, Unusable> {
    let text = own_text(file)?;
    config_file::parse_with_files(&text, |name| beside(file, name), rules).map_err(Unusable::Faulty)
}

/// What `file` says, with the files beside it that it names: one text, as it is applied.
pub(crate) fn text(file: &Path) -> Result<String, Unusable> {
    config_file::bundle(&own_text(file)?, |name| beside(file, name)).map_err(Unusable::Faulty)
}

/// What a file says that the configuration names, which stands beside it.
fn beside(file: &Path, name: &str) -> Result<String, String> {
    let folder = file.parent().unwrap_or(Path::new(""));
    std::fs::read_to_string(folder.join(name)).map_err(|error| in_words(&error))
}

/// What `file` itself says.
fn own_text(file: &Path) -> Result<String, Unusable> {
    let bytes = std::fs::read(file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Unusable::Missing,
        _ => Unusable::Unread(in_words(&error)),
    })?;
    utf8(bytes).map_err(Unusable::Unread)
}

/// What a file says, or in which line it is no text.
pub(super) fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        format!("line {line}: is not UTF-8")
    })
}

impl Unusable {
    pub(crate) fn of(self, file: &Path) -> Failure {
        let file = file.display();
        Failure::wrong_input(match self {
            Unusable::Missing => format!("{file}: there is no such configuration file; --config names it"),
            Unusable::Unread(why) => format!("{file}: {why}"),
            Unusable::Faulty(faults) => {
                let lines: Vec<String> = faults.iter().map(|fault| format!("{file}: {fault}")).collect();
                lines.join("\n")
            }
        })
    }
}
