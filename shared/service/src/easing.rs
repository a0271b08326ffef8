//! Eased holds: what they keep back may go, so many requests at once to each destination.
//!
//! A hold is eased by a cap on the budgets of the destinations that it keeps back as a whole. Where it keeps
//! back a part (a tenant's of a destination that serves others, too) it goes on to hold: a cap there would be on
//! what it does not hold. It goes on to hold, too, what is for no configured destination: that would end as soon
//! as it went.

use std::collections::BTreeMap;

use waybill_domain::authority::Book;
use waybill_domain::budget::Budget;
use waybill_domain::hold::{HoldRule, Share};
use waybill_domain::identity::DestinationName;
use waybill_domain::order::Order;
use waybill_domain::redrive::Resumed;

use crate::config::Config;
use crate::holds::bounded;

/// What becomes of a rule when its hold is eased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Easing {
    /// The destinations to which it lets go; none where the rule keeps back no configured one as a whole.
    pub lets_go: Vec<DestinationName>,
    /// What goes on to be held of configured destinations.
    pub keeps: Vec<HoldRule>,
    /// All that goes on to be held.
    pub rest: HoldRule,
}

impl Easing {
    /// Of the hold of this rule in this book.
    pub fn of(rule: &HoldRule, book: &Book, config: &Config) -> Self {
        let rule = bounded(rule.clone(), book, config);
        let (mut lets_go, mut keeps) = (Vec::new(), Vec::new());
        for (name, destination) in &config.destinations {
            match rule.share_of(name, &destination.tenants) {
                Share::Nothing => {}
                Share::Part => keeps.push(rule.at(name)),
                Share::Whole => lets_go.push(name.clone()),
            }
        }
        if lets_go.is_empty() {
            keeps = vec![rule.clone()];
        }
        let rest = HoldRule::Elsewhere { rule: Box::new(rule), than: lets_go.clone() };
        Self { lets_go, keeps, rest }
    }
}

/// What open orders say of what may go.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Said {
    /// The holds in force.
    pub(crate) holds: Vec<HoldRule>,
    /// The budgets that stand instead of destinations' own.
    pub(crate) eased: BTreeMap<DestinationName, Budget>,
    /// The runs that go on.
    pub(crate) resumed: Vec<Resumed>,
}

impl Said {
    /// By these open orders, under this configuration.
    pub(crate) fn by<'a>(open: impl IntoIterator<Item = &'a Order>, config: &Config) -> Self {
        let mut said = Self::default();
        for order in open {
            said.resumed.extend(order.resumed());
            match (order.hold_rule(), order.eased_to()) {
                (Some(rule), Some(concurrency)) => {
                    said.ease(Easing::of(&rule, &order.book, config), concurrency, config);
                }
                (Some(rule), None) => said.holds.push(bounded(rule, &order.book, config)),
                (None, _) => {}
            }
        }
        said
    }

    /// Of several that ease a destination, the least counts.
    fn ease(&mut self, easing: Easing, concurrency: u32, config: &Config) {
        self.holds.push(easing.rest);
        for name in easing.lets_go {
            let own = config.destinations.get(&name).and_then(|destination| destination.budget);
            let so_far = self.eased.get(&name).copied().or(own);
            self.eased.insert(name, Budget::at_most(so_far, concurrency));
        }
    }
}
