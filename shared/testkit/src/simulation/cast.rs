//! Who is at work in a history: how they begin, and what they bring back.

use std::sync::{Arc, PoisonError};

use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::Config;
use waybill_service::ports::PortResult;
use waybill_service::publish::{PublishError, Published};
use waybill_service::reconcile::TickLimits;
use waybill_service::round::RoundReport;
use waybill_service::source::LONGEST_HOLD;

use crate::faults::Actor;

use super::actors::{Answer, Heard, WorkerTerms};
use super::auditor::View;
use super::history::{History, TICK, key_of};
use super::world::World;

/// As many rounds are made at once at most: each carries on what stands in a run's hand, and sends its
/// wake-ups once more.
const MOST_RECONCILERS: usize = 4;

/// Somebody at work.
#[derive(Debug)]
pub(super) struct Player {
    pub(super) actor: Actor,
    pub(super) role: Role,
    pub(super) frozen_until: Option<TimeMs>,
    /// Nothing goes wrong with it: the faults had stopped when it began.
    pub(super) is_calm: bool,
    /// A call of its failed, or its answer was lost.
    pub(super) is_harmed: bool,
}

/// The configuration as a machine read it.
#[derive(Debug)]
pub(super) struct Read {
    /// Until when it keeps that.
    until: TimeMs,
    config: Arc<Config>,
    /// What the orders said then.
    view: Arc<View>,
}

/// What somebody is at work as.
#[derive(Debug)]
pub(super) enum Role {
    Worker {
        machine: usize,
    },
    Producer {
        event: usize,
        answer: Answer<Heard>,
    },
    /// A producer that calls the library and not the door.
    Caller {
        event: usize,
        answer: Answer<Result<Vec<Published>, PublishError>>,
    },
    Reconciler {
        answer: Answer<PortResult<RoundReport>>,
    },
    Sweeper,
    Operator,
}

impl History {
    pub(super) fn begin_publishing(&mut self, event: usize) {
        let (name, _) = self.name("producer");
        let machine = self.plan.workers;
        let (world, clock) = (self.as_seen_by(machine, &name), self.machines[machine].clone());
        let planned = &self.plan.events[event];
        if planned.over_http {
            let (actor, answer) = world.caller(&name, &clock, &planned.event);
            return self.begin(actor, Role::Producer { event, answer });
        }
        let (actor, answer) = world.producer(&name, &clock, planned.event.clone());
        self.begin(actor, Role::Caller { event, answer });
    }

    pub(super) fn begin_round(&mut self) {
        let at_work = self.players.iter().filter(|player| matches!(player.role, Role::Reconciler { .. }));
        if at_work.count() >= MOST_RECONCILERS {
            return;
        }
        let (name, seed) = self.name("reconciler");
        let machine = self.plan.workers + 1;
        if self.lots.chance(10) {
            // A process that begins anew has learned nothing.
            self.learned = Arc::default();
        }
        // Small pages, so that they are turned.
        let limits = TickLimits { pages: 4, page_size: 2, ..TickLimits::default() };
        let (world, clock) = (self.as_seen_by(machine, &name), self.machines[machine].clone());
        let (actor, answer) = world.round(&name, &clock, seed, limits, &self.learned);
        self.begin(actor, Role::Reconciler { answer });
    }

    pub(super) fn begin_sweep(&mut self) {
        let (name, _) = self.name("sweeper");
        let machine = self.plan.workers + 1;
        let actor = self.as_seen_by(machine, &name).sweeper(&name, &self.machines[machine].clone());
        self.begin(actor, Role::Sweeper);
    }

    /// An operator's command begins.
    pub(super) fn begin_command(&mut self, command: impl FnOnce(&World, &str, u64) -> Actor) {
        let (name, seed) = self.name("operator");
        let actor = command(&self.world, &name, seed);
        self.begin(actor, Role::Operator);
    }

    /// The world with the configuration that the machine of `name` has read at most ten seconds ago.
    fn as_seen_by(&mut self, machine: usize, name: &str) -> World {
        let now = self.now();
        let last = self.read[machine].take().filter(|read| now < read.until);
        let read = last.unwrap_or_else(|| Read {
            until: now.plus(LONGEST_HOLD),
            config: self.world.config(),
            view: self.auditor.view(),
        });
        self.auditor.knows(name, read.view.clone());
        let world = self.world.seeing(read.config.clone());
        self.read[machine] = Some(read);
        world
    }

    pub(super) fn begin_work(&mut self, machine: usize) {
        let (name, seed) = self.name(&format!("w{machine}"));
        let is_short = !self.is_calm && self.lots.chance(5);
        let time_left = if is_short { DurationMs::from_ms(self.lots.below(17_000)) } else { TICK };
        let told = Some(self.chronicle.listening_to(&name));
        let terms = WorkerTerms { time_left, hides: self.plan.hides, told };
        let clock = self.machines[machine].clone();
        let world = self.as_seen_by(machine, &name);
        self.auditor.begins(&name, &world.config());
        let actor = world.worker(&name, &clock, seed, terms);
        self.begin(actor, Role::Worker { machine });
    }

    fn begin(&mut self, actor: Actor, role: Role) {
        self.players.push(Player {
            actor,
            role,
            frozen_until: None,
            is_calm: self.is_calm,
            is_harmed: false,
        });
    }

    /// A name that no other actor of this history has: tokens begin with it.
    fn name(&mut self, kind: &str) -> (String, u64) {
        self.episodes += 1;
        (format!("{kind}.{}", self.episodes), self.lots.bits())
    }

    pub(super) fn idle_machine(&self) -> Option<usize> {
        let works = |machine: usize| {
            self.players.iter().any(|p| matches!(p.role, Role::Worker { machine: at } if at == machine))
        };
        (0..self.plan.workers).find(|machine| !works(*machine))
    }

    /// What somebody brings back.
    pub(super) fn hear(&mut self, role: Role) {
        match role {
            Role::Producer { event, answer } => {
                let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
                self.heard(event, answer);
            }
            Role::Caller { event, answer } => {
                let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
                let heard = answer.map(|answer| match answer {
                    Ok(_) => Heard::Accepted,
                    Err(PublishError::Port(_)) => Heard::AskedToRepeat,
                    Err(refused) => Heard::Refused(refused.to_string()),
                });
                self.heard(event, heard);
            }
            Role::Reconciler { answer } => {
                if let Some(report) = answer.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    self.chronicle.note(|| format!("{report:?}"));
                    self.chronicle.with_coverage(|coverage| coverage.round(&report));
                }
            }
            Role::Worker { .. } | Role::Operator | Role::Sweeper => {}
        }
    }

    fn heard(&mut self, event: usize, heard: Option<Heard>) {
        match heard {
            Some(Heard::Accepted) => {
                let key = key_of(&self.world, &self.plan.events[event]);
                self.auditor.accepted(&key);
                self.chronicle.note(|| format!("event {event} is accepted"));
            }
            Some(Heard::AskedToRepeat) => self.publish_later(event),
            Some(Heard::Refused(why)) => {
                self.chronicle.count("seen refused by ingest");
                self.chronicle.note(|| format!("event {event}: {why}"));
            }
            None => {}
        }
    }

    /// A producer that was not answered repeats, unless it gives up: what it recorded must end anyway.
    pub(super) fn publish_later(&mut self, event: usize) {
        if self.lots.chance(80) {
            let later = DurationMs::from_ms(self.lots.below(60_000));
            self.publications[event] = Some(self.now().plus(later));
            self.chronicle.count("fault producer repeats");
        }
    }
}
