//! Budgets at work: slots are taken right before a claim and given back after its hand-off, and
//! whoever writes releases what is held as far as there is room.
//!
//! What is released has its slot reserved in the very write that frees it, so newcomers do not overtake
//! it, and it is not held a second time. In order: reserve, lift (back into the open index), wake. A
//! crash in between is repaired as any other: the reservation lapses, and the reconciler looks at what
//! is held and at what is open.

use std::sync::Arc;

use waybill_domain::budget::{Budget, Usage, Wanted};
use waybill_domain::delivery::{Claim, Record};
use waybill_domain::destination::Destination;
use waybill_domain::envelope::WakeUp;
use waybill_domain::hold::HoldReason;
use waybill_domain::identity::DeliveryKey;
use waybill_domain::repair::{HeldRepair, repair_held};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::config::Config;
use crate::desk::{Approach, Counter, Desk, Slot};
use crate::ports::{
    Clock, Cursor, Dice, KeptUsage, Ledger, Outgoing, PortError, PortResult, Queue, UsageSet,
};
use crate::reconcile::{Reconciler, TickReport, minimum_window};
use crate::redrive::orders::RESUME_SPREAD;
use crate::steps::{Landing, hand_over, legal, write};

/// How often a write of a budget is tried against others.
const MOST_WRITES: usize = 32;

/// How long a slot may lie between being taken and its attempt's beginning.
const TO_BEGIN: DurationMs = DurationMs::from_secs(5);

/// How many held deliveries a worker looks at before it leaves the rest to the reconciler.
const MOST_LOOKED_AT: usize = 100;

/// A destination with a budget, under one configuration.
#[derive(Clone, Copy)]
pub(crate) struct Bid<'a> {
    pub(crate) config: &'a Config,
    pub(crate) destination: &'a Destination,
    pub(crate) budget: &'a Budget,
}

impl<'a> Bid<'a> {
    /// None where the destination has no budget.
    pub(crate) fn of(config: &'a Config, destination: &'a Destination) -> Option<Self> {
        destination.budget.as_ref().map(|budget| Self { config, destination, budget })
    }

    /// An attempt, what its claim has to spare, and what may pass before it begins.
    fn lease(&self) -> DurationMs {
        self.destination.timeout.plus(Claim::MARGIN).plus(TO_BEGIN)
    }
}

/// Until when an attempt may go on that holds the slot: others' clocks see it lapse earlier.
pub(crate) fn usable_until(slot: &Slot) -> TimeMs {
    slot.until().minus(Claim::MARGIN)
}

/// When what is held is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    /// Whether or not anybody was refused of late.
    pub(crate) always: bool,
    /// At how many at most.
    pub(crate) most: usize,
}

impl Look {
    const USUAL: Self = Self { always: false, most: MOST_LOOKED_AT };
}

/// A held delivery that goes, and from when on.
pub(crate) type Going = (Record, TimeMs);

/// What is held and may go.
#[derive(Default)]
struct Found {
    records: Vec<Record>,
    /// Due later, so that they need no room now.
    due_later: Vec<Record>,
    /// Whether there is more than there is room for.
    more: bool,
}

impl<L: Ledger, Q: Queue, C: Clock, D: Dice> Reconciler<'_, L, Q, C, D> {
    /// A slot for the claim that is about to be made, or none: the budget is full.
    pub(crate) async fn take(
        &self,
        desk: &Desk,
        bid: Bid<'_>,
        wanted: Wanted,
        approach: Option<&Approach>,
    ) -> PortResult<Option<Slot>> {
        let counter = desk.counter(&bid.destination.name);
        let asking = counter.ask(wanted);
        if let Some(approach) = approach {
            approach.arrive();
        }
        let turn = counter.turn.lock().await;
        if !asking.is_answered() {
            counter.all_arrived().await;
            let going = self.write_usage(&counter, bid, Look::USUAL, &[]).await?;
            drop(turn);
            self.let_go(bid.config, going, &mut TickReport::default()).await;
        }
        Ok(asking.collect())
    }

    /// Gives a slot back, now or with the next ones. If that fails, it lapses.
    pub(crate) async fn give_back(&self, bid: Bid<'_>, slot: Slot) {
        let counter = slot.finish();
        if !counter.is_worth_a_write(self.clock.now()) {
            return;
        }
        let turn = counter.turn.lock().await;
        if !counter.is_worth_a_write(self.clock.now()) {
            return;
        }
        let written = self.write_usage(&counter, bid, Look::USUAL, &[]).await;
        drop(turn);
        match written {
            Ok(going) => self.let_go(bid.config, going, &mut TickReport::default()).await,
            Err(error) => {
                let destination = &bid.destination.name;
                tracing::warn!(%destination, error = error.in_full(), "slots not given back: they lapse");
            }
        }
    }

    /// Looks again after a hold was written: whoever freed a slot just before has not seen it.
    pub(crate) async fn reconsider(&self, desk: &Desk, bid: Bid<'_>, held: &Record) -> PortResult<()> {
        let counter = desk.counter(&bid.destination.name);
        let turn = counter.turn.lock().await;
        counter.keep(None);
        let going = self.write_usage(&counter, bid, Look::USUAL, std::slice::from_ref(held)).await?;
        drop(turn);
        self.let_go(bid.config, going, &mut TickReport::default()).await;
        Ok(())
    }

    /// Writes everything that is to be written at a counter, whose turn the caller holds. Answers what
    /// slots were reserved for. `certain` are held for sure, whatever the index says yet.
    pub(crate) async fn write_usage(
        &self,
        counter: &Arc<Counter>,
        bid: Bid<'_>,
        look: Look,
        certain: &[Record],
    ) -> PortResult<Vec<Going>> {
        let written = self.try_writing(counter, bid, look, certain).await;
        if written.is_err() {
            // Nobody knows whether it landed.
            counter.keep(None);
        }
        written
    }

    async fn try_writing(
        &self,
        counter: &Arc<Counter>,
        bid: Bid<'_>,
        look: Look,
        certain: &[Record],
    ) -> PortResult<Vec<Going>> {
        let Bid { destination: Destination { name, .. }, budget, .. } = bid;
        let mut found: Option<Found> = None;
        let mut all_going = Vec::new();
        let mut looked_again = false;
        let mut is_fresh = false;
        for _ in 0..MOST_WRITES {
            let kept = match counter.kept() {
                Some(kept) => kept,
                None => {
                    is_fresh = true;
                    self.ledger.usage(name).await?
                }
            };
            let now = self.clock.now();
            let (wanted, finished) = counter.open_business();
            let mut usage = kept.usage.clone();
            usage.release(&finished);
            if found.is_none() && (look.always || usage.is_wanted(now)) && usage.free(budget, now) > 0 {
                found = Some(self.find(bid, &usage, look.most, certain).await?);
            }
            let going = reserve(bid, &mut usage, found.as_ref(), now);
            let answers = usage.take(budget, &wanted, now, bid.lease());
            if answers.contains(&None) && !is_fresh {
                // Not to be refused by what this process remembers.
                counter.keep(None);
                continue;
            }
            let mut revision = kept.revision;
            if usage != kept.usage {
                match self.ledger.set_usage(name, kept.revision, &usage).await? {
                    UsageSet::Landed => revision += 1,
                    UsageSet::Lost(stored) => {
                        is_fresh = true;
                        counter.keep(Some(stored));
                        continue;
                    }
                }
            }
            // What was held after it was looked for, and before this was written, saw no room.
            let may_be_more = !finished.is_empty() && usage.is_wanted(now) && usage.free(budget, now) > 0;
            counter.keep(Some(KeptUsage { revision, usage }));
            counter.close(&wanted, answers, &finished);
            all_going.extend(going);
            if !may_be_more || looked_again {
                return Ok(all_going);
            }
            looked_again = true;
            found = None;
        }
        Err(PortError::AskLater {
            port: "ledger",
            cause: format!("the budget of {name} is contended").into(),
        })
    }

    /// What is held, may go, and finds room, earliest deadline first. Ends what passed its deadline.
    async fn find(&self, bid: Bid<'_>, usage: &Usage, most: usize, certain: &[Record]) -> PortResult<Found> {
        let Bid { config, destination, budget } = bid;
        let (mut found, mut trial) = (Found::default(), usage.clone());
        let mut looked_at = 0;
        let mut from: Option<Cursor> = None;
        loop {
            let enough = trial.free(budget, self.clock.now()) + trial.reservations() + 2;
            let page = self.ledger.held(&destination.name, enough.clamp(2, 100), from.as_ref()).await?;
            let of_page = page.items.into_iter().filter(|key| !usage.is_reserved(&key.delivery_id));
            for key in of_page {
                if looked_at == most {
                    found.more = true;
                    return Ok(found);
                }
                looked_at += 1;
                let Some(record) = self.may_go(config, &key).await else { continue };
                if !sort_in(&mut found, &mut trial, budget, record, self.clock.now()) {
                    return Ok(found);
                }
            }
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        for record in certain {
            let is_known =
                found.records.iter().chain(&found.due_later).any(|r| r.delivery == record.delivery);
            if !is_known {
                sort_in(&mut found, &mut trial, budget, record.clone(), self.clock.now());
            }
        }
        Ok(found)
    }

    /// The record, if it is held and no hold matches it. One that cannot be read keeps nobody up.
    async fn may_go(&self, config: &Config, key: &DeliveryKey) -> Option<Record> {
        let judged = async {
            let Some(record) = self.ledger.load(key).await? else { return Ok(None) };
            let now = self.clock.now();
            match repair_held(&record, &config.holds, minimum_window(config, &record), now) {
                HeldRepair::Stay => Ok(None),
                HeldRepair::Lift => Ok(Some(record)),
                HeldRepair::End(ending) => {
                    let (by, rules) = (self.writer(now), config.look_rules(self.queue.window()));
                    let end = legal(record.end(&by, ending, &rules))?;
                    self.conclude(end, &by, &mut TickReport::default()).await?;
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
        for (record, from) in going {
            let key = record.delivery.key();
            match self.let_one_go(config, &record, from).await {
                Ok(true) => report.lifted += 1,
                Ok(false) => report.raced += 1,
                Err(error) => {
                    report.failed += 1;
                    tracing::error!(delivery_id = %key.delivery_id, tenant = %key.tenant,
                        error = error.in_full(), "not released");
                }
            }
        }
    }

    async fn let_one_go(&self, config: &Config, record: &Record, from: TimeMs) -> PortResult<bool> {
        let (now, window) = (self.clock.now(), self.queue.window());
        let goes_at = goes_at(record, self.dice, now);
        let lift = legal(record.lift_not_before(goes_at, now, &config.look_rules(window)))?;
        let Landing::Landed(lifted) = write(self.ledger, &lift, |_| false).await? else { return Ok(false) };
        if from <= now {
            hand_over(self.ledger, self.queue, self.clock, &lifted).await?;
        } else {
            let (body, delay) = (WakeUp::for_next_attempt(&lifted).encode(), from.since(now).min(window));
            self.queue.send(Outgoing { body, delay }).await?;
        }
        Ok(true)
    }
}

/// Whether to look further.
fn sort_in(found: &mut Found, trial: &mut Usage, budget: &Budget, record: Record, now: TimeMs) -> bool {
    if record.due_at > now {
        found.due_later.push(record);
        return true;
    }
    let is_redrive = is_redrive(&record);
    if trial.reserve(budget, &record.delivery.id, is_redrive, now).is_some() {
        found.records.push(record);
        return true;
    }
    found.more = true;
    // Redrives may have had their share, while others behind them have not.
    is_redrive && trial.free(budget, now) > 0
}

/// Reserves for what was found, in the usage as it is by now.
fn reserve(bid: Bid<'_>, usage: &mut Usage, found: Option<&Found>, now: TimeMs) -> Vec<Going> {
    let Some(found) = found else { return Vec::new() };
    let mut going: Vec<Going> = found.due_later.iter().map(|record| (record.clone(), now)).collect();
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

/// Whether a redrive run released it.
pub(crate) fn is_redrive(record: &Record) -> bool {
    record.redrive_run.is_some()
}

/// When a lifted delivery may go at the earliest. What a stopped run had released comes back all at once,
/// and goes spread over a minute, as it was to go.
pub(crate) fn goes_at(record: &Record, dice: &impl Dice, now: TimeMs) -> TimeMs {
    let is_of_a_run = record.hold.as_ref().is_some_and(|held| held.reason == HoldReason::RunStopped);
    match is_of_a_run {
        true => now.plus(DurationMs::from_ms((dice.unit() * RESUME_SPREAD.as_ms() as f64) as u64)),
        false => record.due_at,
    }
}
