//! What operators come to do in a history, and when: holds, runs, endings, another configuration.

use std::num::NonZeroU32;

use waybill_domain::delivery::State;
use waybill_domain::destination::EventPattern;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::order::{Decision, Order, OrderBody};
use waybill_domain::redrive::{ReleaseRate, Reviews, Run, Selection, Standing};
use waybill_domain::time::DurationMs;
use waybill_service::redrive::orders::Start;

use super::history::History;
use super::world::{NEIGHBOUR, TENANT, event_type};

impl History {
    pub(super) fn hold_or_lift(&mut self) {
        let holds = self.open_orders(|body| matches!(body, OrderBody::Hold(_)));
        if let Some(hold) = self.lots.pick(&holds).cloned().filter(|_| self.lots.chance(60)) {
            return self.begin_command(|world, name, seed| world.operator_lifting(name, seed, hold));
        }
        let rule = match self.lots.below(4) {
            0 => HoldRule::All,
            1 => HoldRule::Tenant(self.any_tenant()),
            2 => HoldRule::Destination(self.any_destination()),
            _ => {
                let types = EventPattern::parse(event_type(true).as_str()).expect("a pattern");
                let tenant = self.lots.chance(50).then(|| self.any_tenant());
                HoldRule::Type { types, payload_version: None, tenant }
            }
        };
        self.chronicle.note(|| format!("an operator is about to hold {rule:?}"));
        self.begin_command(|world, name, seed| world.operator_holding(name, seed, rule));
    }

    /// Eases what is held, or one that is eased to another number, or holds everything again; where nothing is held,
    /// something is, as a whole.
    pub(super) fn ease(&mut self) {
        let holds = self.open_orders(|body| matches!(body, OrderBody::Hold(_)));
        let Some(hold) = self.lots.pick(&holds).cloned() else {
            let rule = match self.lots.below(5) {
                0..2 => HoldRule::All,
                2..4 => HoldRule::Destination(self.any_destination()),
                _ => HoldRule::Tenant(self.any_tenant()),
            };
            return self.begin_command(|world, name, seed| world.operator_holding(name, seed, rule));
        };
        if let Some(rule) = hold.hold_rule().filter(|_| hold.eased_to().is_some() && self.lots.chance(20)) {
            return self.begin_command(|world, name, seed| world.operator_holding(name, seed, rule));
        }
        let most = NonZeroU32::MIN.saturating_add(self.lots.below(3) as u32);
        self.chronicle.note(|| format!("an operator is about to ease {} to {most}", hold.id));
        self.begin_command(|world, name, seed| world.operator_easing(name, seed, hold, most));
    }

    pub(super) fn configure(&mut self) {
        self.settings = self.settings.changed(&mut self.lots);
        let document = self.settings.document();
        self.chronicle.fault("fault configuration changes", || format!("{:?}", self.settings));
        self.begin_command(|world, name, seed| world.operator_applying(name, seed, document));
    }

    /// Where there are dead letters, or now and then where there are none.
    pub(super) fn redrive(&mut self) {
        if self.any_in(State::DeadLettered).is_none() && !self.lots.chance(5) {
            return;
        }
        let tenant = (!self.lots.chance(25)).then(|| self.any_tenant());
        let destination = self.lots.chance(25).then(|| self.any_destination());
        let selection = Selection { tenant, destination, ..Selection::default() };
        let says = |lots: &mut crate::dice::Lots| lots.chance(50).then(|| "reviewed".to_owned());
        let reviews = Reviews {
            permanent: says(&mut self.lots),
            ambiguous: says(&mut self.lots),
            beyond_limit: says(&mut self.lots).filter(|_| self.lots.chance(30)),
        };
        let rate = *self.lots.pick(&["20/s", "1/s", "6/m"]).unwrap_or(&"1/s");
        let not_before = self.lots.chance(20).then(|| {
            let later = DurationMs::from_ms(self.lots.below(300_000));
            self.now().plus(later)
        });
        let start = Start {
            rate: ReleaseRate::parse("rate", rate).expect("a rate"),
            sample: self.lots.chance(25).then_some(1),
            not_before,
        };
        self.begin_command(|world, name, seed| {
            world.operator_redriving(name, seed, selection, reviews, start)
        });
    }

    /// Stops what runs, or lets what is stopped go on.
    pub(super) fn stop_or_resume(&mut self) {
        let runs = self.open_orders(|body| matches!(body, OrderBody::Redrive(_)));
        let Some(order) = self.lots.pick(&runs).cloned() else { return };
        let is_running = run_of(&order).is_some_and(|run| run.standing == Standing::Running);
        // Now and then what needs no stop or no resume is given one.
        match is_running != self.lots.chance(10) {
            true => self.begin_command(|world, name, seed| world.operator_stopping(name, seed, order)),
            false => self.begin_command(|world, name, seed| world.operator_resuming(name, seed, order)),
        }
    }

    /// The worst moment to stop a run: something was just released, or its claim is about to be made.
    pub(super) fn stop_at_the_worst_moment(&mut self, run: &str) {
        let Some(order) = self.world.office.peek_order(run) else { return };
        self.chronicle.fault("fault run stopped at the worst moment", || run.to_owned());
        self.begin_command(|world, name, seed| world.operator_stopping(name, seed, order));
    }

    pub(super) fn end_dead_letter(&mut self) {
        let Some(key) = self.any_in(State::DeadLettered) else { return };
        let decision = if self.lots.chance(50) { Decision::Close } else { Decision::Resolve };
        self.begin_command(|world, name, seed| world.operator_ending(name, seed, key, decision));
    }

    fn open_orders(&self, wanted: impl Fn(&OrderBody) -> bool) -> Vec<Order> {
        let mut open = self.world.office.peek_orders();
        open.retain(|order| order.is_open() && wanted(&order.body));
        open
    }

    fn any_tenant(&mut self) -> TenantId {
        TenantId::parse(if self.lots.chance(30) { NEIGHBOUR } else { TENANT }).expect("a tenant")
    }

    pub(super) fn any_destination(&mut self) -> DestinationName {
        let names: Vec<_> = self.plan.events.iter().filter_map(|p| p.event.destination.clone()).collect();
        self.lots.pick(&names).cloned().expect("every planned event names its destination")
    }
}

fn run_of(order: &Order) -> Option<&Run> {
    match &order.body {
        OrderBody::Redrive(run) => Some(run),
        _ => None,
    }
}
