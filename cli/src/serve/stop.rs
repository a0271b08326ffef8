//! The signal to stop, for everything that runs.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit::Failure;

/// Says when to stop. Clones hear the same.
#[derive(Debug, Clone)]
pub(super) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Waits until it is time to stop; at once if it is already.
    pub(super) async fn wait(&self) {
        // A sender that is gone says nothing any more: that is a reason to stop, too.
        let _ = self.0.clone().wait_for(|stopped| *stopped).await;
    }

    /// A stop and what triggers it.
    pub(super) fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }
}

/// Stops at the first SIGTERM or SIGINT. The second ends the process at once, as a crash would.
pub(super) fn on_signals() -> Result<Stop, Failure> {
    let heard = |error: io::Error| Failure::failed(format!("signals cannot be heard: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(heard)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(heard)?;
    let (sender, stop) = Stop::new();
    tokio::spawn(async move {
        either(&mut terminate, &mut interrupt).await;
        let _ = sender.send(true);
        either(&mut terminate, &mut interrupt).await;
        std::process::exit(1);
    });
    Ok(stop)
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
