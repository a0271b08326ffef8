//! The commands: what each takes, and where it is carried out.

mod batches;
pub(crate) mod config;
mod dead_letters;
mod deliveries;
mod faults;
mod lines;
mod listing;
mod owners;
pub(crate) mod publish;
mod serve;

use clap::{Parser, Subcommand};
use waybill_domain::fault::InvalidField;

use crate::backend::Backend;
use crate::exit::{CODES, Exit, Failure};
use crate::out::Format;

/// Delivers webhooks, and keeps the evidence.
#[derive(Debug, Parser)]
#[command(name = "waybill", version, arg_required_else_help = true, after_help = CODES)]
pub(crate) struct CommandLine {
    /// Where ledger and queue are: embedded:PATH, or aws where this build has it [default:
    /// embedded:waybill.db]
    #[arg(long, global = true, value_name = "BACKEND")]
    backend: Option<Backend>,

    /// Tables for people, JSON lines for programs
    #[arg(long, global = true, value_enum, default_value_t)]
    output: Format,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the whole system in one process: ingest, consumer and reconciler
    Serve(serve::Arguments),
    /// Publish events from JSON lines; one answer line each
    Publish(publish::Arguments),
    /// List deliveries, or show one with every attempt
    #[command(subcommand)]
    Deliveries(deliveries::Command),
    /// Look at what automation gave up
    #[command(subcommand)]
    DeadLetters(dead_letters::Command),
    /// Run an example from end to end against a recipient of its own, and check every promise
    Rehearse(crate::rehearse::Arguments),
    /// Check the configuration
    #[command(subcommand)]
    Config(config::Command),
}

/// What every command is told.
#[derive(Debug)]
pub(crate) struct Globals {
    /// Where ledger and queue are, if the line says so.
    pub(crate) named_backend: Option<Backend>,
    /// How answers are written.
    pub(crate) output: Format,
}

impl Globals {
    /// Where ledger and queue are.
    pub(crate) fn backend(&self) -> Backend {
        self.named_backend.clone().unwrap_or_default()
    }
}

impl CommandLine {
    /// Carries the command out.
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let globals = Globals { named_backend: self.backend, output: self.output };
        let runtime = tokio::runtime::Runtime::new()
            .map_err(|error| Failure::failed(format!("no threads to run on: {error}")))?;
        let ended = runtime.block_on(async {
            match self.command {
                Command::Serve(arguments) => serve::run(&globals, arguments).await,
                Command::Publish(arguments) => publish::run(&globals, arguments).await,
                Command::Deliveries(command) => deliveries::run(&globals, command).await,
                Command::DeadLetters(command) => dead_letters::run(&globals, command).await,
                Command::Rehearse(arguments) => crate::rehearse::run(&globals, arguments).await,
                Command::Config(command) => config::run(&globals, command).await,
            }
        });
        // A name that is still being looked up must not keep the process from ending.
        runtime.shutdown_background();
        ended
    }
}

/// A value of the command line that was refused: clap names the argument itself.
fn refused(invalid: InvalidField) -> String {
    format!("{} ({})", invalid.fault, invalid.rule)
}
