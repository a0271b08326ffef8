//! Who is at work in a history: how they begin, and what they bring back.

use std::sync::PoisonError;

use waybill_domain::identity::DeliveryKey;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::PortResult;
use waybill_service::publish::{PublishError, Published};
use waybill_service::reconcile::{TickLimits, TickReport};

use crate::faults::Actor;

use super::actors::{Answer, WorkerTerms};
use super::history::{History, TICK, key_of};

/// Somebody at work.
#[derive(Debug)]
pub(super) struct Player {
    pub(super) actor: Actor,
    pub(super) role: Role,
    pub(super) frozen_until: Option<TimeMs>,
    /// Nothing goes wrong with it: the faults had stopped when it began.
    pub(super) is_calm: bool,
}

/// What somebody is at work as.
#[derive(Debug)]
pub(super) enum Role {
    Worker { machine: usize },
    Producer { event: usize, answer: Answer<Result<Vec<Published>, PublishError>> },
    Reconciler { answer: Answer<PortResult<TickReport>> },
    Operator,
}

impl History {
    pub(super) fn begin_publishing(&mut self, event: usize) {
        let (name, _) = self.name("producer");
        let clock = self.machines[self.plan.workers].clone();
        let event_to_publish = self.plan.events[event].event.clone();
        let (actor, answer) = self.world.producer(&name, &clock, event_to_publish);
        self.begin(actor, Role::Producer { event, answer });
    }

    pub(super) fn begin_tick(&mut self) {
        let (name, seed) = self.name("reconciler");
        let clock = self.machines[self.plan.workers + 1].clone();
        // Small pages, so that they are turned.
        let limits = TickLimits { pages: 4, page_size: 2, ..TickLimits::default() };
        let (actor, answer) = self.world.reconciler(&name, &clock, seed, limits);
        self.begin(actor, Role::Reconciler { answer });
    }

    pub(super) fn begin_release(&mut self, key: &DeliveryKey) {
        let (name, _) = self.name("operator");
        let actor = self.world.operator_releasing(&name, key, &name);
        self.begin(actor, Role::Operator);
    }

    pub(super) fn begin_work(&mut self, machine: usize) {
        let (name, seed) = self.name(&format!("w{machine}"));
        let is_short = !self.is_calm && self.lots.chance(5);
        let time_left = if is_short { DurationMs::from_ms(self.lots.below(17_000)) } else { TICK };
        let told = Some(self.chronicle.listening_to(&name));
        let terms = WorkerTerms { time_left, hides: self.plan.hides, told };
        let actor = self.world.worker(&name, &self.machines[machine].clone(), seed, terms);
        self.begin(actor, Role::Worker { machine });
    }

    fn begin(&mut self, actor: Actor, role: Role) {
        self.players.push(Player { actor, role, frozen_until: None, is_calm: self.is_calm });
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
                match answer {
                    Some(Ok(_)) => {
                        let key = key_of(&self.world, &self.plan.events[event]);
                        self.auditor.accepted(&key);
                        self.chronicle.note(|| format!("event {event} is accepted"));
                    }
                    Some(Err(PublishError::Port(_))) => self.publish_later(event),
                    Some(Err(refused)) => self.chronicle.note(|| format!("event {event}: {refused}")),
                    None => {}
                }
            }
            Role::Reconciler { answer } => {
                if let Some(report) = answer.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    self.chronicle.note(|| format!("{report:?}"));
                    self.chronicle.with_coverage(|coverage| coverage.tick(&report));
                }
            }
            Role::Worker { .. } | Role::Operator => {}
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
