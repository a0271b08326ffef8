//! The log: JSON lines on standard error, one per attempt and per decision. Never a payload, a
//! header, a query or a secret; `RUST_LOG` says how much.

use std::{env, io, panic};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts the log of this process.
pub fn start() {
    // Levels by target alone: filters by a span's fields would bring regular expressions along.
    let said = env::var("RUST_LOG").ok().filter(|said| !said.is_empty());
    let filter = said.and_then(|said| said.parse::<Targets>().ok());
    let filter = filter.unwrap_or_else(|| {
        // Measured values beyond what an invocation can write: said once in `emf`, not once for each.
        Targets::new()
            .with_default(LevelFilter::INFO)
            .with_target("metrics_cloudwatch_embedded", LevelFilter::OFF)
    });
    // A log that cannot be written must not end the process: what it says is not worth a delivery.
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .log_internal_errors(false)
        .with_writer(io::stderr);
    // Somebody who set up a log before keeps it.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
    panic::set_hook(Box::new(|panicked| {
        // Where, and not what: the message may hold whatever the code was working on.
        let at = panicked.location().map(ToString::to_string);
        tracing::error!(at, "panicked");
    }));
}
