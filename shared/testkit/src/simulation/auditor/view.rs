//! What processes know of what may go: worked out from the orders as `docs/decisions/0017-eased-holds.md` says it,
//! and not by the code under test.

use std::collections::BTreeMap;
use std::sync::Arc;

use waybill_domain::delivery::Record;
use waybill_domain::destination::Destination;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::DestinationName;
use waybill_domain::order::{Order, OrderId};
use waybill_domain::time::TimeMs;
use waybill_service::config::Config;

use super::Auditor;

/// What is held, and how far that is eased, for whoever read the orders at one moment.
#[derive(Debug, Default)]
pub struct View {
    keepers: Vec<Keeper>,
    /// How many requests at once each destination may have that has a budget or is eased.
    most: BTreeMap<DestinationName, u32>,
}

#[derive(Debug)]
struct Keeper {
    order: OrderId,
    rule: HoldRule,
    /// It is eased, and these it keeps back no more.
    lets_go: Vec<DestinationName>,
}

impl View {
    fn of(orders: &[Order], config: &Config) -> Self {
        let mut view = Self::default();
        for destination in config.destinations.values() {
            let own = destination.budget.map(|budget| (destination.name.clone(), budget.concurrency));
            view.most.extend(own);
        }
        for order in orders {
            let Some(rule) = order.hold_rule() else { continue };
            let mut lets_go = Vec::new();
            if let Some(eased_to) = order.eased_to() {
                let whole = config.destinations.values().filter(|destination| is_whole(&rule, destination));
                lets_go.extend(whole.map(|destination| destination.name.clone()));
                for name in &lets_go {
                    let most = view.most.entry(name.clone()).or_insert(eased_to);
                    *most = eased_to.min(*most);
                }
            }
            view.keepers.push(Keeper { order: order.id.clone(), rule, lets_go });
        }
        view
    }

    /// What keeps a delivery back, if anything does, and whether that is eased.
    pub(super) fn keeper_of(&self, record: &Record) -> Option<(&OrderId, bool)> {
        let keeps = |keeper: &&Keeper| {
            !keeper.lets_go.contains(&record.delivery.destination) && keeper.rule.matches(record)
        };
        self.keepers.iter().find(keeps).map(|keeper| (&keeper.order, !keeper.lets_go.is_empty()))
    }

    /// How many requests at once a destination may have; any number where `None`.
    pub(super) fn most_at(&self, destination: &DestinationName) -> Option<u32> {
        self.most.get(destination).copied()
    }

    /// Whether an eased hold lets go to it.
    pub(super) fn is_eased(&self, destination: &DestinationName) -> bool {
        self.keepers.iter().any(|keeper| keeper.lets_go.contains(destination))
    }
}

/// Whether nothing goes to a destination that the rule does not keep back.
fn is_whole(rule: &HoldRule, destination: &Destination) -> bool {
    match rule {
        HoldRule::All => true,
        HoldRule::Destination(name) => *name == destination.name,
        HoldRule::Tenant(tenant) => destination.tenants == [tenant.clone()],
        _ => false,
    }
}

/// What somebody goes by for as long as it is at work.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) view: Arc<View>,
    pub(super) began_at: TimeMs,
    /// A call of its failed, or its answer was lost.
    pub(super) is_harmed: bool,
}

impl Auditor {
    /// What whoever reads the orders now knows.
    pub fn view(&mut self) -> Arc<View> {
        let writes = self.world.office.writes();
        if let Some((at, view)) = &self.last_view
            && *at == writes
        {
            return view.clone();
        }
        let view = Arc::new(View::of(&self.world.office.peek_orders(), &self.world.config()));
        self.last_view = Some((writes, view.clone()));
        view
    }

    /// Somebody begins, and goes by what it knows until it is done.
    pub fn knows(&mut self, actor: &str, view: Arc<View>) {
        self.known.insert(actor.to_owned(), Known { view, began_at: self.now(), is_harmed: false });
    }

    pub(super) fn view_of(&self, actor: &str) -> Option<&View> {
        self.known.get(actor).map(|known| &*known.view)
    }
}
