//! `waybill publish`: events as JSON lines; one answer line each.
//!
//! A bad line is reported with its place and the others go through. What a line holds is never
//! written again on its way to the ledger: the payload is the very bytes between its delimiters.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use waybill_domain::address::Locality;
use waybill_domain::authority::Book;
use waybill_domain::identity::TenantId;
use waybill_service::config::Config;
use waybill_service::config_file::Rules;
use waybill_service::event::Event;
use waybill_service::ingest::facts;
use waybill_service::ports::{Ledger, Queue};
use waybill_service::publish::{Published, Publisher};

use super::Globals;
use super::batches::{Batches, Place, Row};
use super::config::{DEFAULT_FILE, load};
use super::operator::Operator;
use crate::backend::{Backend, Opened, on_store};
use crate::exit::{self, Exit, Failure};
use crate::out::{self, Format};
use waybill_service::refusal::{Code, Refusal};
use waybill_system::SystemClock;

/// What is published, under which configuration.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Events as JSON lines; - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The configuration file [default: the configuration in force, or waybill.toml where none was applied]
    #[arg(long)]
    config: Option<PathBuf>,
}

pub(super) async fn run(globals: &Globals, arguments: Arguments) -> Result<Exit, Failure> {
    let backend = globals.backend();
    let named = arguments.config.as_deref().map(|file| file_config(file, &backend)).transpose()?;
    let (source, reader) = Source::open(&arguments.file)?;
    let mut batches = Batches::new(reader);
    // A data file that is not there yet has no configuration in force: without one, none is made.
    let default = match backend.data_file() {
        Some(file) if named.is_none() && !file.exists() => Some(default_config(&backend)?),
        _ => None,
    };
    let opened = backend.open_or_make().await?;
    let operator = Operator::of(globals, &opened, "publish").await?;
    let config = match (named.or(default), operator.config_at_hand(), &opened) {
        (Some(config), _, _) => config,
        (None, Some(in_force), _) => Arc::new(in_force.clone()),
        #[cfg(feature = "aws")]
        (None, None, Opened::Aws(store)) => store.configuration().await?,
        (None, None, _) => default_config(&backend)?,
    };
    on_store!(opened, |ledger, queue| {
        let publisher = Publisher { ledger, queue, clock: &SystemClock };
        let bounds = Bounds { opened: &opened, operator: &operator };
        each_batch(globals.output, &publisher, &config, &bounds, &mut batches, &source).await
    })
}

fn default_config(backend: &Backend) -> Result<Arc<Config>, Failure> {
    file_config(Path::new(DEFAULT_FILE), backend)
}

/// Publishing sends nothing to anybody: `serve`, which does, judges addresses by its own switch, and
/// the functions by theirs.
fn file_config(file: &Path, backend: &Backend) -> Result<Arc<Config>, Failure> {
    let rules = Rules { locality: Locality::AllowLocal, secrets: backend.secret_stores(), worker_runs: None };
    load(file, rules).map(Arc::new)
}

/// For which tenants the operator may publish.
struct Bounds<'a> {
    opened: &'a Opened,
    operator: &'a Operator,
}

impl Bounds<'_> {
    /// Refuses the events of tenants beyond them. That it was tried is entered once for each tenant.
    async fn keep(&self, batch: &mut [Row], seen: &mut BTreeSet<TenantId>) {
        for row in batch {
            let Ok(event) = &row.event else { continue };
            if self.operator.may_see(&event.tenant) {
                continue;
            }
            let tenant = event.tenant.clone();
            let message = format!("tenant: the operator is not authorised for tenant {tenant}");
            row.event = Err(Refusal::new(Code::Forbidden, message));
            if seen.insert(tenant.clone()) {
                // The answer is the line's own; what counts here is the entry.
                let _ = self.operator.check(self.opened, &Book::Tenant(tenant)).await;
            }
        }
    }
}

async fn each_batch<L: Ledger, Q: Queue, R: Read>(
    output: Format,
    publisher: &Publisher<'_, L, Q, SystemClock>,
    config: &Config,
    bounds: &Bounds<'_>,
    batches: &mut Batches<R>,
    source: &Source,
) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    let mut beyond = BTreeSet::new();
    let mut is_empty = true;
    loop {
        let mut batch = batches
            .next()
            .map_err(|error| Failure::wrong_input(format!("{}: {}", source.name, exit::in_words(&error))))?;
        if batch.is_empty() {
            if is_empty {
                out::complain("no events");
            }
            return Ok(exit);
        }
        is_empty = false;
        bounds.keep(&mut batch, &mut beyond).await;
        let publishing =
            batch.into_iter().map(async |row| (row.place, publish(publisher, config, row.event).await));
        let mut unavailable = None;
        for (place, answer) in futures::future::join_all(publishing).await {
            match answer {
                Ok(published) => accepted(output, place, &published),
                Err(refusal) if refusal.code == Code::Unavailable => {
                    unavailable.get_or_insert((place, refusal));
                }
                Err(refusal) => {
                    refused(output, &source.at(place), place, &refusal);
                    let is_rule = matches!(refusal.code, Code::Conflict | Code::Forbidden);
                    exit = exit.max(if is_rule { Exit::Refused } else { Exit::WrongInput });
                }
            }
        }
        if let Some((place, refusal)) = unavailable {
            let why = exit::said_once(&refusal.cause.unwrap_or(refusal.message));
            let at = source.at(place);
            return Err(Failure::failed(format!(
                "{at}: {why}; publish it and every line without an answer again"
            )));
        }
    }
}

/// What events are read from, by name.
struct Source {
    name: String,
    is_file: bool,
}

impl Source {
    fn open(file: &Path) -> Result<(Self, Box<dyn Read>), Failure> {
        if file == Path::new("-") {
            if io::stdin().is_terminal() {
                out::complain("reading events from standard input, one line of JSON each; Ctrl-D ends them");
            }
            let name = "standard input".to_owned();
            return Ok((Self { name, is_file: false }, Box::new(io::stdin())));
        }
        let name = file.display().to_string();
        match File::open(file) {
            Ok(opened) => Ok((Self { name, is_file: true }, Box::new(opened))),
            Err(error) => Err(Failure::wrong_input(format!("{name}: {}", exit::in_words(&error)))),
        }
    }

    /// `events.jsonl: line 3, column 60`.
    fn at(&self, place: Place) -> String {
        let column = place.column.map_or_else(String::new, |column| format!(", column {column}"));
        let file = if self.is_file { format!("{}: ", self.name) } else { String::new() };
        format!("{file}line {}{column}", place.line)
    }
}

async fn publish<L: Ledger, Q: Queue>(
    publisher: &Publisher<'_, L, Q, SystemClock>,
    config: &Config,
    event: Result<Event, Refusal>,
) -> Result<Vec<Published>, Refusal> {
    publisher.publish(config, event?).await.map_err(Refusal::of_publish)
}

fn accepted(output: Format, Place { line, .. }: Place, published: &[Published]) {
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

fn refused(output: Format, at: &str, place: Place, refusal: &Refusal) {
    match output {
        Format::Json => {
            out::json(&json!({ "line": place.line, "column": place.column, "error": refusal.facts() }));
        }
        Format::Table => out::complain(format_args!("{at}: {}", refusal.message)),
    }
}
