//! The reconciler: finds deliveries that make no progress, and repairs them. Asks the ledger, never
//! a history of its own; bounded in pages; safe to run twice at once.
//!
//! For every delivery whose look is due, the record is read strongly and **first** its look is moved
//! forward by compare-and-set; only who moved it acts. What is held is looked at in `held`.

mod held;

use waybill_domain::delivery::{Change, Record};
use waybill_domain::envelope::WakeUp;
use waybill_domain::hold::HoldReason;
use waybill_domain::identity::DeliveryKey;
use waybill_domain::repair::{LookRules, Repair, repair};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_domain::transition::Writer;

use crate::config::Config;
use crate::ports::{Clock, Dice, Ledger, Outgoing, PortResult, Queue};
use crate::redrive::release::AHEAD;
use crate::steps::{Landing, hand_over, legal, write};

/// The ports that reconciling needs.
#[derive(Debug, Clone, Copy)]
pub struct Reconciler<'a, L, Q, C, D> {
    /// The truth.
    pub ledger: &'a L,
    /// The wake-ups.
    pub queue: &'a Q,
    /// The time.
    pub clock: &'a C,
    /// Chance: tokens only.
    pub dice: &'a D,
}

/// How much one tick may do at most. What was due and not reached is the first that is due at the next
/// tick; the look at what is held begins anew each time, with another destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickLimits {
    /// Pages of the open index, and of what is held for each destination.
    pub pages: usize,
    /// Deliveries per page.
    pub page_size: usize,
    /// From this time on no further delivery is begun.
    pub until: Option<TimeMs>,
    /// How far ahead redrive runs release, spread by queue delays: beyond the next round. What a stop holds
    /// is no more than that.
    pub ahead: DurationMs,
}

impl Default for TickLimits {
    fn default() -> Self {
        Self { pages: 100, page_size: 100, until: None, ahead: AHEAD }
    }
}

/// What a tick looked at, did, and skipped with the reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TickReport {
    /// Deliveries whose record was read.
    pub looked_at: usize,
    /// Woken: parked and coming due, stale, near the deadline, or with a lapsed claim.
    pub woken: usize,
    /// Ended: the deadline or the horizon passed.
    pub ended: usize,
    /// Told to the DLQ again.
    pub told: usize,
    /// Released, because no hold matches any more.
    pub lifted: usize,
    /// Skipped: an attempt is being made.
    pub working: usize,
    /// Skipped: a hold still matches.
    pub held: usize,
    /// Skipped: somebody else was faster.
    pub raced: usize,
    /// Failed; looked at again later.
    pub failed: usize,
    /// How long the longest due of what was due for a look had been due; what is held is not late.
    pub oldest_due: DurationMs,
    /// What was left to the nearest deadline of what was looked at and is open, held or not; `None` where
    /// none has one.
    pub least_slack: Option<DurationMs>,
    /// How long the longest held of what was looked at has been held, in the order of [`HoldReason::ALL`].
    pub oldest_held: [DurationMs; HoldReason::ALL.len()],
    /// Whether it stopped at its limits and left the rest to the next tick.
    pub more: bool,
}

impl TickReport {
    /// Takes in what a record says that was read at `now`.
    fn see(&mut self, record: &Record, now: TimeMs) {
        self.looked_at += 1;
        if !record.state.is_open() {
            return;
        }
        if let Some(deadline) = record.delivery.deadline {
            let slack = deadline.since(now);
            self.least_slack = Some(self.least_slack.map_or(slack, |least| least.min(slack)));
        }
        match &record.hold {
            Some(held) => {
                let reason = HoldReason::ALL.iter().position(|reason| *reason == held.reason);
                if let Some(oldest) = reason.and_then(|nth| self.oldest_held.get_mut(nth)) {
                    *oldest = (*oldest).max(now.since(held.since));
                }
            }
            None if record.claim.is_none() => {
                self.oldest_due = self.oldest_due.max(now.since(record.due_at));
            }
            None => {}
        }
    }
}

impl<L: Ledger, Q: Queue, C: Clock, D: Dice> Reconciler<'_, L, Q, C, D> {
    /// One tick: everything that is due for a look, then everything that is held.
    pub async fn tick(&self, config: &Config, limits: TickLimits) -> PortResult<TickReport> {
        let mut report = TickReport::default();
        self.look_at_due(config, limits, &mut report).await?;
        self.look_at_held(config, limits, &mut report).await?;
        crate::instruments::looked(&report);
        let TickReport { looked_at, woken, ended, told, lifted, working, held, raced, failed, more, .. } =
            report;
        if [woken, ended, told, lifted, raced, failed] == [0; 6] && !more {
            tracing::debug!(looked_at, working, held, "reconciled");
        } else {
            tracing::info!(
                looked_at,
                woken,
                ended,
                told,
                lifted,
                working,
                held,
                raced,
                failed,
                more,
                "reconciled"
            );
        }
        Ok(report)
    }

    async fn look_at_due(
        &self,
        config: &Config,
        limits: TickLimits,
        report: &mut TickReport,
    ) -> PortResult<()> {
        let (now, mut from) = (self.clock.now(), None);
        for page in 0.. {
            if page == limits.pages || self.is_over(limits) {
                report.more = true;
                break;
            }
            let found = self.ledger.due_for_look(now, limits.page_size, from.as_ref()).await?;
            // A page at once: what changes meanwhile is noticed by the compare-and-set.
            let records = self.ledger.load_all(&found.items).await?;
            for (key, record) in found.items.iter().zip(records) {
                if self.is_over(limits) {
                    report.more = true;
                    return Ok(());
                }
                let done = self.look(config, record, report).await;
                self.note_failure(key, done, report);
            }
            from = found.next;
            if from.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// One delivery that cannot be repaired must not keep the others from it.
    pub(crate) fn note_failure(&self, key: &DeliveryKey, done: PortResult<()>, report: &mut TickReport) {
        if let Err(error) = done {
            report.failed += 1;
            tracing::error!(delivery_id = %key.delivery_id, tenant = %key.tenant,
                error = error.in_full(), "not reconciled");
        }
    }

    pub(crate) fn is_over(&self, limits: TickLimits) -> bool {
        limits.until.is_some_and(|until| self.clock.now() >= until)
    }

    async fn look(
        &self,
        config: &Config,
        record: PortResult<Option<Record>>,
        report: &mut TickReport,
    ) -> PortResult<()> {
        let Some(record) = record? else { return Ok(()) };
        let (rules, now) = (config.look_rules(self.queue.window()), self.clock.now());
        report.see(&record, now);
        match repair(&record, minimum_window(config, &record), now) {
            Repair::NotDue => report.raced += 1,
            Repair::Working => {
                self.move_look(&record, &rules, now).await?;
                report.working += 1;
            }
            Repair::Wake => match self.move_look(&record, &rules, now).await? {
                Some(moved) => {
                    self.wake(&moved).await?;
                    report.woken += 1;
                }
                None => report.raced += 1,
            },
            Repair::TellDlq => match self.move_look(&record, &rules, now).await? {
                Some(moved) => {
                    hand_over(self.ledger, self.queue, self.clock, &moved).await?;
                    report.told += 1;
                }
                None => report.raced += 1,
            },
            Repair::End(ending) => {
                let by = self.writer(now);
                self.conclude(config, legal(record.end(&by, ending, &rules))?, &by, report).await?;
            }
        }
        Ok(())
    }

    /// Moves the look forward. Who did not move it does not act on it.
    async fn move_look(&self, record: &Record, rules: &LookRules, now: TimeMs) -> PortResult<Option<Record>> {
        match write(self.ledger, &legal(record.looked(now, rules))?, |_| false).await? {
            Landing::Landed(moved) => Ok(Some(*moved)),
            Landing::Lost(_) => Ok(None),
        }
    }

    /// A wake-up for the record as it stands; a lapsed claim is settled by whoever it wakes.
    async fn wake(&self, record: &Record) -> PortResult<()> {
        if record.claim.is_none() {
            return hand_over(self.ledger, self.queue, self.clock, record).await;
        }
        let wakeup = WakeUp::for_next_attempt(record);
        let outgoing = Outgoing { body: wakeup.encode(), delay: DurationMs::ZERO };
        self.queue.send(outgoing).await.map(|_| ())
    }

    pub(crate) async fn conclude(
        &self,
        config: &Config,
        change: Change,
        by: &Writer,
        report: &mut TickReport,
    ) -> PortResult<()> {
        let is_ours = |stored: &Record| stored.settled_token.as_ref() == Some(&by.token);
        match write(self.ledger, &change, is_ours).await? {
            Landing::Landed(after) => {
                report.ended += 1;
                crate::instruments::ended(config, &after);
                hand_over(self.ledger, self.queue, self.clock, &after).await
            }
            Landing::Lost(_) => {
                report.raced += 1;
                Ok(())
            }
        }
    }

    pub(crate) fn writer(&self, now: TimeMs) -> Writer {
        Writer { message_id: None, token: self.dice.token(), now }
    }
}

pub(crate) fn minimum_window(config: &Config, record: &Record) -> DurationMs {
    let destination = config.destination_of(&record.delivery);
    destination.map_or(DurationMs::ZERO, |destination| destination.policy.minimum_window)
}
