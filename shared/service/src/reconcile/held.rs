//! What is held: released where no hold matches any more and the budget has room, ended where its
//! deadline has passed. The destinations take turns, so that none waits behind another's backlog.

use std::collections::VecDeque;

use waybill_domain::hold::keeps_all;
use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::repair::{HeldRepair, repair_held};

use crate::config::Config;
use crate::desk::Desk;
use crate::ports::{Clock, Cursor, Dice, Ledger, PortResult, Queue};
use crate::release::{Bid, Look, goes_at, is_suspended};
use crate::steps::{Landing, hand_over, legal, write};

use super::{Reconciler, TickLimits, TickReport, minimum_window};

/// At how many the reconciler looks where everything stays held: at the front stands whatever comes to
/// its deadline first.
const FRONT: usize = 10;

/// Where a destination's turn goes on.
struct Turn {
    destination: DestinationName,
    from: Option<Cursor>,
    pages: usize,
}

impl<L: Ledger, Q: Queue, C: Clock, D: Dice> Reconciler<'_, L, Q, C, D> {
    pub(super) async fn look_at_held(
        &self,
        config: &Config,
        limits: TickLimits,
        report: &mut TickReport,
    ) -> PortResult<()> {
        let mut names = self.ledger.held_destinations().await?;
        if names.is_empty() {
            return Ok(());
        }
        // Where the time does not suffice for all, it is not always the same ones that are left out.
        let first = self.dice.unit() * names.len() as f64;
        names.rotate_left(first as usize);
        self.take_turns(config, names, limits, report).await;
        Ok(())
    }

    /// Looks at what is held of these destinations, which somebody has just let go.
    pub(crate) async fn release(&self, config: &Config, names: Vec<DestinationName>, limits: TickLimits) {
        self.take_turns(config, names, limits, &mut TickReport::default()).await;
    }

    async fn take_turns(
        &self,
        config: &Config,
        names: Vec<DestinationName>,
        limits: TickLimits,
        report: &mut TickReport,
    ) {
        let turn = |destination| Turn { destination, from: None, pages: 0 };
        let mut turns: VecDeque<Turn> = names.into_iter().map(turn).collect();
        while let Some(turn) = turns.pop_front() {
            if self.is_over(limits) {
                report.more = true;
                break;
            }
            let destination = turn.destination.clone();
            match self.take_turn(config, turn, limits, report).await {
                Ok(next) => turns.extend(next),
                // One destination that cannot be looked at must not keep the others from it.
                Err(error) => {
                    report.failed += 1;
                    tracing::error!(%destination, error = error.in_full(), "not reconciled");
                }
            }
        }
    }

    /// One destination's turn; its next one, if it needs another.
    async fn take_turn(
        &self,
        config: &Config,
        turn: Turn,
        limits: TickLimits,
        report: &mut TickReport,
    ) -> PortResult<Option<Turn>> {
        if keeps_all(&config.holds, &turn.destination) {
            return self.look_at_front(config, turn, limits, report).await;
        }
        let destination = config.destinations.get(&turn.destination);
        let mut bounded = destination.and_then(|destination| Bid::of(config, destination));
        if let Some(bid) = bounded
            && bid.budget.is_unbounded()
            && !is_suspended(&self.ledger.usage(&turn.destination).await?.usage)
        {
            bounded = None;
        }
        let Some(bid) = bounded else { return self.look_at_page(config, turn, limits, report).await };
        let (name, is_first) = (turn.destination.clone(), turn.from.is_none());
        // Before anything is released or ended: a round tells what it found.
        let next = self.look_at_front(config, turn, limits, report).await?;
        if is_first {
            let counter = Desk::default().counter(&name);
            let most = limits.pages.saturating_mul(limits.page_size);
            let look = Look { always: true, most, past: most, until: limits.until };
            let going = self.write_usage(&counter, bid, look, &[]).await?;
            self.let_go(config, going, report).await;
        }
        Ok(next)
    }

    /// Only what has passed its deadline goes; behind the first that has not, none has. Where a
    /// few go in a round, all of the front is seen, for it tells how long they have waited.
    async fn look_at_front(
        &self,
        config: &Config,
        turn: Turn,
        limits: TickLimits,
        report: &mut TickReport,
    ) -> PortResult<Option<Turn>> {
        let most = FRONT.min(limits.page_size);
        let found = self.ledger.held(&turn.destination, most, turn.from.as_ref()).await?;
        let mut is_all_over = true;
        for key in &found.items {
            match self.end_if_over(config, key, report).await {
                Ok(true) => {}
                // What is kept for long is kept cheaply: the first tells of the slack.
                Ok(false) if keeps_all(&config.holds, &turn.destination) => return Ok(None),
                Ok(false) => is_all_over = false,
                failed => self.note_failure(key, failed.map(drop), report),
            }
        }
        if !is_all_over {
            return Ok(None);
        }
        Ok(next_turn(turn, found.next, limits, report))
    }

    async fn look_at_page(
        &self,
        config: &Config,
        turn: Turn,
        limits: TickLimits,
        report: &mut TickReport,
    ) -> PortResult<Option<Turn>> {
        let found = self.ledger.held(&turn.destination, limits.page_size, turn.from.as_ref()).await?;
        for key in &found.items {
            if self.is_over(limits) {
                report.more = true;
                return Ok(None);
            }
            let done = self.look_at_one(config, key, report).await;
            self.note_failure(key, done, report);
        }
        Ok(next_turn(turn, found.next, limits, report))
    }

    /// Ends it if its time is over. Whether what stands behind it in the order of deadlines may be over, too.
    async fn end_if_over(
        &self,
        config: &Config,
        key: &DeliveryKey,
        report: &mut TickReport,
    ) -> PortResult<bool> {
        let Some(record) = self.ledger.load(key).await? else { return Ok(true) };
        let (rules, now) = (config.look_rules(self.queue.window()), self.clock.now());
        report.see(&record, now);
        if !record.state.is_open() || record.hold.is_none() {
            return Ok(true);
        }
        match repair_held(&record, &config.holds, minimum_window(config, &record), now) {
            HeldRepair::End(ending) => {
                let by = self.writer(now);
                self.conclude(config, legal(record.end(&by, ending, &rules))?, &by, report).await?;
                Ok(true)
            }
            HeldRepair::Stay | HeldRepair::Lift => {
                report.held += 1;
                Ok(false)
            }
        }
    }

    async fn look_at_one(
        &self,
        config: &Config,
        key: &DeliveryKey,
        report: &mut TickReport,
    ) -> PortResult<()> {
        let Some(record) = self.ledger.load(key).await? else { return Ok(()) };
        let (rules, now) = (config.look_rules(self.queue.window()), self.clock.now());
        report.see(&record, now);
        match repair_held(&record, &config.holds, minimum_window(config, &record), now) {
            HeldRepair::Stay => report.held += 1,
            HeldRepair::Lift => {
                let lift = legal(record.lift_not_before(goes_at(&record, config), now, &rules))?;
                match write(self.ledger, &lift, |_| false).await? {
                    Landing::Landed(lifted) => {
                        hand_over(self.ledger, self.queue, self.clock, &lifted).await?;
                        report.lifted += 1;
                    }
                    Landing::Lost(_) => report.raced += 1,
                }
            }
            HeldRepair::End(ending) => {
                let by = self.writer(now);
                self.conclude(config, legal(record.end(&by, ending, &rules))?, &by, report).await?;
            }
        }
        Ok(())
    }
}

fn next_turn(turn: Turn, next: Option<Cursor>, limits: TickLimits, report: &mut TickReport) -> Option<Turn> {
    let from = Some(next?);
    let pages = turn.pages + 1;
    if pages >= limits.pages {
        report.more = true;
        return None;
    }
    Some(Turn { from, pages, ..turn })
}
