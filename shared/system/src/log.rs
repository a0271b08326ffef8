//! The log: JSON lines on standard error, one per attempt and per decision. Never a payload, a
//! header, a query or a secret; `RUST_LOG` says how much.

use std::panic;

use tracing_subscriber::EnvFilter;

/// Starts the log of this process.
pub fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // A log that cannot be written must not end the process: what it says is not worth a delivery.
    let log = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .log_internal_errors(false);
    // Somebody who set up a log before keeps it.
    let _ = log.with_env_filter(filter).with_writer(std::io::stderr).try_init();
    panic::set_hook(Box::new(|panicked| {
        // Where, and not what: the message may hold whatever the code was working on.
        let at = panicked.location().map(ToString::to_string);
        tracing::error!(at, "panicked");
    }));
}
