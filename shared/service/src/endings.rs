//! Dead letters that a person ends: closed (nothing will be done), or resolved (the effect stands).
//!
//! The order is entered with its audit entry; [`carry_out`] then ends the delivery, as often as it is
//! asked to. On AWS the reconciler alone does that: operators never write a delivery.

use serde_json::json;
use waybill_domain::audit::{AUTOMATION, Act, Draft};
use waybill_domain::authority::Book;
use waybill_domain::delivery::Record;
use waybill_domain::identity::ulid;
use waybill_domain::order::{CameTo, Decision, EndingOrder, Order, OrderBody, OrderId};

use crate::acts::{ActError, Desk};
use crate::office::Office;
use crate::ports::{Clock, Dice, Ledger, PortResult};
use crate::steps::{Landing, MOST_ROUNDS, legal, write};

/// What became of the wish to end a dead letter.
#[derive(Debug, Clone, PartialEq)]
pub enum EndingAct {
    /// It was ordered now.
    Done(Order),
    /// The same had been ordered before.
    Already(Order),
}

impl EndingAct {
    /// The order as it stood then.
    pub fn order(&self) -> &Order {
        match self {
            EndingAct::Done(order) | EndingAct::Already(order) => order,
        }
    }
}

impl<O: Office, C: Clock, D: Dice> Desk<'_, O, C, D> {
    /// Orders that a dead letter be ended. The same order twice is one.
    pub async fn order_ending(
        &self,
        record: &Record,
        decision: Decision,
        by: &str,
        why: &str,
    ) -> Result<EndingAct, ActError> {
        if let Some(order) = self.ended(record, decision).await? {
            return Ok(EndingAct::Already(order));
        }
        let delivery = record.delivery.key();
        let (Some(reason), Some(ended_at)) = (record.dead_letter_reason(), record.ended_at) else {
            let state = record.state;
            let what = match record.disposition {
                Some(waybill_domain::ending::Disposition::Closed(_)) => "closed already".to_owned(),
                _ => state.to_string(),
            };
            let sentence = format!("{} is {what}: only a dead letter can be ended", delivery.delivery_id);
            return Err(ActError::Refused(sentence));
        };
        let signed = self.sign(by, why);
        let book = Book::Tenant(delivery.tenant.clone());
        let draft = Draft {
            book: book.clone(),
            at: signed.at,
            who: signed.by.clone(),
            act: match decision {
                Decision::Close => Act::Closed,
                Decision::Resolve => Act::Resolved,
            },
            subject: delivery.delivery_id.to_string(),
            why: Some(signed.why.clone()),
            details: json!({ "destination": record.delivery.destination, "reason": reason }),
        };
        let body = OrderBody::Ending(EndingOrder { delivery, ended_at, decision, signed, came_to: None });
        // One order for each dead letter, whoever gives it: of two at once the second finds the first.
        let id = OrderId::parse(ulid("end", ended_at, &record.delivery.key().to_string()))?;
        let change = Order::place(id.clone(), book.clone(), body);
        if self.enter(draft, Some(&change)).await? {
            return Ok(EndingAct::Done(change.after));
        }
        match self.office.order(&book, &id).await? {
            Some(order) if decided(&order) == Some(decision) => Ok(EndingAct::Already(order)),
            _ => Err(ActError::Refused(format!("{id} decided on it already, in another way"))),
        }
    }

    /// The order by which this dead letter was ended so.
    async fn ended(&self, record: &Record, decision: Decision) -> PortResult<Option<Order>> {
        let Some(id) = &record.ended_by else { return Ok(None) };
        let book = Book::Tenant(record.delivery.tenant.clone());
        Ok(self.office.order(&book, id).await?.filter(|order| decided(order) == Some(decision)))
    }
}

/// What an order decided.
fn decided(order: &Order) -> Option<Decision> {
    match &order.body {
        OrderBody::Ending(ending) => Some(ending.decision),
        _ => None,
    }
}

/// Carries an order to end a dead letter out. Where it was none any more, the audit says so, too: its
/// entry of the order must not be taken for what became of the delivery.
pub async fn carry_out<L: Ledger, O: Office, C: Clock, D: Dice>(
    ledger: &L,
    desk: &Desk<'_, O, C, D>,
    order: &Order,
) -> PortResult<()> {
    let OrderBody::Ending(ending) = &order.body else { return Ok(()) };
    let came_to = end(ledger, desk.clock, order, ending).await?;
    let Some(came_to) = came_to else { return Ok(()) };
    let done = OrderBody::Ending(EndingOrder { came_to: Some(came_to), ..ending.clone() });
    let change = order.becoming(done);
    // Somebody else may have noted the same.
    if came_to == CameTo::Done {
        return desk.office.progress(&change).await.map(|_| ());
    }
    let draft = Draft {
        book: order.book.clone(),
        at: desk.clock.now(),
        who: AUTOMATION.to_owned(),
        act: Act::NothingEnded,
        subject: ending.delivery.delivery_id.to_string(),
        why: Some("it was not that dead letter any more: it was released or ended meanwhile".to_owned()),
        details: json!({ "order": order.id }),
    };
    desk.enter(draft, Some(&change)).await.map(|_| ())
}

/// `None` where the record keeps changing: it is tried again.
async fn end<L: Ledger, C: Clock>(
    ledger: &L,
    clock: &C,
    order: &Order,
    ending: &EndingOrder,
) -> PortResult<Option<CameTo>> {
    let Some(record) = ledger.load(&ending.delivery).await? else { return Ok(Some(CameTo::NoDeadLetter)) };
    let mut current = Box::new(record);
    for _ in 0..MOST_ROUNDS {
        if current.ended_by.as_ref() == Some(&order.id) {
            return Ok(Some(CameTo::Done));
        }
        // Released and failed again since: that is another dead letter than the one that was decided on.
        let is_meant = current.dead_letter_reason().is_some() && current.ended_at == Some(ending.ended_at);
        if !is_meant {
            return Ok(Some(CameTo::NoDeadLetter));
        }
        let change = legal(current.end_by_order(order.id.clone(), ending.decision, clock.now()))?;
        match write(ledger, &change, |stored| stored.ended_by.as_ref() == Some(&order.id)).await? {
            Landing::Landed(after) => {
                crate::notes::decision(&after);
                return Ok(Some(CameTo::Done));
            }
            Landing::Lost(Some(stored)) => current = stored,
            Landing::Lost(None) => return Ok(Some(CameTo::NoDeadLetter)),
        }
    }
    Ok(None)
}
