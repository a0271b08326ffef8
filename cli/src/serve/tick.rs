//! The minute of reconciler and schedules: once at the start, which repairs what a crash left, and every 60 s.

use std::sync::Arc;
use std::time::Duration;

use waybill_service::config::Config;
use waybill_service::reconcile::{Reconciler, TickLimits};
use waybill_service::schedule::{Learned, ScheduleLimits, Scheduler};

use super::ServePorts;
use super::stop::Stop;

const PAUSE: Duration = Duration::from_secs(60);

/// Ticks until told to stop; a tick under way goes on to its end.
pub(super) async fn run(ports: Arc<ServePorts>, config: Arc<Config>, stop: Stop) {
    let reconciler =
        Reconciler { ledger: &ports.ledger, queue: &ports.queue, clock: &ports.clock, dice: &ports.dice };
    let scheduler = Scheduler { ledger: &ports.ledger, queue: &ports.queue, clock: &ports.clock };
    let learned = Learned::default();
    loop {
        scheduler.tick(&config, &learned, ScheduleLimits::default()).await;
        if let Err(error) = reconciler.tick(&config, TickLimits::default()).await {
            tracing::error!(error = error.in_full(), "not reconciled: the next tick tries again");
        }
        tokio::select! {
            () = stop.wait() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}
