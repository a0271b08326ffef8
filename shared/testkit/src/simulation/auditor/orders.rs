//! Orders: every write follows the one before it, runs release what was planned and whose it is, the audit
//! holds together, windows get their deliveries.

use waybill_domain::audit::Verification;
use waybill_domain::delivery::Record;
use waybill_domain::event_template::EventIdTemplate;
use waybill_domain::identity::DeliveryKey;
use waybill_domain::order::{Order, OrderBody};
use waybill_domain::redrive::Run;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::Schedule;
use waybill_service::ports::Clock;

use crate::clock::VirtualClock;
use crate::simulation::coverage;
use crate::simulation::document::EVENT_IDS;

use super::{Auditor, Broken};

/// Windows that are fired for within this time after a history's beginning are waited for.
const WAITED_FOR: DurationMs = DurationMs::from_secs(3600);

/// How long a process at most goes by what it has read: ten seconds, and as long as it stands still.
const LONGEST_BEHIND: DurationMs = DurationMs::from_secs(1_500);

impl Auditor {
    /// Waits for what the calendar is about to publish. Answers which deliveries may come of it.
    pub fn expect_windows(&mut self) -> Vec<DeliveryKey> {
        let mut all = Vec::new();
        let config = self.world.config();
        let (ahead, back) = (DurationMs::from_secs(3 * 86_400), DurationMs::from_secs(5 * 86_400));
        let until = VirtualClock::T0.plus(ahead);
        for schedule in &config.schedules {
            for window in schedule.timing.closed_windows(back, until) {
                for tenant in &schedule.tenants {
                    if schedule.since.get(tenant).is_none_or(|since| window.fires_at <= *since) {
                        continue;
                    }
                    let mut keys = Vec::new();
                    for ids in EVENT_IDS {
                        let event_id = EventIdTemplate::parse("event_id", ids, &schedule.name);
                        let event_id = event_id.expect("a template");
                        let event = Schedule { event_id, ..schedule.clone() }.event(tenant, window.day);
                        let id = event.event_id.as_str();
                        let key = self.world.key_of(tenant, id, schedule.destination.as_str());
                        self.expect(&key, &event);
                        keys.push(key);
                    }
                    all.extend(keys.iter().cloned());
                    self.windows.push((window.fires_at, keys));
                }
            }
        }
        all
    }

    /// When a window is next fired for that has no delivery yet.
    pub fn next_window(&self) -> Option<TimeMs> {
        let until = VirtualClock::T0.plus(WAITED_FOR);
        let soon = self.windows.iter().filter(|(at, _)| *at <= until);
        soon.filter(|(_, keys)| self.deliveries(keys) == 0).map(|(at, _)| *at).min()
    }

    /// How many of these there are.
    fn deliveries(&self, keys: &[DeliveryKey]) -> usize {
        keys.iter().filter(|key| self.world.ledger.inspect(key, |_| ()).is_some()).count()
    }

    /// The run that released something in the last step.
    pub fn released_now(&self) -> Option<&str> {
        self.released_now.as_deref()
    }

    pub(super) fn check_orders(&mut self) -> Result<(), Broken> {
        for write in self.world.office.take_journal() {
            let name = coverage::order(&write);
            self.chronicle.count(name);
            self.chronicle.note(|| format!("  {name}: {} rev={}", write.after.id, write.after.revision));
            let expected = write.before.as_ref().map_or(1, |before| before.revision + 1);
            if write.after.revision != expected {
                let id = &write.after.id;
                return Err(format!("the order {id} was written over: another had moved it on"));
            }
        }
        Ok(())
    }

    /// A run releases dead letters that its selection means, of its own tenant, and no later ones.
    pub(super) fn check_release(&mut self, before: &Record, after: &Record) -> Result<(), Broken> {
        let id = after.redrive_run.clone().unwrap_or_default();
        let Some(order) = self.world.office.peek_order(&id) else {
            return Err(format!("released by {id}, which nobody started"));
        };
        let Some(run) = run_of(&order) else { return Err(format!("released by {id}, which is no run")) };
        if order.book.tenant().is_some_and(|tenant| *tenant != after.delivery.tenant) {
            return Err(format!("released by {id}, a run of another tenant"));
        }
        if !run.selection.matches(before) {
            return Err(format!("released by {id}, whose plan does not mean it"));
        }
        if before.redrives >= 3 && run.reviews.beyond_limit.is_none() {
            return Err(format!("released by {id} for the {}th time", after.redrives));
        }
        if run.not_before.is_some_and(|at| self.world.clock.now().plus(super::SKEW).plus(super::SKEW) < at) {
            return Err(format!("released by {id} before its time"));
        }
        *self.releases.entry(id.clone()).or_default() += 1;
        self.released_now = Some(id);
        Ok(())
    }

    pub(super) fn check_orders_at_the_end(&self) -> Result<(), Broken> {
        for order in self.world.office.peek_orders() {
            if order.is_open() && !self.is_of_a_suspension_without_work(&order) {
                return Err(format!("the order {} is never done: {:?}", order.id, order.body));
            }
            let Some(run) = run_of(&order) else { continue };
            let released = self.releases.get(order.id.as_str()).copied().unwrap_or(0);
            // Two reconcilers under two configurations may differ on what is blocked, and then the count of
            // the one that came later stands.
            let is_only_one = self.releases.len() <= 1 && self.world.office.peek_history().len() == 1;
            if run.tally.released > released || (is_only_one && run.tally.released < released) {
                return Err(format!("{} counts {} released of {released}", order.id, run.tally.released));
            }
        }
        let numbers = self.world.office.peek_history().into_iter().map(|revision| revision.number);
        if !numbers.eq(1..=self.world.office.peek_history().len() as u64) {
            return Err("a revision of the configuration was put in force over another".to_owned());
        }
        for (book, entries, head) in self.world.office.peek_books() {
            let mut verification = Verification::of(book.clone());
            entries.iter().for_each(|entry| verification.read(entry));
            if let Some(broken) = verification.finish(head.as_ref()).first() {
                return Err(format!("the audit of {book} does not hold together: {broken:?}"));
            }
        }
        let fired = |at: &TimeMs| at.plus(DurationMs::from_secs(180)) <= self.world.clock.now();
        for (at, keys) in &self.windows {
            match self.deliveries(keys) {
                0 if fired(at) => {
                    return Err(format!("the window that was fired for at {at} has no delivery"));
                }
                2.. if !self.is_changed_before(*at) => {
                    return Err(format!("the window that was fired for at {at} has two deliveries"));
                }
                _ => {}
            }
        }
        self.check_suspensions_at_the_end()
    }

    /// Whether whoever fired at this time may have known less than was in force.
    fn is_changed_before(&self, at: TimeMs) -> bool {
        let (since, until) = (at.minus(LONGEST_BEHIND), at.plus(super::SKEW).plus(super::SKEW));
        let history = self.world.office.peek_history();
        history.iter().skip(1).any(|revision| since < revision.signed.at && revision.signed.at <= until)
    }
}

fn run_of(order: &Order) -> Option<&Run> {
    match &order.body {
        OrderBody::Redrive(run) => Some(run),
        _ => None,
    }
}
