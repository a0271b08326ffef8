//! The commands: what each takes, and where it is carried out.

mod audit;
mod batches;
mod beside;
mod capacity;
pub(crate) mod config;
mod dead_letters;
mod deliveries;
mod destinations;
mod doctor;
mod endings;
mod faults;
mod holds;
mod known;
mod lifting;
mod lines;
mod listing;
mod operator;
mod owners;
pub(crate) mod publish;
mod probe;
mod redrive;
mod revisions;
mod schedules;
mod serve;

use clap::{Parser, Subcommand};
use waybill_domain::audit::why as audit_why;
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::{DeliveryId, DestinationName, TenantId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::Clock as _;
use waybill_system::SystemClock;

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

    /// Who acts: audited with every act, and bounded by the operators of the configuration in force
    /// [env: WAYBILL_OPERATOR] [default: the user's name on this machine]
    #[arg(long, global = true, value_name = "NAME")]
    operator: Option<String>,

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
    /// Look at what automation gave up, and end what needs no more sending
    #[command(subcommand)]
    DeadLetters(dead_letters::Command),
    /// Release dead letters: plan, start, stop, resume
    #[command(subcommand)]
    Redrive(redrive::Command),
    /// Keep deliveries from going, and let them go again
    #[command(subcommand)]
    Hold(holds::Command),
    /// Look at the recipients
    #[command(subcommand)]
    Destinations(destinations::Command),
    /// Look at what the calendar publishes: what is next, what was last, what is owed
    #[command(subcommand)]
    Schedules(schedules::Command),
    /// Ask a recipient with signed test events whether it does what it should
    Probe(probe::Arguments),
    /// Who did what, when and why
    #[command(subcommand)]
    Audit(audit::Command),
    /// Reckon what an outage leaves: backlog, drain time, slack, and what comes first
    Capacity(capacity::Arguments),
    /// Run an example from end to end against a recipient of its own, and check every promise
    Rehearse(crate::rehearse::Arguments),
    /// Look at the installation, and say what to mend
    Doctor(doctor::Arguments),
    /// Check the configuration, put it in force, and back again
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
    /// Who acts, if the line or the environment says so.
    pub(crate) operator: Option<String>,
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
        let operator = self.operator.or_else(|| std::env::var("WAYBILL_OPERATOR").ok());
        let globals = Globals { named_backend: self.backend, output: self.output, operator };
        let runtime = tokio::runtime::Runtime::new()
            .map_err(|error| Failure::failed(format!("no threads to run on: {error}")))?;
        let ended = runtime.block_on(async {
            match self.command {
                Command::Serve(arguments) => serve::run(&globals, arguments).await,
                Command::Publish(arguments) => publish::run(&globals, arguments).await,
                Command::Deliveries(command) => deliveries::run(&globals, command).await,
                Command::DeadLetters(command) => dead_letters::run(&globals, command).await,
                Command::Redrive(command) => redrive::run(&globals, command).await,
                Command::Hold(command) => holds::run(&globals, command).await,
                Command::Destinations(command) => destinations::run(&globals, command).await,
                Command::Schedules(command) => schedules::run(&globals, command).await,
                Command::Probe(arguments) => probe::run(&globals, arguments).await,
                Command::Audit(command) => audit::run(&globals, command).await,
                Command::Capacity(arguments) => capacity::run(&globals, &arguments).await,
                Command::Rehearse(arguments) => crate::rehearse::run(&globals, arguments).await,
                Command::Doctor(arguments) => doctor::run(&globals, arguments).await,
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

/// Why something is done, in the operator's words.
fn why(text: &str) -> Result<String, String> {
    audit_why(text).map_err(refused)
}

fn tenant(text: &str) -> Result<TenantId, String> {
    TenantId::parse(text).map_err(refused)
}

fn destination(text: &str) -> Result<DestinationName, String> {
    DestinationName::parse(text).map_err(refused)
}

fn delivery_id(text: &str) -> Result<DeliveryId, String> {
    let hint = "; `waybill deliveries list` shows those of every event";
    DeliveryId::parse(text).map_err(|invalid| refused(invalid) + hint)
}

/// A moment, as a time or as a span before now.
fn moment(text: &str) -> Result<TimeMs, String> {
    if let Ok(span) = DurationMs::parse("since", text) {
        return Ok(SystemClock.now().minus(span));
    }
    TimeMs::parse("since", text).map_err(|invalid| {
        let rule = format!("{}, or a span such as 24h", invalid.rule);
        refused(InvalidField { rule, ..invalid })
    })
}
