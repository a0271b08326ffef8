//! One history, step by step: who moves next, what goes wrong, and when the time passes.

mod calm;

use std::collections::BTreeSet;
use std::sync::Arc;

use waybill_domain::delivery::State;
use waybill_domain::identity::{DeliveryKey, DestinationName, MessageId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::Clock;
use waybill_service::schedule::Learned;

use crate::clock::{SkewedClock, VirtualClock};
use crate::dice::Lots;
use crate::faults::{Call, Order as StageOrder, Place, Progress, Side};

use super::Setup;
use super::auditor::{Auditor, Broken};
use super::cast::{Player, Read};
use super::chronicle::Chronicle;
use super::document::Settings;
use super::plan::{Fault, Plan, events};
use super::world::World;

/// How often the reconciler ticks.
pub(super) const TICK: DurationMs = DurationMs::from_secs(60);

/// More steps than a history takes that comes to its end: probes may be an hour apart, with a round a minute.
const MOST_STEPS: usize = 100_000;

/// A history under way.
#[derive(Debug)]
pub struct History {
    pub(super) plan: Plan,
    pub(super) lots: Lots,
    pub(super) world: World,
    pub(super) auditor: Auditor,
    pub(super) chronicle: Chronicle,
    pub(super) machines: Vec<SkewedClock>,
    pub(super) players: Vec<Player>,
    /// When each event is published next; `None` where its producer is done or at it.
    pub(super) publications: Vec<Option<TimeMs>>,
    pub(super) next_tick: TimeMs,
    pub(super) is_calm: bool,
    pub(super) episodes: u64,
    /// The configuration as each machine read it last.
    pub(super) read: Vec<Option<Read>>,
    /// What the reconciler's process has learned of schedules.
    pub(super) learned: Arc<Learned>,
    /// The configuration that was given last.
    pub(super) settings: Settings,
    /// Until when the stores cannot be asked.
    pub(super) down_until: Option<TimeMs>,
    /// Whose recipients take nothing from anybody.
    pub(super) refusing: BTreeSet<DestinationName>,
    /// Faults that came while nobody had anything to do.
    idle_faults: u32,
    /// How often everything that was stopped went on after the faults had stopped.
    resumed: u32,
    /// What is eased when the faults stop is through before it is lifted.
    keeps_eased: bool,
    /// Faults that were tried, whether or not they found somebody to happen to.
    pub(super) tried: u64,
    /// Whose request was answered in this step.
    answered: Option<String>,
}

impl History {
    /// A history that is about to begin.
    pub fn new(seed: u64, setup: Setup, keeps_lines: bool) -> Self {
        let mut lots = Lots::new(seed);
        let plan = Plan::draw(&mut lots);
        let plan = match setup.only {
            Some(only) => plan.with_only(only),
            None => plan,
        };
        let sabotage = setup.sabotage;
        let mut world = World::new(plan.queue, Vec::new(), sabotage);
        world.put_in_force(&plan.settings.document());
        world.visibility = plan.visibility;
        let chronicle = Chronicle::new(&world.clock, keeps_lines);
        let mut auditor = Auditor::new(&world, &chronicle);
        for planned in &plan.events {
            let key = key_of(&world, planned);
            auditor.expect(&key, &planned.event);
            world.recipient.react(&key.delivery_id, planned.reactions.iter().cloned());
            world.recipient.react_to_look_ups(&key.delivery_id, planned.look_ups.iter().copied());
            chronicle.note(|| format!("planned at {}: {:?}", planned.at, planned.event));
            chronicle.note(|| format!("  {} {:?}", key.delivery_id, planned.reactions));
        }
        for key in auditor.expect_windows() {
            world.recipient.react(&key.delivery_id, events::of_a_window(&mut lots));
        }
        Self {
            machines: plan.skews.iter().map(|skew| SkewedClock::of(&world.clock, *skew)).collect(),
            publications: plan.events.iter().map(|planned| Some(planned.at)).collect(),
            next_tick: VirtualClock::T0.plus(TICK),
            players: Vec::new(),
            is_calm: false,
            episodes: 0,
            read: plan.skews.iter().map(|_| None).collect(),
            learned: Arc::default(),
            settings: plan.settings.clone(),
            down_until: None,
            refusing: BTreeSet::new(),
            idle_faults: 0,
            resumed: 0,
            keeps_eased: false,
            tried: 0,
            answered: None,
            plan,
            lots,
            world,
            auditor,
            chronicle,
        }
    }

    /// Lets it happen. When faults have stopped it runs until nothing is left to do.
    pub fn run(&mut self) -> Result<(), Broken> {
        for step in 0..MOST_STEPS {
            if step == self.plan.fault_steps {
                self.calm_down();
            }
            if !self.is_calm && self.lots.chance(self.plan.fault_percent) {
                self.mischief();
            }
            self.begin_what_is_due();
            let moved = self.step()? || self.pass_the_time();
            self.auditor.after_step()?;
            if let Some(run) = self.auditor.released_now().map(str::to_owned)
                && !self.is_calm
                && self.plan.faults.contains(&Fault::StopRun)
                && self.lots.chance(25)
            {
                self.stop_at_the_worst_moment(&run);
            }
            if let Some(sender) = self.answered.take() {
                self.auditor.request_over(&sender);
            }
            if !moved {
                if !self.is_calm && self.has_more_to_try() {
                    self.mischief();
                    continue;
                }
                if self.is_calm && !self.resume_what_stopped() && !self.lift_what_is_through() {
                    return self.auditor.at_the_end();
                }
                self.calm_down();
            }
        }
        Err(format!("it does not end: {MOST_STEPS} steps"))
    }

    /// What was seen.
    pub fn auditor(&self) -> &Auditor {
        &self.auditor
    }

    /// How many faults were tried.
    pub fn tried(&self) -> u64 {
        self.tried + self.chronicle.with_coverage(|coverage| coverage.failed_calls())
    }

    /// What happened.
    pub fn chronicle(&self) -> &Chronicle {
        &self.chronicle
    }

    fn begin_what_is_due(&mut self) {
        let now = self.now();
        for event in 0..self.publications.len() {
            if self.publications[event].is_some_and(|at| at <= now) {
                self.publications[event] = None;
                self.begin_publishing(event);
            }
        }
        if self.next_tick <= now {
            self.next_tick = now.plus(TICK);
            if self.is_calm {
                self.resume_what_stopped();
                self.lift_what_is_through();
            }
            // A tick with nothing to look at is no step of interest; now and then it is made anyway.
            let is_due = self.next_round(now).is_some_and(|at| at <= now);
            if is_due || self.lots.chance(5) {
                self.begin_round();
            }
        }
    }

    /// Somebody moves, if somebody can.
    fn step(&mut self) -> Result<bool, Broken> {
        let now = self.now();
        let can_move =
            |player: &Player| player.actor.is_ready() && player.frozen_until.is_none_or(|at| at <= now);
        let movable: Vec<usize> = (0..self.players.len()).filter(|i| can_move(&self.players[*i])).collect();
        let idle = self.idle_machine().filter(|_| self.world.queue.next_at().is_some_and(|at| at <= now));
        // An idle worker is one more who may move.
        let chosen = self.lots.below(movable.len() as u64 + u64::from(idle.is_some())) as usize;
        match (movable.get(chosen), idle) {
            (Some(player), _) => self.move_player(*player)?,
            (None, Some(machine)) => self.begin_work(machine),
            (None, None) => return Ok(false),
        }
        let passing = DurationMs::from_ms(self.lots.below(15));
        self.world.clock.advance(passing);
        Ok(true)
    }

    fn move_player(&mut self, at: usize) -> Result<(), Broken> {
        let order = self.order_for(self.players[at].actor.place());
        let player = &mut self.players[at];
        player.is_harmed |= matches!(order, StageOrder::FailBefore | StageOrder::FailAfter);
        player.frozen_until = None;
        self.auditor.moves(player.actor.name(), player.is_harmed);
        let progress = player.actor.step(order);
        let name = player.actor.name().to_owned();
        self.chronicle.note(|| match progress {
            Progress::At(Place { call, side: Side::Before }) => format!("{name} before {}", call.as_str()),
            Progress::At(Place { call, side: Side::After }) => format!("{name} after {}", call.as_str()),
            Progress::Waiting => format!("{name} waits"),
            Progress::Done => format!("{name} is done"),
        });
        match progress {
            Progress::At(Place { call: Call::Request, side: Side::After }) => {
                self.answered = Some(name.clone())
            }
            Progress::At(Place { call: Call::SetUsage, side: Side::After }) => self.auditor.budget_written(),
            _ => {}
        }
        self.maybe_oversleep(at, progress);
        if progress == Progress::Done {
            let player = self.players.swap_remove(at);
            self.auditor.request_over(player.actor.name());
            if player.is_calm {
                self.auditor.check_slots(player.actor.name())?;
            }
            if !player.is_harmed {
                self.auditor.check_success_counted(player.actor.name())?;
            }
            self.hear(player.role);
        }
        Ok(())
    }

    /// Nobody can move: the time passes until somebody can. Whether there is such a time.
    fn pass_the_time(&mut self) -> bool {
        let now = self.now();
        let thaws = self.players.iter().filter(|p| p.actor.is_ready()).filter_map(|p| p.frozen_until);
        let published = self.publications.iter().copied().flatten();
        let received = self.idle_machine().and_then(|_| self.world.queue.next_at());
        let looked = self.next_round(now).map(|at| at.max(self.next_tick));
        let events = thaws.chain(published).chain(received).chain(self.world.clock.next_wait()).chain(looked);
        let Some(next) = events.min() else { return false };
        self.next_tick = self.next_tick.max(looked.map_or(next, |at| at.min(next)).minus(TICK));
        self.world.clock.set(next.max(now));
        true
    }

    pub(super) fn now(&self) -> TimeMs {
        self.world.clock.now()
    }

    /// One of the messages that are not deleted.
    pub(super) fn any_message(&mut self) -> Option<(MessageId, String)> {
        let messages = self.world.queue.messages();
        self.lots.pick(&messages).map(|(id, body, _)| (id.clone(), body.clone()))
    }

    /// One of the deliveries in this state.
    pub(super) fn any_in(&mut self, state: State) -> Option<DeliveryKey> {
        let records = self.world.ledger.records();
        let keys: Vec<_> = records.iter().filter(|r| r.state == state).map(|r| r.delivery.key()).collect();
        self.lots.pick(&keys).cloned()
    }
}

pub(super) fn key_of(world: &World, planned: &super::plan::PlannedEvent) -> DeliveryKey {
    let destination = planned.event.destination.as_ref().map_or("", |name| name.as_str());
    world.key_of(&planned.event.tenant, planned.event.event_id.as_str(), destination)
}
