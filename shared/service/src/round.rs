//! One round of the reconciler: windows of schedules, what operators ordered, what is due for a look,
//! what is held, and once an hour the DLQ.

use waybill_domain::identity::DestinationName;
use waybill_domain::order::{Order, OrderBody};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::acts::{Desk, all_open, is_within_its_book};
use crate::config::Config;
use crate::endings;
use crate::instruments;
use crate::office::Office;
use crate::ports::{Catalogue, Clock, Dice, Ledger, PortResult, Queue};
use crate::reconcile::{Reconciler, TickLimits, TickReport};
use crate::redrive::release::Releaser;
use crate::schedule::{Learned, ScheduleLimits, ScheduleReport, Scheduler};
use crate::suspensions::Suspensions;
use crate::sweep::{DeadLetterBox, sweep};

/// What a round did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundReport {
    /// For schedules.
    pub windows: ScheduleReport,
    /// For what was due for a look or held.
    pub looked: TickReport,
}

/// What a round needs.
#[derive(Debug, Clone, Copy)]
pub struct Round<'a, L, Q, O, C, D> {
    /// The truth.
    pub ledger: &'a L,
    /// The wake-ups, and the DLQ.
    pub queue: &'a Q,
    /// The orders.
    pub office: &'a O,
    /// The time.
    pub clock: &'a C,
    /// Chance: tokens only.
    pub dice: &'a D,
}

impl<L, Q, O, C, D> Round<'_, L, Q, O, C, D>
where
    L: Ledger + Catalogue,
    Q: Queue + DeadLetterBox,
    O: Office,
    C: Clock,
    D: Dice,
{
    /// A whole round. Each part is tried, whatever became of the others. `learned` is what the process
    /// knows of schedules from rounds before.
    pub async fn run(
        &self,
        config: &Config,
        learned: &Learned,
        limits: TickLimits,
    ) -> PortResult<RoundReport> {
        let Self { ledger, queue, clock, dice, .. } = *self;
        // Schedules first, with half of the time at most: they owe little, and what is due repairs itself later.
        let now = clock.now();
        let half = |until: TimeMs| now.plus(DurationMs::from_ms(until.since(now).as_ms() / 2));
        let of_schedules = ScheduleLimits { until: limits.until.map(half), ..ScheduleLimits::default() };
        let windows = Scheduler { ledger, queue, clock }.tick(config, learned, of_schedules).await;
        // Before what is held is looked at: what was let go goes in this round.
        let ended = self.end_and_let_go(config).await.map(|_| ());
        let looked = Reconciler { ledger, queue, clock, dice }.tick(config, limits).await;
        // After what is due, which must not wait for however many are released.
        let runs = self.runs(config, limits).await;
        let swept = match is_hour(now) {
            true => sweep(ledger, queue, clock, config, limits.until).await.map(|_| ()),
            false => Ok(()),
        };
        let looked = ended.and(runs).and(swept).and(looked)?;
        instruments::reconciled();
        // Last, for it may take long where there are many tenants.
        let is_over = limits.until.is_some_and(|until| clock.now() >= until);
        if is_fifth_minute(now) && !is_over {
            self.gauge_dead_letters().await?;
        }
        Ok(RoundReport { windows, looked })
    }

    async fn gauge_dead_letters(&self) -> PortResult<()> {
        let oldest = self.ledger.oldest_dead_letter().await?;
        let age = oldest.map_or(DurationMs::ZERO, |ended_at| self.clock.now().since(ended_at));
        instruments::dead_letters_looked_at(age);
        Ok(())
    }

    /// Carries out what operators ordered, within the limits' time.
    pub async fn orders(&self, config: &Config, limits: TickLimits) -> PortResult<()> {
        let let_go = self.end_and_let_go(config).await?;
        let Self { ledger, queue, clock, dice, .. } = *self;
        Reconciler { ledger, queue, clock, dice }.release(config, let_go, limits).await;
        self.runs(config, limits).await
    }

    /// Carries out endings and suspensions. Answers which destinations a person let go.
    async fn end_and_let_go(&self, config: &Config) -> PortResult<Vec<DestinationName>> {
        let (open, desk) = (self.open().await?, self.desk());
        for order in open.iter().filter(|order| matches!(order.body, OrderBody::Ending(_))) {
            noted(order, endings::carry_out(self.ledger, &desk, order).await);
        }
        Suspensions { ledger: self.ledger, desk }.carry_out(config, &open).await
    }

    /// Every run gets its share of the time, so that none waits behind another.
    async fn runs(&self, config: &Config, limits: TickLimits) -> PortResult<()> {
        let Self { ledger, queue, clock, .. } = *self;
        let TickLimits { until, ahead, .. } = limits;
        let releaser = Releaser { ledger, queue, desk: self.desk(), ahead };
        let mut runs = self.open().await?;
        runs.retain(|order| matches!(order.body, OrderBody::Redrive(_)));
        instruments::runs(runs.len());
        for (n, order) in runs.iter().enumerate() {
            let now = clock.now();
            if until.is_some_and(|until| now >= until) {
                return Ok(());
            }
            let left = (runs.len() - n) as u64;
            let share = until.map(|until| now.plus(DurationMs::from_ms(until.since(now).as_ms() / left)));
            noted(order, releaser.carry_out(config, order, share).await);
        }
        Ok(())
    }

    /// The open orders, each by somebody who may order that.
    async fn open(&self) -> PortResult<Vec<Order>> {
        let mut orders = all_open(self.office).await?;
        orders.retain(is_within_its_book);
        Ok(orders)
    }

    fn desk(&self) -> Desk<'_, O, C, D> {
        Desk { office: self.office, clock: self.clock, dice: self.dice }
    }
}

/// One order that cannot be carried out must not keep the others from it.
fn noted(order: &Order, done: PortResult<()>) {
    if let Err(error) = done {
        tracing::error!(order = %order.id, book = %order.book, error = error.in_full(), "not carried out");
    }
}

/// Whether this minute is the one of its hour in which the DLQ is swept: stateless, for a function that
/// is started each minute and remembers nothing.
fn is_hour(now: TimeMs) -> bool {
    minute(now).rem_euclid(60) == 0
}

/// Whether the age of dead letters is told in this minute: it changes slowly, and costs a look for each
/// tenant that there is.
fn is_fifth_minute(now: TimeMs) -> bool {
    minute(now).rem_euclid(5) == 0
}

fn minute(now: TimeMs) -> i64 {
    now.as_unix_s().div_euclid(60)
}
