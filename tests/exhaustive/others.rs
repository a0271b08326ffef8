//! The reconciler, the operator, and what else may happen: time, duplicates, losses, crashes.

use waybill_domain::redrive::{Bench, Fate, Reviews, judge};
use waybill_domain::repair::{HeldRepair, Repair, repair, repair_held};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_domain::transition::Writer;

use crate::ground::{Ground, token};
use crate::state::{Broken, Helper, Id, Lies, RUN, Reaction, State, Then, Worker};
use crate::store::{Handed, Written};

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    Receives {
        worker: usize,
        message: u8,
    },
    Steps(usize),
    /// The store's client repeats the write that this worker makes.
    StepsTwice(usize),
    Reconciles,
    ReconcilerSteps,
    Releases,
    OperatorSteps,
    Holds,
    Lifts,
    Stops,
    Resumes,
    TimePasses,
    Crashes(usize),
    ReconcilerCrashes,
    OperatorCrashes,
    Doubles(u8),
    Loses(u8),
}

impl State {
    /// Every state that may be next.
    pub(crate) fn successors(&self, ground: &mut Ground) -> Result<Vec<(Move, State)>, Broken> {
        let mut next = Vec::new();
        for n in 0..self.workers.len() {
            let steps = self.clone().step_worker(ground, n, false)?;
            next.extend(steps.into_iter().map(|state| (Move::Steps(n), state)));
            if self.left.repeats > 0 && self.writes(n) {
                let mut repeating = self.clone();
                repeating.left.repeats -= 1;
                let steps = repeating.step_worker(ground, n, true)?;
                next.extend(steps.into_iter().map(|state| (Move::StepsTwice(n), state)));
            }
        }
        // Workers are alike: of two idle ones the first receives.
        if let Some(worker) = self.idle_worker() {
            for message in self.messages.iter().filter(|message| self.is_receivable(message.id)) {
                let received = self.clone().receive(ground, worker, message.id);
                next.push((Move::Receives { worker, message: message.id }, received));
            }
        }
        match self.reconciler {
            Helper::Idle => next.extend(self.reconcile(ground).map(|state| (Move::Reconciles, state))),
            _ => next.push((Move::ReconcilerSteps, self.step_helper(ground, true)?)),
        }
        match self.operator {
            Helper::Idle => next.extend(self.release(ground).map(|state| (Move::Releases, state))),
            _ => next.push((Move::OperatorSteps, self.step_helper(ground, false)?)),
        }
        self.orders(ground, &mut next);
        let is_idle = next.is_empty();
        if let Some(later) = self.later(ground).filter(|_| is_idle || self.left.freezes > 0) {
            let mut state = self.clone();
            state.now = later;
            state.left.freezes -= u8::from(!is_idle);
            next.push((Move::TimePasses, state));
        }
        self.faults(&mut next);
        for (_, state) in &mut next {
            state.tidy(ground);
        }
        Ok(next)
    }

    fn writes(&self, n: usize) -> bool {
        use Worker as W;
        let worker = self.workers[n];
        matches!(
            worker,
            W::Writes { .. } | W::Claims { .. } | W::Settles { .. } | W::WritesLate { .. } | W::Tells { .. }
        )
    }

    fn idle_worker(&self) -> Option<usize> {
        self.workers.iter().position(|worker| *worker == Worker::Idle)
    }

    fn is_receivable(&self, id: u8) -> bool {
        let message = self.message(id);
        message.is_doubled || (message.place == Lies::Here && message.visible_at <= self.now)
    }

    /// The reconciler looks, where its indexes list the delivery and there is something to do.
    fn reconcile(&self, ground: &mut Ground) -> Option<State> {
        if !self.left.reconciles {
            return None;
        }
        let (base, now) = (self.record, self.now);
        let record = ground.record(base).clone();
        let window = ground.destination.policy.minimum_window;
        let by = Writer { message_id: None, token: token(format!("rec-{}", record.revision)), now };
        let holds = ground.holds(self.is_held, self.is_stopped);
        let (change, then) = match repair_held(&record, &holds, window, now) {
            HeldRepair::Lift => (record.lift(now, &ground.look), Then::HandOff),
            HeldRepair::End(ending) => (record.end(&by, ending, &ground.look), Then::HandOff),
            HeldRepair::Stay => match repair(&record, window, now) {
                Repair::NotDue => return None,
                Repair::Working => (record.looked(now, &ground.look), Then::Nothing),
                Repair::Wake if record.claim.is_some() => (record.looked(now, &ground.look), Then::Wake),
                Repair::Wake | Repair::TellDlq => (record.looked(now, &ground.look), Then::HandOff),
                Repair::End(ending) => (record.end(&by, ending, &ground.look), Then::HandOff),
            },
        };
        let after = ground.keep(change.expect("what it repairs may be repaired").into_after());
        let mut next = self.clone();
        next.reconciler = Helper::Writes { base, after, then };
        Some(next)
    }

    /// The operator's run releases the dead letter.
    fn release(&self, ground: &mut Ground) -> Option<State> {
        let (base, now) = (self.record, self.now);
        let record = ground.record(base).clone();
        record.dead_letter_reason().filter(|_| self.left.releases > 0 && !self.is_stopped)?;
        let bench = Bench { reviews: &Reviews::default(), max_redrives: 3, now };
        let policy = ground.destination.policy;
        let change = match judge(&record, Some(&ground.destination), bench) {
            Fate::Release => record.release(RUN.to_owned(), &policy, now, now, &ground.look),
            Fate::Expire => record.expire_dead_letter(now, &ground.look),
            Fate::Blocked(_) => return None,
        };
        let after = ground.keep(change.expect("it was judged").into_after());
        let mut next = self.clone();
        next.left.releases -= 1;
        next.operator = Helper::Writes { base, after, then: Then::HandOff };
        Some(next)
    }

    fn step_helper(&self, ground: &mut Ground, is_reconciler: bool) -> Result<State, Broken> {
        let mut next = self.clone();
        let helper = if is_reconciler { self.reconciler } else { self.operator };
        let done = match helper {
            Helper::Idle => Helper::Idle,
            Helper::Writes { base, after, then } => {
                match (next.write(ground, base, after, false, false)?, then) {
                    (Written::Lost(_), _) | (_, Then::Nothing) => Helper::Idle,
                    (Written::Landed(record), Then::HandOff) => Helper::HandsOff { record },
                    (Written::Landed(record), Then::Wake) => Helper::Wakes { record },
                }
            }
            Helper::HandsOff { record } => match next.hand_off(ground, record) {
                Handed::Done => Helper::Idle,
                Handed::Told => Helper::Tells { of: record, current: record },
            },
            Helper::Wakes { record } => {
                next.send(ground, record, DurationMs::ZERO);
                Helper::Idle
            }
            Helper::Tells { of, current } => match next.tell(ground, of, current, false)? {
                Some(current) => Helper::Tells { of, current },
                None => Helper::Idle,
            },
        };
        match is_reconciler {
            true => next.reconciler = done,
            false => next.operator = done,
        }
        Ok(next)
    }

    /// Holds and stops that are placed and lifted. What was placed can always be lifted.
    fn orders(&self, ground: &Ground, next: &mut Vec<(Move, State)>) {
        let record = ground.record(self.record);
        let mut order = |is_possible: bool, name: Move, change: fn(&mut State)| {
            if is_possible {
                let mut state = self.clone();
                change(&mut state);
                next.push((name, state));
            }
        };
        order(!self.is_held && self.left.holds > 0 && record.state.is_open(), Move::Holds, |state| {
            state.is_held = true;
            state.left.holds -= 1;
        });
        order(self.is_held, Move::Lifts, |state| state.is_held = false);
        let is_running = record.redrive_run.is_some() || self.operator != Helper::Idle;
        order(!self.is_stopped && self.left.stops > 0 && is_running, Move::Stops, |state| {
            state.is_stopped = true;
            state.left.stops -= 1;
        });
        order(self.is_stopped, Move::Resumes, |state| state.is_stopped = false);
    }

    fn faults(&self, next: &mut Vec<(Move, State)>) {
        if self.left.crashes > 0 {
            for n in (0..self.workers.len()).filter(|n| self.workers[*n] != Worker::Idle) {
                next.push((Move::Crashes(n), self.after_crash(|state| state.workers[n] = Worker::Idle)));
            }
            if self.reconciler != Helper::Idle {
                let state = self.after_crash(|state| state.reconciler = Helper::Idle);
                next.push((Move::ReconcilerCrashes, state));
            }
            if self.operator != Helper::Idle {
                let state = self.after_crash(|state| state.operator = Helper::Idle);
                next.push((Move::OperatorCrashes, state));
            }
        }
        for message in &self.messages {
            if self.left.duplicates > 0 && !message.is_doubled && message.place != Lies::Lost {
                let mut state = self.clone();
                state.left.duplicates -= 1;
                state.message_mut(message.id).is_doubled = true;
                next.push((Move::Doubles(message.id), state));
            }
            if self.left.losses > 0 && message.place == Lies::Here {
                let mut state = self.clone();
                state.left.losses -= 1;
                let lost = state.message_mut(message.id);
                lost.place = Lies::Lost;
                lost.is_doubled = false;
                next.push((Move::Loses(message.id), state));
            }
        }
    }

    fn after_crash(&self, crash: impl Fn(&mut State)) -> State {
        let mut state = self.clone();
        state.left.crashes -= 1;
        crash(&mut state);
        state
    }

    /// The next moment at which anything is different for anybody.
    fn later(&self, ground: &Ground) -> Option<TimeMs> {
        let record = ground.record(self.record);
        let of_record: [Option<TimeMs>; 4] = match record.state.is_open() {
            false => [record.look_at, None, None, None],
            true => {
                let limit = record.limit(self.now).at;
                let last = limit.minus(ground.destination.policy.minimum_window).plus(DurationMs::from_ms(1));
                let lease_until = record.claim.as_ref().map(|claim| claim.lease_until);
                [record.look_at, Some(record.due_at), lease_until, Some(last)]
            }
        };
        let of_messages = self.messages.iter().filter(|m| m.place == Lies::Here).map(|m| m.visible_at);
        let of_workers = self.workers.iter().filter_map(|worker| match worker {
            Worker::Waits { reaction: Reaction::Silent, over_at, .. } => Some(*over_at),
            _ => None,
        });
        let moments = of_record.into_iter().flatten().chain(of_messages).chain(of_workers);
        moments.filter(|at| *at > self.now).min()
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.workers.iter().all(|worker| *worker == Worker::Idle)
            && (self.reconciler, self.operator) == (Helper::Idle, Helper::Idle)
    }

    /// The record as it stands.
    pub(crate) fn stored(&self) -> Id {
        self.record
    }
}
