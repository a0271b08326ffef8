//! The whole system in one process: ingest, consumer and reconciler on one data file.
//!
//! Started: the lock on the data file, then the listening address, then the store, then work: a start
//! that fails leaves no new files behind. Told to stop (SIGTERM, SIGINT): no new connection, no new
//! message; what is under way ends by itself within its own time. What does not is repaired by the
//! next start, like after any crash.

mod body;
mod ingest;
mod listen;
mod lock;
mod peer;
mod poll;
mod room;
pub(crate) mod secrets;
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
use waybill_service::config::Config;
use waybill_service::ports::Ports;

use crate::backend::{Store, open_file};
use crate::exit::{Exit, Failure, in_words};
use crate::out::{self, Format};
use secrets::Unusable;
use waybill_system::{SystemClock, SystemDice};

/// How the system is run.
pub(crate) struct Settings {
    /// Who gets what, under which rules.
    pub(crate) config: Config,
    /// Ledger and queue.
    pub(crate) data: PathBuf,
    /// Where events are taken.
    pub(crate) listen: SocketAddr,
    /// Whether this machine counts as outside.
    pub(crate) locality: Locality,
    /// How many deliveries are worked on at once.
    pub(crate) concurrency: NonZeroUsize,
    /// How the starting line is written.
    pub(crate) output: Format,
}

/// The ports of this process.
pub(crate) type ServePorts = Ports<Store, Store, HttpRecipient<SystemClock>, SystemClock, SystemDice>;

/// What an attempt may take beyond its timeout until everything about it is written down.
const SETTLING: Duration = Duration::from_secs(5);

/// How much of the bodies of requests is held at once.
const MOST_BYTES_IN_FLIGHT: usize = 64 << 20;

/// Runs until told to stop.
pub(crate) async fn run(settings: Settings) -> Result<Exit, Failure> {
    waybill_system::log::start();
    let data = &settings.data;
    let mut lock = lock::Lock::take(data)?;
    let deaf = |error: io::Error| {
        Failure::failed(format!("{}: cannot listen there: {}", settings.listen, in_words(&error)))
    };
    let listener = TcpListener::bind(settings.listen).await.map_err(deaf)?;
    let address = listener.local_addr().map_err(deaf)?;
    let stop = stop::on_signals()?;
    let store = open_file(data)?;
    lock.keep();

    let config = Arc::new(settings.config);
    let unusable = secrets::unusable(&config).await;
    unusable.iter().for_each(Unusable::log);
    let ports = Arc::new(ServePorts {
        ledger: store.clone(),
        queue: store.clone(),
        recipient: HttpRecipient::new(SystemClock, settings.locality),
        clock: SystemClock,
        dice: SystemDice,
    });
    let patience = longest_timeout(&config).as_std() + SETTLING;
    let poller = poll::Poller::new(ports.clone(), config.clone(), settings.concurrency);
    let polling = tokio::spawn(poller.run(store.arrivals(), stop.clone(), patience));
    let ticking = tokio::spawn(tick::run(ports, config.clone(), stop.clone()));
    let room = room::Room::of(MOST_BYTES_IN_FLIGHT);
    let door = ingest::Ingest { store, config: config.clone(), locality: settings.locality, room };
    let serving = tokio::spawn(listen::serve(door, listener, stop.clone()));
    announce(settings.output, address, data, &config, &unusable);

    stop.wait().await;
    tracing::info!("stopping: nothing new is taken");
    let ended = tokio::time::timeout(patience, async { tokio::join!(polling, ticking, serving) }).await;
    match ended {
        Ok((Ok(0), Ok(()), Ok(()))) => tracing::info!("stopped"),
        _ => tracing::warn!("stopped with work under way: the next start repairs it"),
    }
    Ok(Exit::Done)
}

/// The longest time that an attempt may take.
fn longest_timeout(config: &Config) -> DurationMs {
    config.destinations.values().map(|destination| destination.timeout).max().unwrap_or_default()
}

/// One line that a person likes, once everything is up, and what will not work.
fn announce(output: Format, address: SocketAddr, data: &Path, config: &Config, unusable: &[Unusable]) {
    let destinations: Vec<String> = config.destinations.keys().map(ToString::to_string).collect();
    let warnings: Vec<String> = unusable.iter().map(ToString::to_string).collect();
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
