//! When the faults stop, what goes on then, and when a history is over.

use waybill_domain::order::{Order, OrderBody};
use waybill_domain::redrive::Standing;
use waybill_domain::time::TimeMs;

use crate::simulation::cast::Role;
use crate::simulation::plan::Theme;

use super::History;

impl History {
    /// The faults stop: holds are lifted (in half of the histories what is eased lets go first), indexes catch
    /// up, whoever stood still moves on.
    pub(super) fn calm_down(&mut self) {
        if self.is_calm {
            return;
        }
        self.chronicle.note(|| "the faults stop".to_owned());
        self.is_calm = true;
        self.auditor.calm();
        self.down_until = None;
        // Whoever is about to hold or to stop something gives up.
        self.players.retain(|player| !matches!(player.role, Role::Operator));
        self.read.iter_mut().for_each(|read| *read = None);
        for name in std::mem::take(&mut self.refusing) {
            self.mend(&name);
        }
        self.keeps_eased = self.lots.chance(50);
        self.let_everything_go();
        self.world.ledger.let_indexes_lag(false);
        self.players.iter_mut().for_each(|player| player.frozen_until = None);
    }

    /// Where everything has ended, operators may still come to act on what is dead.
    pub(super) fn has_more_to_try(&mut self) -> bool {
        let is_over = matches!(self.plan.theme, Theme::Usual | Theme::Crowded(_)) || self.idle_faults == 40;
        self.idle_faults += u32::from(!is_over);
        !is_over
    }

    /// A run that halted itself or has shown its sample waits for a person, who lets it go on, ten times at
    /// most. Whether there was one.
    pub(super) fn resume_what_stopped(&mut self) -> bool {
        let waits = |order: &Order| match &order.body {
            OrderBody::Redrive(run) => !run.is_finished() && run.standing != Standing::Running,
            _ => false,
        };
        if self.resumed == 10 || !self.world.office.peek_orders().iter().any(waits) {
            return false;
        }
        self.resumed += 1;
        self.let_everything_go();
        true
    }

    /// What was eased when the faults stopped is lifted when it has let everything go. Whether there was such.
    pub(super) fn lift_what_is_through(&mut self) -> bool {
        let is_eased = |order: &Order| order.is_open() && order.eased_to().is_some();
        if !self.keeps_eased || !self.auditor.is_through() {
            return false;
        }
        self.keeps_eased = false;
        if !self.world.office.peek_orders().iter().any(is_eased) {
            return false;
        }
        self.chronicle.count("eased, lifted when all was through");
        self.let_everything_go();
        true
    }

    fn let_everything_go(&mut self) {
        self.episodes += 1;
        let name = format!("operator.{}", self.episodes);
        let seed = self.lots.bits();
        self.world.let_everything_go(&name, seed, self.keeps_eased);
    }

    /// When the reconciler's round next has something to do.
    pub(super) fn next_round(&self, now: TimeMs) -> Option<TimeMs> {
        let is_to_do = |order: &Order| match &order.body {
            OrderBody::Redrive(run) => run.standing == Standing::Running,
            OrderBody::Ending(_) => order.is_open(),
            OrderBody::Hold(_) => false,
        };
        let is_suspension_to_do = || self.auditor.has_suspension_to_enter();
        let is_ordered = self.world.office.peek_orders().iter().any(is_to_do) || is_suspension_to_do();
        let ordered = is_ordered.then_some(now);
        let looked = self.world.ledger.next_look(now);
        [ordered, looked, self.auditor.next_window()].into_iter().flatten().min()
    }
}
