//! One round of the reconciler: what is due for a look, what is held, what operators ordered, and once
//! an hour the DLQ.

use waybill_domain::order::OrderBody;
use waybill_domain::time::TimeMs;

use crate::acts::{Desk, all_open};
use crate::config::Config;
use crate::endings;
use crate::office::Office;
use crate::ports::{Catalogue, Clock, Dice, Ledger, PortResult, Queue};
use crate::reconcile::{Reconciler, TickLimits, TickReport};
use crate::redrive::release::Releaser;
use crate::sweep::{DeadLetterBox, sweep};

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
    /// A whole round. Each part is tried, whatever became of the others.
    pub async fn run(&self, config: &Config, limits: TickLimits) -> PortResult<TickReport> {
        let Self { ledger, queue, clock, dice, .. } = *self;
        let orders = self.orders(config, limits.until).await;
        let looked = Reconciler { ledger, queue, clock, dice }.tick(config, limits).await;
        let swept = match is_hour(clock.now()) {
            true => sweep(ledger, queue, clock, config).await.map(|_| ()),
            false => Ok(()),
        };
        orders.and(swept).and(looked)
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
