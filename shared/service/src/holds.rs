//! Holds: placed and lifted by operators, read by the workers with the configuration.

use serde_json::json;
use waybill_domain::audit::{Act, Draft, Entry};
use waybill_domain::authority::Book;
use waybill_domain::destination::Destination;
use waybill_domain::hold::HoldRule;
use waybill_domain::order::{Hold, Order, OrderBody, OrderId};

use crate::acts::{ActError, Desk, MOST_TRIES, contended, noted};
use crate::config::Config;
use crate::office::{Entered, Office};
use crate::ports::{Clock, Dice, PortResult};

/// How many of a book's newest orders may not be listed as open yet.
const NEWEST: usize = 20;

/// What became of an act on a hold.
#[derive(Debug, Clone, PartialEq)]
pub enum HoldAct {
    /// It was done now.
    Done(Order),
    /// It had been done before.
    Already(Order),
}

/// Whose matter a hold is: a tenant's own where it touches nobody else.
pub fn book_of(rule: &HoldRule, config: &Config) -> Book {
    match rule {
        HoldRule::Tenant(tenant) => Book::Tenant(tenant.clone()),
        HoldRule::Type { tenant, .. } => Book::from(tenant.clone()),
        HoldRule::Destination(name) | HoldRule::Suspended(name) => {
            config.destinations.get(name).map_or(Book::Across, |destination| book_of_destination(destination))
        }
        HoldRule::All => Book::Across,
        HoldRule::Run { tenant, .. } => Book::from(tenant.clone()),
        HoldRule::Within { tenant, .. } => Book::Tenant(tenant.clone()),
    }
}

/// What an order's hold keeps back: all that its rule says, but for a tenant's own order nothing of others.
/// It goes on for that tenant when its destination comes to serve others, too, or is gone for a while.
pub fn bounded(rule: HoldRule, book: &Book, config: &Config) -> HoldRule {
    match book {
        Book::Tenant(tenant) if book_of(&rule, config) != *book => {
            HoldRule::Within { tenant: tenant.clone(), rule: Box::new(rule) }
        }
        _ => rule,
    }
}

/// Whose matter a destination is: its tenant's, where it serves one alone.
pub(crate) fn book_of_destination(destination: &Destination) -> Book {
    match destination.tenants.as_slice() {
        [tenant] => Book::Tenant(tenant.clone()),
        _ => Book::Across,
    }
}

impl<O: Office, C: Clock, D: Dice> Desk<'_, O, C, D> {
    /// Places a hold. The same hold twice is one.
    pub async fn place(&self, book: Book, rule: HoldRule, by: &str, why: &str) -> Result<HoldAct, ActError> {
        let placed = self.sign(by, why);
        let hold = Hold { rule: rule.clone(), placed: placed.clone(), lifted: None };
        let change = Order::place(self.new_id("hld")?, book.clone(), OrderBody::Hold(hold));
        let draft = Draft {
            book: book.clone(),
            at: placed.at,
            who: placed.by,
            act: Act::HoldAdded,
            subject: change.after.id.to_string(),
            why: Some(placed.why),
            details: json!({ "rule": rule }),
        };
        let chance = self.dice.token();
        for _ in 0..MOST_TRIES {
            // The head first: whoever places the same hold in the meantime moves it.
            let head = self.office.head(&book).await?;
            if let Some(order) = self.in_force(&book, &rule).await? {
                return Ok(HoldAct::Already(order));
            }
            let entry = Entry::after(head.as_ref(), draft.clone(), chance.as_str());
            match self.office.enter(&entry, Some(&change)).await? {
                Entered::Landed => {
                    noted(&entry);
                    return Ok(HoldAct::Done(change.after));
                }
                Entered::HeadMoved => {}
                Entered::Overtaken => {
                    return Err(ActError::Refused(format!("{} is there already", change.after.id)));
                }
            }
        }
        Err(contended().into())
    }

    /// The hold of this rule that is in force.
    async fn in_force(&self, book: &Book, rule: &HoldRule) -> PortResult<Option<Order>> {
        // The list of what is open may lag behind; that of the newest does not.
        let newest = self.office.orders(Some(book), NEWEST, None).await?.items;
        let mut known = self.office.open_orders_of(book).await?.into_iter().chain(newest);
        let is_same = |order: &Order| {
            order.is_open() && matches!(&order.body, OrderBody::Hold(hold) if hold.rule == *rule)
        };
        Ok(known.find(is_same))
    }

    /// Lifts a hold. What it kept back is released by the reconciler, earliest deadline first.
    pub async fn lift(&self, id: &OrderId, books: &[Book], by: &str, why: &str) -> Result<HoldAct, ActError> {
        loop {
            let order = self.find(id, books).await?;
            let Some((order, hold)) = order.and_then(|order| match order.body.clone() {
                OrderBody::Hold(hold) => Some((order, hold)),
                _ => None,
            }) else {
                return Err(ActError::Unknown(format!("there is no hold {id}")));
            };
            if hold.lifted.is_some() {
                return Ok(HoldAct::Already(order));
            }
            let lifted = self.sign(by, why);
            let draft = Draft {
                book: order.book.clone(),
                at: lifted.at,
                who: lifted.by.clone(),
                act: match hold.rule {
                    HoldRule::Suspended(_) => Act::SuspensionLifted,
                    _ => Act::HoldLifted,
                },
                subject: id.to_string(),
                why: Some(lifted.why.clone()),
                details: json!({ "rule": hold.rule }),
            };
            let change = order.becoming(OrderBody::Hold(Hold { lifted: Some(lifted), ..hold }));
            if self.enter(draft, Some(&change)).await? {
                return Ok(HoldAct::Done(change.after));
            }
        }
    }
}
