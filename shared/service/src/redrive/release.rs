//! Carrying a run out: look at outcomes, halt or go on, and release what is due soon.
//!
//! Every release is a compare-and-set of its own record, and what a run takes in hand is written down
//! before anything of it is done. So a crash or a second reconciler at any point releases nothing twice
//! and passes nothing over: whoever comes next does the rest of what is in hand.

use futures::future::join_all;
use waybill_domain::audit::{AUTOMATION, Act};
use waybill_domain::delivery::{Record, State};
use waybill_domain::hold::keeps_all;
use waybill_domain::identity::{DeliveryKey, DestinationName};
use waybill_domain::order::{Order, OrderBody, OrderId};
use waybill_domain::redrive::{Bench, Fate, InHand, OUTCOMES, Run, Standing, judge, outcome_of};
use waybill_domain::time::{DurationMs, TimeMs};

use super::plan::{PAGE, cursor, destination_of, filter};
use crate::acts::{ActError, Desk};
use crate::config::Config;
use crate::office::Office;
use crate::ports::{Catalogue, Clock, Dice, Ledger, PortError, PortResult, Queue};
use crate::steps::{Landing, MOST_ROUNDS, hand_over, legal, write};

/// How far ahead releases are made where a round comes each minute.
pub const AHEAD: DurationMs = DurationMs::from_secs(60);

/// How many releases are made at once: each waits for the store, and one after the other they would fall
/// behind a high rate.
const TOGETHER: usize = 20;

/// What carrying runs out needs.
#[derive(Debug, Clone, Copy)]
pub struct Releaser<'a, L, Q, O, C, D> {
    /// The truth.
    pub ledger: &'a L,
    /// The wake-ups.
    pub queue: &'a Q,
    /// The orders, the time, and chance.
    pub desk: Desk<'a, O, C, D>,
    /// How far ahead releases are made, spread by queue delays: further than the next round is away.
    pub ahead: DurationMs,
}

/// What became of one thing in hand.
enum Carried {
    Released(Box<Record>),
    Expired,
    /// It is no dead letter of this run's any more: a person ended it, or another run released it.
    Gone,
}

impl<L: Ledger + Catalogue, Q: Queue, O: Office, C: Clock, D: Dice> Releaser<'_, L, Q, O, C, D> {
    /// Carries one run out until nothing more is due within `ahead`, or until `until`.
    pub async fn carry_out(&self, config: &Config, order: &Order, until: Option<TimeMs>) -> PortResult<()> {
        let mut order = order.clone();
        let horizon = self.desk.clock.now().plus(self.ahead);
        let mut lost = 0;
        let mut are_outcomes_known = false;
        while let Some(run) = run_of(&order) {
            let now = self.desk.clock.now();
            if !run.releases(now) || until.is_some_and(|until| now >= until) || lost == MOST_ROUNDS {
                return Ok(());
            }
            let next = if !run.in_hand.is_empty() {
                self.empty_hand(config, &order.id, run).await?
            } else if !are_outcomes_known {
                are_outcomes_known = true;
                let noted = self.note_outcomes(&order.id, run.clone()).await?;
                if noted.must_halt() {
                    return self.halt(&order, &noted).await;
                }
                noted
            } else if run.is_through(now) {
                Box::new(Run { standing: Standing::Finished(now), ..*run })
            } else if run.room() == 0 {
                return Ok(());
            } else if let Some(taken) = self.take_page(config, &order.id, &run, now, horizon).await? {
                taken
            } else {
                return Ok(());
            };
            if run_of(&order).as_ref() == Some(&next) {
                continue;
            }
            let change = order.becoming(OrderBody::Redrive(next));
            if self.desk.office.progress(&change).await? {
                order = change.after;
                continue;
            }
            // Somebody else was at it, or our own write was repeated: look at what stands.
            lost += 1;
            match self.desk.office.order(&order.book, &order.id).await? {
                Some(stored) => order = stored,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Takes the next page in hand; `None` where nothing can be taken now.
    async fn take_page(
        &self,
        config: &Config,
        id: &OrderId,
        run: &Run,
        now: TimeMs,
        horizon: TimeMs,
    ) -> PortResult<Option<Box<Run>>> {
        let is_held = |name: &DestinationName| keeps_all(&config.holds, name);
        let Some((destination, lane)) = run.next_lane(horizon, is_held) else { return Ok(None) };
        let mut wanted = filter(&run.selection);
        wanted.destination = Some(destination.clone());
        let page = self.ledger.dead_letters(&wanted, PAGE, cursor(lane.from.as_ref()).as_ref()).await?;
        let bench = Bench { reviews: &run.reviews, max_redrives: config.system.max_redrives, now };
        // What it released itself and failed again is a later dead letter, and in no plan of its own, even
        // where a worker's clock that runs behind says that it ended before the plan was made.
        let is_own = |record: &Record| record.redrive_run.as_deref() == Some(id.as_str());
        let meant = page.items.iter().filter(|record| run.selection.matches(record) && !is_own(record));
        let judged: Vec<(DeliveryKey, Fate)> = meant
            .map(|record| {
                (record.delivery.key(), judge(record, destination_of(config, record).as_deref(), bench))
            })
            .collect();
        let mut taken = Box::new(run.clone());
        taken.take_page(destination, &judged, page.next.map(|next| next.0), now, horizon);
        Ok((taken.as_ref() != run).then_some(taken))
    }

    /// Carries out what is in hand, and counts it.
    async fn empty_hand(&self, config: &Config, id: &OrderId, mut run: Box<Run>) -> PortResult<Box<Run>> {
        let in_hand = std::mem::take(&mut run.in_hand);
        let mut late = DurationMs::ZERO;
        for together in in_hand.chunks(TOGETHER) {
            // What was taken in hand and could not be carried out in time (a crash, a slow store) is not
            // caught up in a burst: all the rest goes later by as much.
            let first = together.iter().find_map(|held| held.due_at).map(|at| run.hand_goes_at(at));
            late = first.map_or(late, |first| late.max(self.desk.clock.now().since(first)));
            let timed: Vec<InHand> = together
                .iter()
                .map(|held| {
                    let due_at = held.due_at.map(|at| run.hand_goes_at(at).plus(late));
                    InHand { due_at, ..held.clone() }
                })
                .collect();
            let carrying = timed.iter().map(|held| self.carry(config, id, &run, held));
            for (held, carried) in together.iter().zip(join_all(carrying).await) {
                match carried {
                    // One that nobody can read must not keep the others from it.
                    Err(error @ PortError::NeedsPerson { .. }) => {
                        let delivery = &held.delivery;
                        tracing::error!(delivery_id = %delivery.delivery_id, tenant = %delivery.tenant,
                            error = error.in_full(), "not released");
                        run.tally.blocked += 1;
                    }
                    Err(error) => return Err(error),
                    Ok(Carried::Released(record)) => {
                        run.tally.released += 1;
                        run.watch(&record);
                    }
                    Ok(Carried::Expired) => run.tally.expired += 1,
                    Ok(Carried::Gone) => {}
                }
            }
        }
        run.delay_hand(late);
        if run.sample.is_some_and(|sample| run.tally.released >= sample) {
            run.standing = Standing::Sampled(self.desk.clock.now());
        }
        Ok(run)
    }

    /// Does one thing in hand, whatever of it was done before.
    async fn carry(&self, config: &Config, id: &OrderId, run: &Run, held: &InHand) -> PortResult<Carried> {
        let Some(record) = self.ledger.load(&held.delivery).await? else { return Ok(Carried::Gone) };
        let (rules, mut current) = (config.look_rules(self.queue.window()), Box::new(record));
        for _ in 0..MOST_ROUNDS {
            let now = self.desk.clock.now();
            if current.redrive_run.as_deref() == Some(id.as_str()) {
                // Released, and its wake-up perhaps not sent.
                if current.attempts_made == current.attempts_before {
                    hand_over(self.ledger, self.queue, self.desk.clock, &current).await?;
                }
                return Ok(Carried::Released(current));
            }
            if current.state == State::Expired {
                hand_over(self.ledger, self.queue, self.desk.clock, &current).await?;
                return Ok(Carried::Expired);
            }
            if !run.selection.matches(&current) {
                return Ok(Carried::Gone);
            }
            let destination = destination_of(config, &current);
            let destination = destination.as_deref();
            let bench = Bench { reviews: &run.reviews, max_redrives: config.system.max_redrives, now };
            let change = match (judge(&current, destination, bench), destination, held.due_at) {
                (Fate::Expire, _, _) => legal(current.expire_dead_letter(now, &rules))?,
                (Fate::Release, Some(destination), Some(due_at)) => {
                    let policy = &destination.policy;
                    legal(current.release(id.to_string(), policy, now, due_at, &rules))?
                }
                _ => return Ok(Carried::Gone),
            };
            let is_ours = |stored: &Record| stored.redrive_run.as_deref() == Some(id.as_str());
            match write(self.ledger, &change, is_ours).await? {
                Landing::Landed(after) => {
                    crate::notes::decision(&after);
                    if after.state == State::Expired {
                        crate::instruments::ended(config, &after);
                    }
                    hand_over(self.ledger, self.queue, self.desk.clock, &after).await?;
                    return Ok(match after.state {
                        State::Expired => Carried::Expired,
                        _ => Carried::Released(after),
                    });
                }
                Landing::Lost(Some(stored)) => current = stored,
                Landing::Lost(None) => return Ok(Carried::Gone),
            }
        }
        Ok(Carried::Gone)
    }

    /// Looks at what became of the deliveries that it watches.
    async fn note_outcomes(&self, id: &OrderId, mut run: Box<Run>) -> PortResult<Box<Run>> {
        for watched in std::mem::take(&mut run.watched) {
            let record = self.ledger.load(&watched.delivery).await?;
            match record.map(|record| outcome_of(&watched, &record, id.as_str())) {
                Some(Ok(None)) => run.watched.push(watched),
                Some(Ok(Some(delivered))) => run.note(delivered),
                Some(Err(_)) | None => {}
            }
        }
        Ok(run)
    }

    async fn halt(&self, order: &Order, noted: &Run) -> PortResult<()> {
        let failed = noted.outcomes.iter().filter(|delivered| !**delivered).count();
        let why = format!("{failed} of its last {OUTCOMES} outcomes failed again");
        let signed = self.desk.sign_automation(&why);
        let halt = |run: &mut Run| {
            let is_running = run.standing == Standing::Running;
            if is_running {
                run.standing = Standing::Halted(signed.clone());
                run.outcomes.clone_from(&noted.outcomes);
                run.watched.clone_from(&noted.watched);
            }
            Ok(is_running)
        };
        let books = [order.book.clone()];
        let halting = self.desk.change_run(&order.id, &books, AUTOMATION, &why, Act::RedriveHalted, halt);
        match halting.await {
            Ok(_) => {
                tracing::warn!(run = %order.id, book = %order.book, why, "redrive halted");
                Ok(())
            }
            Err(ActError::Port(error)) => Err(error),
            // It is gone or finished: there is nothing to halt.
            Err(_) => Ok(()),
        }
    }
}

/// The run of an order.
fn run_of(order: &Order) -> Option<Box<Run>> {
    match &order.body {
        OrderBody::Redrive(run) => Some(run.clone()),
        _ => None,
    }
}
