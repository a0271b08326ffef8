//! What goes wrong between two steps.

use waybill_domain::delivery::State;
use waybill_domain::destination::EventPattern;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::time::DurationMs;
use waybill_service::ports::{Outgoing, Queue};

use crate::faults::{Actor, Call, Order, Place, Progress, Side, Stage};

use super::cast::Role;
use super::history::History;
use super::plan::{Fault, skew};
use super::world::{TENANT, event_type};

impl History {
    /// One fault of those that this history knows, if it finds somebody to happen to.
    pub(super) fn mischief(&mut self) {
        let faults = self.plan.faults.clone();
        let Some(fault) = self.lots.pick(&faults).copied() else { return };
        match fault {
            Fault::Crash => self.crash(),
            Fault::Freeze => self.freeze(),
            Fault::Duplicate => self.duplicate(),
            Fault::Lose => {
                if let Some((id, body)) = self.any_message() {
                    self.world.queue.lose(&id);
                    self.auditor.lost(&id, &body);
                    self.chronicle.fault("fault message lost", || id.to_string());
                }
            }
            Fault::Purge if self.lots.chance(10) => {
                for (id, body, _) in self.world.queue.messages() {
                    self.auditor.lost(&id, &body);
                }
                self.world.queue.purge();
                self.chronicle.fault("fault queue purged", String::new);
            }
            Fault::Purge => {}
            Fault::ClockJump => {
                let offset = skew(&mut self.lots);
                let machine = self.lots.below(self.machines.len() as u64) as usize;
                self.machines[machine].jump_to(offset);
                self.chronicle.fault("fault clock jumps", || format!("machine {machine} to {offset} ms"));
            }
            Fault::NativeMove => {
                if let Some((id, _)) = self.any_message() {
                    self.world.queue.move_natively(&id);
                    self.chronicle.fault("fault message moved natively", || id.to_string());
                }
            }
            Fault::ConsoleRedrive => {
                self.world.queue.redrive_all_from_console();
                self.chronicle.fault("fault console redrives", String::new);
            }
            Fault::Hold => self.add_or_lift_holds(),
            Fault::RemoveDestination if self.lots.chance(15) => {
                let gone = self.any_destination();
                self.world.change_config(|config| drop(config.destinations.remove(&gone)));
                self.chronicle.fault("fault config loses destination", || gone.to_string());
            }
            Fault::RemoveDestination => {}
            Fault::Release => {
                if let Some(key) = self.any_in(State::DeadLettered) {
                    self.begin_release(&key);
                }
            }
            Fault::SecondReconciler => {
                self.begin_tick();
                self.begin_tick();
                self.chronicle.count("fault two reconcilers");
            }
            Fault::IndexLag => {
                let lags = self.lots.chance(50);
                self.world.ledger.let_indexes_lag(lags);
                self.chronicle.fault("fault index lags", || lags.to_string());
            }
            Fault::Stray => self.stray(),
            Fault::TimePasses => {
                let span = DurationMs::from_ms(self.lots.below(120_000));
                self.world.clock.advance(span);
            }
            Fault::PublishAgain => {
                let event = self.lots.below(self.publications.len() as u64) as usize;
                if self.publications[event].is_none() {
                    self.begin_publishing(event);
                }
            }
        }
    }

    fn crash(&mut self) {
        // Whoever is frozen is as good as dead already; its crash would hide that it comes back.
        let awake: Vec<usize> =
            (0..self.players.len()).filter(|i| self.players[*i].frozen_until.is_none()).collect();
        let Some(at) = self.lots.pick(&awake).copied() else { return };
        let player = self.players.swap_remove(at);
        let name = match player.actor.place().map(|place| place.side) {
            Some(Side::Before) => "fault crash before",
            Some(Side::After) => "fault crash after",
            None => "fault crash while waiting",
        };
        self.chronicle.fault(name, || player.actor.name().to_owned());
        self.auditor.request_over(player.actor.name());
        if self.auditor.check_slots(player.actor.name()).is_err() {
            self.chronicle.count("fault crash with a slot");
        }
        if let Role::Producer { event, .. } = player.role {
            self.publish_later(event);
        }
        player.actor.crash();
    }

    fn freeze(&mut self) {
        let now = self.now();
        let is_long = self.lots.chance(50);
        let span = self.lots.below(if is_long { 1_200_000 } else { 30_000 });
        let at = self.lots.below(self.players.len() as u64) as usize;
        if let Some(player) = self.players.get_mut(at) {
            player.frozen_until = Some(now.plus(DurationMs::from_ms(span)));
            let name = player.actor.name().to_owned();
            self.chronicle.fault("fault freeze", || format!("{name} for {span} ms"));
        }
    }

    /// Whoever waits for an answer, or has it and has not written it down, may sleep past its lease:
    /// the ambiguous moment deserves more than its share of chance.
    pub(super) fn maybe_oversleep(&mut self, at: usize, progress: Progress) {
        let is_sending = matches!(
            progress,
            Progress::Waiting | Progress::At(Place { call: Call::Request, side: Side::After })
        );
        if self.is_calm || !is_sending || !self.plan.faults.contains(&Fault::Freeze) || !self.lots.chance(8) {
            return;
        }
        let span = DurationMs::from_ms(15_000 + self.lots.below(60_000));
        let until = self.now().plus(span);
        self.players[at].frozen_until = Some(until);
        let name = self.players[at].actor.name().to_owned();
        self.chronicle.fault("fault freeze", || format!("{name}, while sending, for {span}"));
    }

    fn duplicate(&mut self) {
        if self.lots.chance(80) {
            if let Some((id, _)) = self.any_message() {
                self.world.queue.duplicate(&id);
                self.chronicle.fault("fault message duplicated", || id.to_string());
            }
            return;
        }
        let deleted = self.world.queue.deleted();
        if let Some(id) = self.lots.pick(&deleted) {
            self.world.queue.duplicate(id);
            self.chronicle.fault("fault deleted message comes back", || id.to_string());
        }
    }

    fn add_or_lift_holds(&mut self) {
        if self.lots.chance(50) {
            self.chronicle.note(|| "the operator lifts every hold".to_owned());
            return self.world.hold(Vec::new());
        }
        let rule = match self.lots.below(4) {
            0 => HoldRule::All,
            1 => HoldRule::Tenant(TenantId::parse(TENANT).expect("a tenant")),
            2 => HoldRule::Destination(self.any_destination()),
            _ => {
                let types = EventPattern::parse(event_type(true).as_str()).expect("a pattern");
                HoldRule::Type { types, payload_version: None, tenant: None }
            }
        };
        self.chronicle.note(|| format!("the operator holds {rule:?}"));
        self.world.change_config(|config| config.holds.push(rule));
    }

    fn any_destination(&mut self) -> DestinationName {
        let names: Vec<_> = self.plan.events.iter().filter_map(|p| p.event.destination.clone()).collect();
        self.lots.pick(&names).cloned().expect("every planned event names its destination")
    }

    /// Somebody else's message on our queue.
    fn stray(&mut self) {
        let (body, name) = match self.lots.below(3) {
            0 => ("{\"waybill\":2,\"kind\":\"wake_up\"}".to_owned(), "fault stray newer"),
            1 => ("not ours".to_owned(), "fault stray undecodable"),
            _ => (UNKNOWN.to_owned(), "fault stray unknown"),
        };
        if name == "fault stray undecodable" {
            self.auditor.strayed_undecodable();
        }
        self.chronicle.fault(name, String::new);
        let queue = self.world.queue.clone();
        let mut stranger = Actor::new("stranger", Stage::default(), async move {
            let _ = queue.send(Outgoing { body, delay: DurationMs::ZERO }).await;
        });
        assert_eq!(stranger.step(Order::Go), Progress::Done, "a bare queue in memory answers at once");
    }
}

/// A wake-up for a delivery that no ledger knows.
const UNKNOWN: &str = r#"{"waybill":1,"kind":"wake_up","delivery_id":"whd_00000000000000000000000000",
"tenant":"acme","destination":"usual","type":"even.recorded","first_queued_at":"2026-08-10T06:00:00Z",
"attempt":1,"due_at":"2026-08-10T06:00:00Z"}"#;
