//! The reconciler's round: once at the start, which repairs what a crash left, once in each minute, and
//! whenever the holds in force changed, so that what was lifted goes at once. What operators ordered
//! is carried out every second.

use std::sync::Arc;
use std::time::Duration;

use waybill_domain::time::DurationMs;
use waybill_service::config::Config;
use waybill_service::ports::{Clock as _, in_full};
use waybill_service::reconcile::TickLimits;
use waybill_service::round::Round;
use waybill_service::schedule::Learned;
use waybill_service::source::Look;

use super::scrape::Scrape;
use super::secrets::{self, Unusable};
use super::stop::Stop;
use super::{ServePorts, Source};

/// How long a round may take: what is left is the next one's.
const ROUND_AT_MOST: DurationMs = DurationMs::from_secs(50);

/// How long one look at orders may take, so that a round is never late because of a long run.
const AT_MOST: DurationMs = DurationMs::from_secs(20);

/// How often orders are looked at: so often that what a run releases at a time is little, and keeps no
/// live traffic waiting for the disk.
const PAUSE: Duration = Duration::from_secs(1);

/// How far ahead runs release: over a few looks at orders that come late.
const AHEAD: DurationMs = DurationMs::from_secs(15);

/// When a round is due again: in another minute of the wall clock, so that the one in which the DLQ is
/// swept is never missed; or after another change of the holds.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Beat {
    minute: i64,
    changes_of_holds: u64,
}

/// Works until told to stop; a round under way goes on to its end.
pub(super) async fn run(ports: Arc<ServePorts>, source: Arc<Source>, scrape: Scrape, stop: Stop) {
    let learned = Learned::default();
    let mut last: Option<(Beat, Arc<Config>)> = None;
    loop {
        match source.look().await {
            Ok(Look { config, changes_of_holds }) => {
                let minute = ports.clock.now().as_unix_s().div_euclid(60);
                let beat = Beat { minute, changes_of_holds };
                let (last_beat, last_config) = last.unzip();
                if last_config.is_some_and(|last| last.revision != config.revision) {
                    tracing::info!(revision = %config.revision, "another configuration is in force");
                    secrets::unusable(&config).await.iter().for_each(Unusable::log);
                }
                work(&ports, &config, &learned, last_beat != Some(beat)).await;
                last = Some((beat, config));
            }
            Err(error) => tracing::error!(error = in_full(&error), "not reconciled: tried again in a moment"),
        }
        // Whether or not anybody scrapes: what was measured is summed up, not collected.
        scrape.sum_up();
        tokio::select! {
            () = stop.wait() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// A whole round where it is due, otherwise what is ordered alone.
async fn work(ports: &ServePorts, config: &Config, learned: &Learned, is_due: bool) {
    let ServePorts { ledger, queue, clock, dice, .. } = ports;
    let round = Round { ledger, queue, office: ledger, clock, dice };
    let at_most = if is_due { ROUND_AT_MOST } else { AT_MOST };
    let until = Some(clock.now().plus(at_most));
    let limits = TickLimits { until, ahead: AHEAD, ..TickLimits::default() };
    let done = match is_due {
        true => round.run(config, learned, limits).await.map(|_| ()),
        false => round.orders(config, limits).await,
    };
    if let Err(error) = done {
        tracing::error!(error = error.in_full(), "not reconciled: the next round tries again");
    }
}
