//! One round of the reconciler: windows of schedules, what operators ordered, what is due for a look,
//! what is held, and once an hour the DLQ.

use waybill_domain::order::OrderBody;
use waybill_domain::time::{DurationMs, TimeMs};

use crate::acts::{Desk, all_open};
use crate::config::Config;
use crate::endings;
use crate::office::Office;
use crate::ports::{Catalogue, Clock, Dice, Ledger, PortResult, Queue};
use crate::reconcile::{Reconciler, TickLimits, TickReport};
use crate::redrive::release::Releaser;
use crate::schedule::{Learned, ScheduleLimits, ScheduleReport, Scheduler};
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
        let orders = self.orders(config, limits.until).await;
        let looked = Reconciler { ledger, queue, clock, dice }.tick(config, limits).await;
        let swept = match is_hour(clock.now()) {
            true => sweep(ledger, queue, clock, config).await.map(|_| ()),
            false => Ok(()),
        };
        Ok(RoundReport { windows, looked: orders.and(swept).and(looked)? })
    }

    /// Carries out what operators ordered.
    pub async fn orders(&self, config: &Config, until: Option<TimeMs>) -> PortResult<()> {
        let Self { ledger, queue, office, clock, dice } = *self;
        let releaser = Releaser { ledger, queue, desk: Desk { office, clock, dice } };
        for order in all_open(office).await? {
            if until.is_some_and(|until| clock.now() >= until) {
                return Ok(());
            }
            let done = match &order.body {
                OrderBody::Hold(_) => Ok(()),
                OrderBody::Redrive(_) => releaser.carry_out(config, &order, until).await,
                OrderBody::Ending(_) => endings::carry_out(ledger, office, clock, &order).await,
            };
            // One order that cannot be carried out must not keep the others from it.
            if let Err(error) = done {
                tracing::error!(order = %order.id, book = %order.book, error = error.in_full(), "not carried out");
            }
        }
        Ok(())
    }
}

/// Whether this minute is the one of its hour in which the DLQ is swept: stateless, for a function that
/// is started each minute and remembers nothing.
fn is_hour(now: TimeMs) -> bool {
    now.as_unix_s().div_euclid(60).rem_euclid(60) == 0
}
