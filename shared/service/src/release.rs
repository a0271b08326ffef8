//! Budgets at work: slots are taken right before a claim and given back after its hand-off, and
//! whoever writes releases what is held as far as there is room.
//!
//! What is released has its slot reserved in the very write that frees it, so newcomers do not overtake
//! it, and it is not held a second time. In order: reserve, lift (back into the open index), wake. A
//! crash in between is repaired as any other: the reservation lapses, and the reconciler looks at what
//! is held and at what is open.

mod held;

use std::sync::Arc;

use waybill_domain::budget::{Answer, Budget, Usage, Wanted};
use waybill_domain::delivery::{Claim, Delivery, Record};
use waybill_domain::destination::Destination;
use waybill_domain::identity::WriteToken;
use waybill_domain::suspension::{CHOSEN_AHEAD, Health, Heard, SuspendRules};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::config::Config;
use crate::desk::{Approach, Counter, Desk, Refused, Slot};
use crate::holds::book_of_destination;
use crate::ports::{Clock, Dice, KeptUsage, Ledger, PortResult, Queue, UsageSet};
use crate::reconcile::{Reconciler, TickReport};

pub(crate) use self::held::goes_at;
use self::held::{Found, reserve};

/// How often a write of a budget is tried against others.
pub(crate) const MOST_WRITES: usize = 16;

/// How long a slot may lie between being taken and its attempt's beginning.
const TO_BEGIN: DurationMs = DurationMs::from_secs(5);

/// How many held deliveries a worker looks at before it leaves the rest to the reconciler.
const MOST_LOOKED_AT: usize = 100;

/// How many that are kept back it goes past to find the first that may go.
const MOST_PASSED: usize = 1000;

/// A destination with a budget, or that may be suspended, under one configuration.
#[derive(Clone, Copy)]
pub(crate) struct Bid<'a> {
    pub(crate) config: &'a Config,
    pub(crate) destination: &'a Destination,
    pub(crate) budget: &'a Budget,
    pub(crate) rules: Option<&'a SuspendRules>,
}

impl<'a> Bid<'a> {
    /// None where the destination has neither a budget nor rules for its suspension.
    pub(crate) fn of(config: &'a Config, destination: &'a Destination) -> Option<Self> {
        let rules = destination.suspension.as_ref();
        let unbounded = rules.map(|_| &Budget::UNBOUNDED);
        let budget = config.budget_of(destination).or(unbounded)?;
        Some(Self { config, destination, budget, rules })
    }

    /// What this process may go by without asking the ledger.
    fn known(&self, counter: &Counter, now: TimeMs) -> Option<KeptUsage> {
        // Where every slot is a write, whoever goes by what is past loses its write.
        match self.budget.is_unbounded() {
            true => counter.kept_lately(now),
            false => counter.kept(),
        }
    }

    /// What is used once these are done with, under the rules in force.
    fn settled(&self, kept: &Usage, finished: &[Heard], now: TimeMs) -> Usage {
        let mut usage = kept.clone();
        let tokens: Vec<WriteToken> = finished.iter().map(|heard| heard.token.clone()).collect();
        usage.release(&tokens);
        match self.rules {
            None => usage.health = Health::default(),
            Some(rules) => {
                let (was_suspended, book) = (is_suspended(&usage), book_of_destination(self.destination));
                finished.iter().for_each(|heard| usage.health.hear(rules, &book, heard, now));
                if was_suspended && !is_suspended(&usage) {
                    usage.someone_waits(now, self.lease());
                }
            }
        }
        usage
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
    /// Past how many at most that are kept back, until one is found that may go.
    pub(crate) past: usize,
    /// Until when at most.
    pub(crate) until: Option<TimeMs>,
}

impl Look {
    /// By whoever frees a slot.
    const USUAL: Self = Self { always: false, most: MOST_LOOKED_AT, past: MOST_PASSED, until: None };
    /// By whoever is about to send, and must not be kept up.
    const SHORT: Self = Self { always: false, most: 10, past: 10, until: None };

    /// How far ahead a probe is chosen: by a worker only when it is due, for something more urgent may come.
    fn probes_ahead(&self) -> DurationMs {
        if self.always { CHOSEN_AHEAD } else { DurationMs::ZERO }
    }
}

/// A held delivery that goes, and from when on.
pub(crate) type Going = (Record, TimeMs);

impl<L: Ledger, Q: Queue, C: Clock, D: Dice> Reconciler<'_, L, Q, C, D> {
    /// A slot for the claim that is about to be made, or why there is none.
    pub(crate) async fn take(
        &self,
        desk: &Desk,
        bid: Bid<'_>,
        wanted: Wanted,
        approach: Option<&Approach>,
    ) -> PortResult<Result<Slot, Refused>> {
        let counter = desk.counter(&bid.destination.name);
        let asking = counter.ask(wanted);
        if let Some(approach) = approach {
            approach.arrive();
        }
        let turn = counter.turn.lock().await;
        if !asking.is_answered() {
            counter.all_arrived().await;
            let going = self.write_usage(&counter, bid, Look::SHORT, &[]).await?;
            drop(turn);
            self.let_go(bid.config, going, &mut TickReport::default()).await;
        }
        Ok(asking.collect())
    }

    /// Gives a slot back, now or with the next ones. If that fails, it lapses.
    pub(crate) async fn give_back(&self, bid: Bid<'_>, slot: Slot) {
        let counter = slot.finish();
        if !counter.is_worth_a_write(bid.rules, self.clock.now()) {
            return;
        }
        let turn = counter.turn.lock().await;
        if !counter.is_worth_a_write(bid.rules, self.clock.now()) {
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
        counter.forget();
        let going = self.write_usage(&counter, bid, Look::USUAL, std::slice::from_ref(held)).await?;
        drop(turn);
        self.let_go(bid.config, going, &mut TickReport::default()).await;
        Ok(())
    }

    /// Gives back what was reserved for a delivery that does not go after all, and looks for the next: nobody
    /// else would before the reservation lapses.
    pub(crate) async fn withdraw(&self, desk: &Desk, bid: Bid<'_>, record: &Record) -> PortResult<()> {
        let Delivery { id, destination, .. } = &record.delivery;
        // Read, for another process may have reserved it. An unbounded destination reserves nothing.
        if bid.budget.is_unbounded() || !self.ledger.usage(destination).await?.usage.is_reserved(id) {
            return Ok(());
        }
        let counter = desk.counter(destination);
        let turn = counter.turn.lock().await;
        self.give_up(&[record]).await?;
        counter.forget();
        let going = self.write_usage(&counter, bid, Look::USUAL, &[]).await?;
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
        let (mut going, destination) = (Vec::new(), &bid.destination.name);
        match self.try_writing(counter, bid, look, certain, &mut going).await {
            Ok(true) => {}
            // What was asked for stays unanswered: no slot, and a hold, which is as safe as any.
            Ok(false) => tracing::warn!(%destination, reason = "contended", "budget not written"),
            Err(error) => {
                // Nobody knows whether it landed.
                counter.forget();
                if going.is_empty() {
                    return Err(error);
                }
                tracing::warn!(%destination, error = error.in_full(), "not looked again for what is held");
            }
        }
        Ok(going)
    }

    /// Whether it is written; what slots were reserved for is added to `all_going`.
    async fn try_writing(
        &self,
        counter: &Arc<Counter>,
        bid: Bid<'_>,
        look: Look,
        certain: &[Record],
        all_going: &mut Vec<Going>,
    ) -> PortResult<bool> {
        let Bid { destination: Destination { name, .. }, budget, .. } = bid;
        let mut found: Option<Found> = None;
        let mut looked_again = false;
        let mut is_fresh = false;
        for _ in 0..MOST_WRITES {
            let (kept, seen_at) = match bid.known(counter, self.clock.now()) {
                Some(kept) => (kept, None),
                None => {
                    is_fresh = true;
                    let seen_at = self.clock.now();
                    (self.ledger.usage(name).await?, Some(seen_at))
                }
            };
            let now = self.clock.now();
            let (wanted, finished) = counter.open_business();
            let mut usage = bid.settled(&kept.usage, &finished, now);
            if found.is_none() && (look.always || usage.is_wanted(now)) {
                found = self.look_for(counter, bid, &usage, look, certain).await?;
            }
            let going = reserve(bid, &mut usage, look, found.as_ref(), now);
            let answers = usage.answer(budget, &wanted, now, bid.lease());
            let is_refused = |answer: &Answer| matches!(answer, Answer::Full | Answer::Suspended);
            if answers.iter().any(is_refused) && !is_fresh {
                // Not to be refused by what this process remembers.
                counter.forget();
                continue;
            }
            let (mut revision, mut seen_at) = (kept.revision, seen_at);
            if usage != kept.usage {
                seen_at = Some(now);
                match self.ledger.set_usage(name, kept.revision, &usage).await? {
                    UsageSet::Landed => revision += 1,
                    UsageSet::Lost(stored) => {
                        is_fresh = true;
                        counter.keep(stored, now);
                        continue;
                    }
                }
            }
            // What was held after it was looked for, and before this was written, saw no room.
            let may_be_more = !finished.is_empty() && usage.is_wanted(now) && usage.free(budget, now) > 0;
            if let Some(seen_at) = seen_at {
                counter.keep(KeptUsage { revision, usage }, seen_at);
            }
            counter.close(&wanted, answers, &finished);
            all_going.extend(going);
            if !may_be_more || looked_again {
                return Ok(true);
            }
            looked_again = true;
            found = None;
        }
        Ok(false)
    }
}

/// Whether nothing but a probe gets a slot.
pub(crate) fn is_suspended(usage: &Usage) -> bool {
    usage.health.suspension().is_some()
}

/// Whether a redrive run released it.
pub(crate) fn is_redrive(record: &Record) -> bool {
    record.redrive_run.is_some()
}
