//! `waybill publish`: events as JSON lines; one answer line each.
//!
//! A bad line is reported with its number and the others go through. What a line holds is never
//! written again on its way to the ledger: the payload is the very bytes between its delimiters.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::json;
use waybill_domain::address::Locality;
use waybill_service::config::Config;
use waybill_service::event::Event;
use waybill_service::ingest::facts;
use waybill_service::publish::{Published, Publisher};

use super::Globals;
use super::batches::Batches;
use super::config::{DEFAULT_FILE, load};
use crate::backend::Store;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use waybill_service::refusal::{Code, Refusal};
use waybill_system::SystemClock;

/// What is published, under which configuration.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Events as JSON lines; - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The configuration file
    #[arg(long, default_value = DEFAULT_FILE)]
    config: PathBuf,
}

pub(super) async fn run(globals: &Globals, arguments: Arguments) -> Result<Exit, Failure> {
    // Publishing sends nothing to anybody: `serve`, which does, judges addresses by its own switch.
    let config = load(&arguments.config, Locality::AllowLocal)?;
    let mut batches = Batches::new(source(&arguments.file)?);
    let store = globals.backend.open_or_make()?;
    let mut exit = Exit::Done;
    loop {
        let batch = batches
            .next()
            .map_err(|error| Failure::wrong_input(format!("{}: {error}", arguments.file.display())))?;
        if batch.is_empty() {
            return Ok(exit);
        }
        let publishing =
            batch.into_iter().map(async |(number, event)| (number, publish(&store, &config, event).await));
        let mut unavailable = None;
        for (number, answer) in futures::future::join_all(publishing).await {
            match answer {
                Ok(published) => accepted(globals.output, number, &published),
                Err(refusal) if refusal.code == Code::Unavailable => {
                    unavailable.get_or_insert((number, refusal));
                }
                Err(refusal) => {
                    refused(globals.output, number, &refusal);
                    exit = Exit::WrongInput;
                }
            }
        }
        if let Some((number, refusal)) = unavailable {
            let why = refusal.cause.unwrap_or(refusal.message);
            let sentence = format!("line {number}: {why}; publish it and every line without an answer again");
            return Err(Failure::failed(sentence));
        }
    }
}

fn source(file: &Path) -> Result<Box<dyn Read>, Failure> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let opened = File::open(file);
    opened
        .map(|file| Box::new(file) as Box<dyn Read>)
        .map_err(|error| Failure::wrong_input(format!("{}: {error}", file.display())))
}

async fn publish(
    store: &Store,
    config: &Config,
    event: Result<Event, Refusal>,
) -> Result<Vec<Published>, Refusal> {
    let publisher = Publisher { ledger: store, queue: store, clock: &SystemClock };
    publisher.publish(config, event?).await.map_err(Refusal::of_publish)
}

fn accepted(output: Format, line: u64, published: &[Published]) {
    if output == Format::Json {
        out::json(&json!({ "line": line, "deliveries": published.iter().map(facts).collect::<Vec<_>>() }));
        return;
    }
    let each = published.iter().map(|p| {
        let repeated = if p.repeated { ", was published before" } else { "" };
        format!("{} to {} ({}{repeated})", p.delivery_id, p.destination, p.state)
    });
    out::line(format_args!("line {line}: {}", each.collect::<Vec<_>>().join("; ")));
}

fn refused(output: Format, line: u64, refusal: &Refusal) {
    match output {
        Format::Json => out::json(&json!({ "line": line, "error": refusal.facts() })),
        Format::Table => out::complain(format_args!("line {line}: {}", refusal.message)),
    }
}
