//! The reconciler's round: once at the start, which repairs what a crash left, once in each minute, and
//! whenever the holds in force changed, so that what was lifted goes at once. What operators ordered
//! is carried out every few seconds.

use std::sync::Arc;
use std::time::Duration;

use waybill_service::config::Config;
use waybill_service::ports::{Clock as _, in_full};
use waybill_service::reconcile::TickLimits;
use waybill_service::round::Round;
use waybill_service::schedule::Learned;

use super::secrets::{self, Unusable};
use super::stop::Stop;
use super::{ServePorts, Source};

/// How often orders are looked at.
const PAUSE: Duration = Duration::from_secs(5);

/// A round that was made: in which minute, under which configuration.
struct Made {
    minute: i64,
    config: Arc<Config>,
}

impl Made {
    /// By wall-clock minutes, so that the one in which the DLQ is swept is never missed.
    fn is_still_fresh(&self, minute: i64, config: &Config) -> bool {
        self.minute == minute && self.config.holds == config.holds
    }
}

/// Works until told to stop; a round under way goes on to its end.
pub(super) async fn run(ports: Arc<ServePorts>, source: Arc<Source>, stop: Stop) {
    let learned = Learned::default();
    let mut last: Option<Made> = None;
    loop {
        match source.current().await {
            Ok(config) => last = Some(work(&ports, config, &learned, last).await),
            Err(error) => tracing::error!(error = in_full(&error), "not reconciled: tried again in a moment"),
        }
        tokio::select! {
            () = stop.wait() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

async fn work(ports: &ServePorts, config: Arc<Config>, learned: &Learned, last: Option<Made>) -> Made {
    let ServePorts { ledger, queue, clock, dice, .. } = ports;
    let round = Round { ledger, queue, office: ledger, clock, dice };
    let minute = clock.now().as_unix_s().div_euclid(60);
    if let Some(last) = &last
        && last.config.revision != config.revision
    {
        tracing::info!(revision = %config.revision, "another configuration is in force");
        secrets::unusable(&config).await.iter().for_each(Unusable::log);
    }
    let done = match last {
        Some(last) if last.is_still_fresh(minute, &config) => round.orders(&config, None).await,
        _ => round.run(&config, learned, TickLimits::default()).await.map(|_| ()),
    };
    if let Err(error) = done {
        tracing::error!(error = error.in_full(), "not reconciled: the next round tries again");
    }
    Made { minute, config }
}
