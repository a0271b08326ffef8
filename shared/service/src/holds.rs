//! Holds: placed and lifted by operators, read by the workers with the configuration.

use std::num::NonZeroU32;

use serde_json::{Value, json};
use waybill_domain::audit::{Act, Draft, Entry};
use waybill_domain::authority::Book;
use waybill_domain::destination::Destination;
use waybill_domain::hold::HoldRule;
use waybill_domain::order::{Eased, Hold, Order, OrderBody, OrderId, Signed};

use crate::acts::{ActError, Desk, MOST_TRIES, contended, noted};
use crate::config::Config;
use crate::easing::Easing;
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
        // Across, so that a tenant's own order is bounded to that tenant.
        HoldRule::All | HoldRule::Newer(_) => Book::Across,
        HoldRule::Run { tenant, .. } => Book::from(tenant.clone()),
        HoldRule::Within { tenant, .. } => Book::Tenant(tenant.clone()),
        HoldRule::Elsewhere { rule, .. } => book_of(rule, config),
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
    /// Places a hold. The same hold twice is one; an eased one holds everything again.
    pub async fn place(&self, book: Book, rule: HoldRule, by: &str, why: &str) -> Result<HoldAct, ActError> {
        let placed = self.sign(by, why);
        let hold = Hold { rule: rule.clone(), placed: placed.clone(), eased: None, lifted: None };
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
            if let Some((order, standing)) = self.in_force(&book, &rule).await? {
                if standing.eased.is_none() {
                    return Ok(HoldAct::Already(order));
                }
                let placed = self.sign(by, why);
                let whole = Hold { placed: placed.clone(), eased: None, ..standing };
                match self.change(&order, whole, Act::HoldAdded, placed).await? {
                    Some(order) => return Ok(HoldAct::Done(order)),
                    None => continue,
                }
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
    async fn in_force(&self, book: &Book, rule: &HoldRule) -> PortResult<Option<(Order, Hold)>> {
        // The list of what is open may lag behind; that of the newest does not.
        let newest = self.office.orders(Some(book), NEWEST, None).await?.items;
        let known = self.office.open_orders_of(book).await?.into_iter().chain(newest);
        for listed in known.filter(|order| hold_of(order).is_some_and(|hold| hold.rule == *rule)) {
            // Listed as it was: it may have been eased or lifted since.
            let Some(order) = self.office.order(book, &listed.id).await? else { continue };
            if let Some(hold) = hold_of(&order).filter(|hold| hold.lifted.is_none()) {
                return Ok(Some((order, hold)));
            }
        }
        Ok(None)
    }

    /// Lifts a hold. What it kept back is released by the reconciler, earliest deadline first.
    pub async fn lift(&self, id: &OrderId, books: &[Book], by: &str, why: &str) -> Result<HoldAct, ActError> {
        loop {
            let (order, hold) = self.hold(id, books).await?;
            if hold.lifted.is_some() {
                return Ok(HoldAct::Already(order));
            }
            let act = match hold.rule {
                HoldRule::Suspended(_) => Act::SuspensionLifted,
                _ => Act::HoldLifted,
            };
            let signed = self.sign(by, why);
            let lifted = Hold { lifted: Some(signed.clone()), ..hold };
            if let Some(order) = self.change(&order, lifted, act, signed).await? {
                return Ok(HoldAct::Done(order));
            }
        }
    }

    /// Eases a hold: what it keeps back may go, `concurrency` requests at once to each destination (1 at least).
    /// To ease it again is to change that; to lift it ends it.
    pub async fn ease(
        &self,
        id: &OrderId,
        books: &[Book],
        concurrency: NonZeroU32,
        config: &Config,
        by: &str,
        why: &str,
    ) -> Result<HoldAct, ActError> {
        let concurrency = concurrency.get();
        loop {
            let (order, hold) = self.hold(id, books).await?;
            if let Some(refused) = not_to_be_eased(&order, &hold, config) {
                return Err(ActError::Refused(refused));
            }
            if hold.eased.as_ref().is_some_and(|eased| eased.concurrency == concurrency) {
                return Ok(HoldAct::Already(order));
            }
            let signed = self.sign(by, why);
            let eased = Hold { eased: Some(Eased { concurrency, signed: signed.clone() }), ..hold };
            // An act of its own would be one that an older version cannot read, and no book goes on behind an
            // entry that cannot be read.
            if let Some(order) = self.change(&order, eased, Act::HoldLifted, signed).await? {
                return Ok(HoldAct::Done(order));
            }
        }
    }

    async fn hold(&self, id: &OrderId, books: &[Book]) -> Result<(Order, Hold), ActError> {
        let order = self.find(id, books).await?;
        let found = order.and_then(|order| hold_of(&order).map(|hold| (order, hold)));
        found.ok_or_else(|| ActError::Unknown(format!("there is no hold {id}")))
    }

    /// Enters that a hold becomes another. `None` if it was overtaken: load it and decide again.
    async fn change(&self, order: &Order, hold: Hold, act: Act, signed: Signed) -> PortResult<Option<Order>> {
        let draft = Draft {
            book: order.book.clone(),
            at: signed.at,
            who: signed.by,
            act,
            subject: order.id.to_string(),
            why: Some(signed.why),
            details: details(&hold),
        };
        let change = order.becoming(OrderBody::Hold(hold));
        Ok(self.enter(draft, Some(&change)).await?.then_some(change.after))
    }
}

/// What an entry says beside its reason: what is held, and where it is eased and not lifted, to how much.
fn details(hold: &Hold) -> Value {
    match &hold.eased {
        Some(eased) if hold.lifted.is_none() => {
            json!({ "rule": hold.rule, "concurrency": eased.concurrency })
        }
        _ => json!({ "rule": hold.rule }),
    }
}

/// Why a hold cannot be eased, if it cannot, and what can be done instead.
fn not_to_be_eased(order: &Order, hold: &Hold, config: &Config) -> Option<String> {
    let id = &order.id;
    if hold.lifted.is_some() {
        return Some(format!("{id} was lifted already, and keeps nothing back: place it anew to ease it"));
    }
    if let HoldRule::Suspended(name) = &hold.rule {
        return Some(format!(
            "{id} is the suspension of {name}, whose probes let one delivery go at a time: wait for one that \
             succeeds, or lift it without --concurrency"
        ));
    }
    Easing::of(&hold.rule, &order.book, config).lets_go.is_empty().then(|| {
        format!(
            "{id} keeps back no configured destination as a whole, and a limit would be on what it does not keep \
             back, too: hold the destination instead, lift this one, and then ease that"
        )
    })
}

fn hold_of(order: &Order) -> Option<Hold> {
    match &order.body {
        OrderBody::Hold(hold) => Some(hold.clone()),
        _ => None,
    }
}
