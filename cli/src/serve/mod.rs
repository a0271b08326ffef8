//! The whole system in one process: ingest, consumer and reconciler on one data file.
//!
//! Started: the lock on the data file, then the listening address, then the store, then the
//! configuration in force, then work: a start that fails leaves no new files behind. Told to stop (SIGTERM, SIGINT): no new connection, no new
//! message; what is under way ends by itself within its own time. What does not is repaired by the
//! next start, like after any crash.

mod body;
mod fair;
mod health;
mod held;
mod ingest;
mod listen;
mod lock;
mod patience;
mod peer;
mod poll;
mod room;
mod scrape;
pub(crate) mod secrets;
mod start;
mod stop;
mod tick;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use waybill_domain::address::Locality;
use waybill_domain::time::DurationMs;
use waybill_http::HttpRecipient;
use waybill_service::acts::Desk;
use waybill_service::config::Config;
use waybill_service::config_file::Rules;
use waybill_service::desk::Desk as Budgets;
use waybill_service::office::Revisions as _;
use waybill_service::ports::{Ports, in_full};
use waybill_service::source::ConfigSource;

use crate::backend::{Store, open_file};
use crate::exit::{Exit, Failure, in_words, said_once};
use crate::out::{self, Format};
use patience::Patience;
use room::{Room, Rooms};
use secrets::Unusable;
pub(crate) use start::{Given, nothing_given};
use waybill_system::{SystemClock, SystemDice};

/// How the system is run.
pub(crate) struct Settings {
    /// What the configuration file says; without one, what is in force stays.
    pub(crate) given: Option<Given>,
    /// The configuration file, whether or not it is there.
    pub(crate) config_file: PathBuf,
    /// Ledger and queue.
    pub(crate) data: PathBuf,
    /// Where events are taken.
    pub(crate) listen: SocketAddr,
    /// Whether this machine counts as outside.
    pub(crate) locality: Locality,
    /// How many deliveries are worked on at once.
    pub(crate) concurrency: NonZeroUsize,
    /// Who starts it, if the line says so.
    pub(crate) operator: Option<String>,
    /// How the starting line is written.
    pub(crate) output: Format,
}

/// The ports of this process.
pub(crate) type ServePorts = Ports<Store, Store, HttpRecipient<SystemClock>, SystemClock, SystemDice>;

/// The configuration in force, as this process reads it.
pub(crate) type Source = ConfigSource<Store, SystemClock>;

/// How long what was read of it is held: a hold, a stop or a correction bites within it.
const HOLD: DurationMs = DurationMs::from_secs(1);

/// What an attempt may take beyond its timeout until everything about it is written down.
const SETTLING: Duration = Duration::from_secs(5);

/// How much of the bodies of requests is held at once: of callers that are known, and of strangers. Of these
/// each has a little beside that, more than most webhooks are large: whoever sends large bodies that
/// nobody signed keeps out large ones alone. With as many connections as there may be, 16 MiB more.
const MOST_BYTES_OF_KNOWN: usize = 48 << 20;
const MOST_BYTES_OF_STRANGERS: usize = 16 << 20;
const BYTES_OF_EACH_STRANGER: usize = 32 << 10;

/// Runs until told to stop.
pub(crate) async fn run(settings: Settings) -> Result<Exit, Failure> {
    waybill_system::log::start();
    let scrape = scrape::Scrape::start()?;
    let data = &settings.data;
    if settings.given.is_none() && !data.exists() {
        return Err(nothing_given(&settings.config_file));
    }
    let mut lock = lock::Lock::take(data)?;
    let deaf = |error: io::Error| {
        Failure::failed(format!("{}: cannot listen there: {}", settings.listen, in_words(&error)))
    };
    let listener = TcpListener::bind(settings.listen).await.map_err(deaf)?;
    let address = listener.local_addr().map_err(deaf)?;
    let stop = stop::on_signals()?;
    let store = open_file(data)?;
    lock.keep()?;

    let mut warnings = Vec::new();
    let rules = Rules::from(settings.locality);
    let desk = Desk { office: &store, clock: &SystemClock, dice: &SystemDice };
    match &settings.given {
        Some(given) => {
            warnings.extend(start::put_in_force(&desk, given, rules, settings.operator.as_deref()).await?)
        }
        None if store.in_force().await?.is_some() => {}
        None => return Err(nothing_given(&settings.config_file)),
    }
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let workers = settings.concurrency;
    let share = move |config: &mut Config| fair::share_workers(config, workers);
    let source = Arc::new(Source::new(store.clone(), rules, SystemClock, HOLD).adjusting(share));
    let config = source.current().await.map_err(|error| Failure::failed(said_once(&in_full(&error))))?;
    let unusable = secrets::unusable(&config).await;
    unusable.iter().for_each(Unusable::log);
    warnings.extend(unusable.iter().map(ToString::to_string));

    let ports = Arc::new(ServePorts {
        ledger: store.clone(),
        queue: store.clone(),
        recipient: HttpRecipient::new(SystemClock, settings.locality),
        clock: SystemClock,
        dice: SystemDice,
        desk: Budgets::default(),
    });
    let patience = Patience::new(SETTLING);
    let poller = poll::Poller::new(ports.clone(), source.clone(), settings.concurrency, patience.clone());
    let polling = tokio::spawn(poller.run(store.arrivals(), stop.clone()));
    let ticking = tokio::spawn(tick::run(ports, source.clone(), scrape.clone(), stop.clone()));
    let strangers = Room::of(MOST_BYTES_OF_STRANGERS).and_for_each(BYTES_OF_EACH_STRANGER);
    let rooms = Rooms { known: Room::of(MOST_BYTES_OF_KNOWN), strangers };
    let health = health::Health::default();
    let door = ingest::Ingest { store, source, locality: settings.locality, rooms, scrape, health };
    let serving = tokio::spawn(listen::serve(door, listener, stop.clone()));
    announce(settings.output, address, data, &config, &warnings);

    tokio::select! {
        () = stop.wait() => {}
        lost = lock.until_lost() => return Err(lost),
    }
    tracing::info!("stopping: nothing new is taken");
    let ending = async { tokio::join!(polling, ticking, serving) };
    match tokio::time::timeout(patience.span(), ending).await {
        Ok((Ok(0), Ok(()), Ok(()))) => tracing::info!("stopped"),
        _ => tracing::warn!("stopped with work under way: the next start repairs it"),
    }
    // What is still under way may be writing: see `held`.
    std::mem::forget(lock);
    Ok(Exit::Done)
}

/// One line that a person likes, once everything is up, and what will not work.
fn announce(output: Format, address: SocketAddr, data: &Path, config: &Config, warnings: &[String]) {
    let destinations: Vec<String> = config.destinations.keys().map(ToString::to_string).collect();
    if output == Format::Json {
        out::announce(json!({
            "listening": format!("http://{address}"),
            "data": data.display().to_string(),
            "destinations": destinations,
            "config_revision": config.revision.as_str(),
            "warnings": warnings,
        }));
        return;
    }
    out::announce(format_args!(
        "waybill takes events at http://{address}/v1/events, keeps them in {}, and delivers to {} (revision {})",
        data.display(),
        destinations.join(", "),
        config.revision,
    ));
    for warning in warnings {
        out::announce(format_args!("warning: {warning}"));
    }
}
