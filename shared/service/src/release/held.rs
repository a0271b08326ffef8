//! What is held and may go: found, earliest deadline first; reserved for; lifted and woken.

use futures::future::join_all;
use waybill_domain::budget::Usage;
use waybill_domain::delivery::Record;
use waybill_domain::hold::HoldReason;
use waybill_domain::identity::{DeliveryId, DeliveryKey};
use waybill_domain::repair::{HeldRepair, repair_held};
use waybill_domain::time::TimeMs;

use crate::config::Config;
use crate::desk::Counter;
use crate::ports::{Clock, Dice, KeptUsage, Ledger, PortError, PortResult, Queue, UsageSet};
use crate::reconcile::{Reconciler, TickReport, minimum_window};
use crate::steps::{Landing, hand_over, legal, write};

use super::{Bid, Going, Look, MOST_WRITES, is_redrive, is_suspended};

/// How many are read at once where one probe is looked for.
const PROBES: usize = 10;

/// How many are lifted at once: each waits for the store.
const TOGETHER: usize = 20;

/// What is held and may go.
#[derive(Default)]
pub(super) struct Found {
    records: Vec<Record>,
    /// Due later, so that they need no room now.
    due_later: Vec<Going>,
    /// Whether there is more than there is room for.
    more: bool,
    /// Of a suspended destination: what may go as its next probe.
    probe: Option<Record>,
}

/// How far somebody came who looked through what is held.
enum Walked {
    /// There is no more.
    ToTheEnd,
    /// Enough was found.
    FarEnough,
    /// There may be more, and no time or patience for it.
    TooFar,
}

impl<L: Ledger, Q: Queue, C: Clock, D: Dice> Reconciler<'_, L, Q, C, D> {
    /// What is held and finds room now; of a suspended destination, its next probe. None where nothing
    /// would.
    pub(super) async fn look_for(
        &self,
        counter: &Counter,
        bid: Bid<'_>,
        usage: &Usage,
        look: Look,
        certain: &[Record],
    ) -> PortResult<Option<Found>> {
        let now = self.clock.now();
        if is_suspended(usage) {
            return match usage.health.next_probe(now, look.probes_ahead()) {
                Some(at) => self.find_probe(counter, bid, look, at).await.map(Some),
                None => Ok(None),
            };
        }
        match usage.free(bid.budget, now) {
            0 => Ok(None),
            _ => self.find(counter, bid, usage, look, certain).await.map(Some),
        }
    }

    /// What may go as a probe at `at`, earliest deadline first.
    async fn find_probe(&self, counter: &Counter, bid: Bid<'_>, look: Look, at: TimeMs) -> PortResult<Found> {
        let mut probe = None;
        let take = |record: Record| {
            probe = Some(record).filter(|record| record.due_at <= at && at < record.limit(at).at);
            probe.is_none()
        };
        self.walk(counter, bid, look, PROBES, |_| false, take).await?;
        Ok(Found { probe, ..Found::default() })
    }

    /// What is held, may go, and finds room, earliest deadline first.
    async fn find(
        &self,
        counter: &Counter,
        bid: Bid<'_>,
        usage: &Usage,
        look: Look,
        certain: &[Record],
    ) -> PortResult<Found> {
        let (mut found, mut trial) = (Found::default(), usage.clone());
        let enough = usage.free(bid.budget, self.clock.now()) + usage.reservations() + 2;
        let is_reserved = |key: &DeliveryKey| usage.is_reserved(&key.delivery_id);
        let take = |record| sort_in(&mut found, &mut trial, bid, record, self.clock.now());
        match self.walk(counter, bid, look, enough.clamp(2, 100), is_reserved, take).await? {
            Walked::ToTheEnd => {}
            Walked::FarEnough => return Ok(found),
            Walked::TooFar => {
                found.more = true;
                return Ok(found);
            }
        }
        for record in certain {
            let later = found.due_later.iter().map(|(record, _)| record);
            let is_known = found.records.iter().chain(later).any(|r| r.delivery == record.delivery);
            if !is_known {
                sort_in(&mut found, &mut trial, bid, record.clone(), self.clock.now());
            }
        }
        Ok(found)
    }

    /// Goes through what is held, earliest deadline first, and gives whoever may go to `take`, which says whether
    /// to go on. Ends what passed its deadline.
    ///
    /// What is kept back at the front (a class that is held while the rest goes on) is read many together, and
    /// not again by this process for a while: whoever frees a slot would come to nothing else.
    async fn walk(
        &self,
        counter: &Counter,
        bid: Bid<'_>,
        look: Look,
        at_once: usize,
        is_left_out: impl Fn(&DeliveryKey) -> bool,
        mut take: impl FnMut(Record) -> bool,
    ) -> PortResult<Walked> {
        let Bid { config, destination, .. } = bid;
        let (mut looked_at, mut is_kept_back) = (0, true);
        let mut from = match look.always {
            true => None,
            false => counter.passed(&config.holds, self.clock.now()),
        };
        loop {
            let is_behind = is_kept_back && from.is_some();
            let (size, together) = if is_behind { (100, TOGETHER) } else { (at_once, 1) };
            let page = self.ledger.held(&destination.name, size, from.as_ref()).await?;
            let of_page: Vec<DeliveryKey> = page.items.into_iter().filter(|key| !is_left_out(key)).collect();
            for keys in of_page.chunks(together) {
                let is_over = look.until.is_some_and(|until| self.clock.now() >= until);
                if looked_at >= if is_kept_back { look.past } else { look.most } || is_over {
                    return Ok(Walked::TooFar);
                }
                looked_at += keys.len();
                for (key, loaded) in keys.iter().zip(self.ledger.load_all(keys).await?) {
                    let Some(record) = self.judge(config, key, loaded).await else { continue };
                    is_kept_back = false;
                    if !take(record) {
                        return Ok(Walked::FarEnough);
                    }
                }
            }
            from = page.next;
            if is_kept_back {
                counter.pass(from.clone(), &config.holds, self.clock.now());
            }
            if from.is_none() {
                return Ok(Walked::ToTheEnd);
            }
        }
    }

    /// The record that was read, if it is held and no hold matches it. One that cannot be read keeps nobody up.
    async fn judge(
        &self,
        config: &Config,
        key: &DeliveryKey,
        loaded: PortResult<Option<Record>>,
    ) -> Option<Record> {
        let judged = async {
            let Some(record) = loaded? else { return Ok(None) };
            let now = self.clock.now();
            match repair_held(&record, &config.holds, minimum_window(config, &record), now) {
                HeldRepair::Stay => Ok(None),
                HeldRepair::Lift => Ok(Some(record)),
                HeldRepair::End(ending) => {
                    let (by, rules) = (self.writer(now), config.look_rules(self.queue.window()));
                    let end = legal(record.end(&by, ending, &rules))?;
                    self.conclude(config, end, &by, &mut TickReport::default()).await?;
                    Ok(None)
                }
            }
        };
        judged.await.unwrap_or_else(|error: PortError| {
            tracing::error!(delivery_id = %key.delivery_id, tenant = %key.tenant,
                error = error.in_full(), "not released");
            None
        })
    }

    /// Lifts what goes, and wakes it.
    pub(crate) async fn let_go(&self, config: &Config, going: Vec<Going>, report: &mut TickReport) {
        let mut lost: Vec<&Record> = Vec::new();
        for together in going.chunks(TOGETHER) {
            let lifting = together.iter().map(|(record, from)| self.let_one_go(config, record, *from));
            for ((record, _), lifted) in together.iter().zip(join_all(lifting).await) {
                match lifted {
                    Ok(true) => report.lifted += 1,
                    Ok(false) => {
                        report.raced += 1;
                        lost.push(record);
                    }
                    Err(error) => {
                        report.failed += 1;
                        let key = record.delivery.key();
                        tracing::error!(delivery_id = %key.delivery_id, tenant = %key.tenant,
                            error = error.in_full(), "not released");
                    }
                }
            }
        }
        if let Err(error) = self.give_up(&lost).await {
            tracing::warn!(error = error.in_full(), "slots stay reserved that nobody comes for: they lapse");
        }
    }

    /// Gives slots back that were reserved for what does not go, or what somebody else lifted meanwhile: they
    /// would lie idle until they lapse, and redrives have half of them at most.
    pub(super) async fn give_up(&self, lost: &[&Record]) -> PortResult<()> {
        let Some(destination) = lost.first().map(|record| &record.delivery.destination) else {
            return Ok(());
        };
        let ids: Vec<DeliveryId> = lost.iter().map(|record| record.delivery.id.clone()).collect();
        for _ in 0..MOST_WRITES {
            let KeptUsage { revision, usage } = self.ledger.usage(destination).await?;
            let mut without = usage.clone();
            without.unreserve(&ids);
            if without == usage {
                return Ok(());
            }
            if let UsageSet::Landed = self.ledger.set_usage(destination, revision, &without).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn let_one_go(&self, config: &Config, record: &Record, from: TimeMs) -> PortResult<bool> {
        let now = self.clock.now();
        // Its due time moves with the rate, so that nobody wakes it before.
        let lift = legal(record.lift_not_before(from, now, &config.look_rules(self.queue.window())))?;
        let Landing::Landed(lifted) = write(self.ledger, &lift, |_| false).await? else { return Ok(false) };
        hand_over(self.ledger, self.queue, self.clock, &lifted).await?;
        Ok(true)
    }
}

/// Whether to look further.
fn sort_in(found: &mut Found, trial: &mut Usage, bid: Bid<'_>, record: Record, now: TimeMs) -> bool {
    let Bid { budget, config, .. } = bid;
    // A slot that is reserved for what goes later would lie idle, lapse before it comes, and be missing to
    // everybody else.
    let goes_at = goes_at(&record, config);
    if goes_at > now {
        found.due_later.push((record, goes_at));
        return true;
    }
    let is_redrive = is_redrive(&record);
    // A start that its deadline forbids is nobody's: the reconciler expires it when its time has come.
    if trial.earliest(budget, is_redrive, now) >= record.limit(now).at {
        found.more = true;
        return true;
    }
    if trial.reserve(budget, &record.delivery.id, is_redrive, now).is_some() {
        found.records.push(record);
        return true;
    }
    found.more = true;
    // Redrives may have had their share, while others behind them have not.
    is_redrive && trial.free(budget, now) > 0
}

/// Reserves for what was found, in the usage as it is by now.
pub(super) fn reserve(
    bid: Bid<'_>,
    usage: &mut Usage,
    look: Look,
    found: Option<&Found>,
    now: TimeMs,
) -> Vec<Going> {
    let Some(found) = found else { return Vec::new() };
    if is_suspended(usage) {
        let probe = found.probe.as_ref().zip(usage.health.next_probe(now, look.probes_ahead()));
        return probe.map_or_else(Vec::new, |(record, at)| {
            usage.health.choose_probe(&record.delivery.id, at);
            vec![(record.clone(), at)]
        });
    }
    let mut going = found.due_later.clone();
    let mut more = found.more;
    for record in &found.records {
        match usage.reserve(bid.budget, &record.delivery.id, is_redrive(record), now) {
            Some(from) => going.push((record.clone(), from)),
            None => more = true,
        }
    }
    if more {
        usage.someone_waits(now, bid.lease());
    }
    going
}

/// When a lifted delivery may go at the earliest. What a stopped run had released comes back all at once,
/// and goes one after the other, as it was to go.
pub(crate) fn goes_at(record: &Record, config: &Config) -> TimeMs {
    let is_of_a_stopped_run = record.hold.as_ref().is_some_and(|held| held.reason == HoldReason::RunStopped);
    let mut resumed = config.resumed.iter().filter(|_| is_of_a_stopped_run);
    resumed.find_map(|run| run.goes_at(record)).unwrap_or(record.due_at)
}
