//! What goes wrong between two steps.

use waybill_domain::identity::DestinationName;
use waybill_domain::time::DurationMs;
use waybill_service::ports::{Outgoing, Queue};

use crate::faults::{Actor, Call, Order, Place, Progress, Side, Stage};
use crate::scripted::Reaction;

use super::cast::Role;
use super::history::History;
use super::plan::{Fault, events, skew};

/// Whatever operators do.
const OF_OPERATORS: [Fault; 6] =
    [Fault::Hold, Fault::Ease, Fault::Configure, Fault::StopRun, Fault::EndDeadLetter, Fault::Redrive];

impl History {
    /// One fault of those that this history knows, if it finds somebody to happen to.
    pub(super) fn mischief(&mut self) {
        let faults = self.plan.faults.clone();
        let Some(fault) = self.lots.pick(&faults).copied() else { return };
        self.happen(fault);
        if !OF_OPERATORS.contains(&fault) || !self.lots.chance(40) {
            return;
        }
        // Another operator comes to act at the same time, perhaps on the same.
        let others: Vec<Fault> = faults.into_iter().filter(|fault| OF_OPERATORS.contains(fault)).collect();
        let other = if self.lots.chance(50) { Some(fault) } else { self.lots.pick(&others).copied() };
        if let Some(other) = other {
            self.chronicle.count("fault two operators");
            self.happen(other);
        }
    }

    fn happen(&mut self, fault: Fault) {
        self.tried += 1;
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
            Fault::Hold => self.hold_or_lift(),
            Fault::Ease => self.ease(),
            Fault::Configure if self.lots.chance(30) => self.configure(),
            Fault::Redrive => self.redrive(),
            Fault::StopRun => self.stop_or_resume(),
            Fault::EndDeadLetter if self.lots.chance(40) => self.end_dead_letter(),
            // These come less often than the others.
            Fault::Purge | Fault::Configure | Fault::EndDeadLetter => self.tried -= 1,
            Fault::Sweep => self.begin_sweep(),
            Fault::Postpone => {
                if let Some((id, _)) = self.any_message() {
                    let later = DurationMs::from_ms(self.lots.below(300_000));
                    self.world.queue.postpone(&id, self.now().plus(later));
                    self.chronicle.fault("fault message comes late", || id.to_string());
                }
            }
            Fault::StoreDown => {
                let span = DurationMs::from_ms(self.lots.below(120_000));
                self.down_until = Some(self.now().plus(span));
            }
            Fault::SecondReconciler => {
                self.begin_round();
                self.begin_round();
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
            Fault::Refuse => self.refuse_or_mend(),
            Fault::PublishAgain => {
                let event = self.lots.below(self.publications.len() as u64) as usize;
                if self.publications[event].is_none() {
                    self.begin_publishing(event);
                }
            }
        }
    }

    /// What becomes of the call that somebody is about to make.
    pub(super) fn order_for(&mut self, place: Option<Place>) -> Order {
        let Some(Place { call, side: Side::Before }) = place else { return Order::Go };
        if self.is_calm || call == Call::Request {
            return Order::Go;
        }
        if self.down_until.is_some_and(|until| until > self.now()) && self.lots.chance(70) {
            self.chronicle.fault("fault store down", || call.as_str().to_owned());
            return Order::FailBefore;
        }
        if !self.lots.chance(self.plan.call_percent) {
            return Order::Go;
        }
        let is_write = matches!(
            call,
            Call::Create
                | Call::Apply
                | Call::AddAttempt
                | Call::SetUsage
                | Call::Acknowledge
                | Call::Enter
                | Call::Progress
                | Call::Install
        );
        let (order, name) = match self.lots.below(3) {
            0 => (Order::FailBefore, "fault call fails before"),
            1 => (Order::FailAfter, "fault call fails after"),
            _ if is_write => (Order::Twice, "fault call made twice"),
            _ => return Order::Go,
        };
        self.chronicle.fault(name, || call.as_str().to_owned());
        order
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
        if let Role::Producer { event, .. } | Role::Caller { event, .. } = player.role {
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

    /// A recipient takes nothing from anybody; or whoever runs it has mended it.
    fn refuse_or_mend(&mut self) {
        let name = self.any_destination();
        if self.refusing.remove(&name) {
            self.mend(&name);
        } else {
            let reaction = events::refusal(&mut self.lots);
            self.chronicle.fault("fault recipient refuses", || format!("{name}: {reaction:?}"));
            self.world.recipient.turn(&name, reaction);
            self.refusing.insert(name);
        }
    }

    /// It takes what comes from now on, but for what is scripted.
    pub(super) fn mend(&mut self, name: &DestinationName) {
        self.chronicle.fault("fault recipient mended", || name.to_string());
        self.world.recipient.turn(name, Reaction::answer(200));
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
