//! The desk at which an act is entered: its audit entry in its place, and its order beside it.

use thiserror::Error;
use waybill_domain::audit::{AUTOMATION, Act, Draft, Entry};
use waybill_domain::authority::Book;
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::ulid;
use waybill_domain::order::{Order, OrderBody, OrderChange, OrderId, Signed};

use crate::office::{Entered, Office};
use crate::ports::{Clock, Cursor, Dice, Page, PortError, PortResult};

/// How often a book's head may move under an act before it is given up.
pub(crate) const MOST_TRIES: usize = 32;

/// Where acts are entered.
#[derive(Debug, Clone, Copy)]
pub struct Desk<'a, O, C, D> {
    /// Orders and audit.
    pub office: &'a O,
    /// The time.
    pub clock: &'a C,
    /// Chance: identifiers.
    pub dice: &'a D,
}

/// Why an act was not entered, by what its operator does next.
#[derive(Debug, Error)]
pub enum ActError {
    /// Mend what was given.
    #[error("{0}")]
    Invalid(#[from] InvalidField),
    /// A rule refuses it; the sentence says which, and what would lift it.
    #[error("{0}")]
    Refused(String),
    /// There is nothing of that name, as far as the operator may know.
    #[error("{0}")]
    Unknown(String),
    /// The stores cannot be asked.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl<O: Office, C: Clock, D: Dice> Desk<'_, O, C, D> {
    /// A new order's identifier.
    pub fn new_id(&self, prefix: &str) -> Result<OrderId, InvalidField> {
        OrderId::parse(ulid(prefix, self.clock.now(), self.dice.token().as_str()))
    }

    /// Signs an act with the present time.
    pub fn sign(&self, by: &str, why: &str) -> Signed {
        Signed { by: by.to_owned(), at: self.clock.now(), why: why.to_owned() }
    }

    /// Signs an act of automation's.
    pub fn sign_automation(&self, why: &str) -> Signed {
        self.sign(AUTOMATION, why)
    }

    /// Enters an act, with the change of its order where it has one. `false` if the order was
    /// overtaken: load it and decide again.
    pub async fn enter(&self, draft: Draft, change: Option<&OrderChange>) -> PortResult<bool> {
        let chance = self.dice.token();
        for _ in 0..MOST_TRIES {
            let head = self.office.head(&draft.book).await?;
            let entry = Entry::after(head.as_ref(), draft.clone(), chance.as_str());
            match self.office.enter(&entry, change).await? {
                Entered::Landed => {
                    noted(&entry);
                    return Ok(true);
                }
                Entered::HeadMoved => {}
                Entered::Overtaken => return Ok(false),
            }
        }
        Err(contended())
    }

    /// Enters that an act was refused.
    pub async fn enter_refusal(&self, book: Book, by: &str, subject: &str, why: &str) -> PortResult<()> {
        let (act, who) = (Act::Refused, by.to_owned());
        let (subject, why, at) = (subject.to_owned(), Some(why.to_owned()), self.clock.now());
        let draft = Draft { book, at, who, act, subject, why, details: serde_json::Value::Null };
        self.enter(draft, None).await.map(|_| ())
    }

    /// An order by its identifier alone: in the books that the operator may see.
    /// Where several have one of that name (a plan is a file, and may have been edited), none is taken for
    /// the one that is meant.
    pub async fn find(&self, id: &OrderId, books: &[Book]) -> Result<Option<Order>, ActError> {
        let mut found: Option<Order> = None;
        for book in books {
            match (self.office.order(book, id).await?, &found) {
                (Some(other), Some(first)) => {
                    let fault = format!("{id} stands in the books of {} and of {}", first.book, other.book);
                    return Err(InvalidField::new("order", fault, "--tenant says whose is meant").into());
                }
                (Some(order), None) => found = Some(order),
                (None, _) => {}
            }
        }
        Ok(found)
    }
}

/// A book's head moved under an act as often as it was tried.
pub(crate) fn contended() -> PortError {
    PortError::AskLater { port: "ledger", cause: "the audit is being written by many at once".into() }
}

/// One line in the log for each act.
pub(crate) fn noted(entry: &Entry) {
    tracing::info!(
        audit_id = %entry.id, book = %entry.book, who = %entry.who, act = %entry.act,
        subject = %entry.subject, "act"
    );
}

/// How many orders are read at once.
const PAGE: usize = 100;

/// Every open order, of all books: for the functions, which carry them out.
pub async fn all_open<O: Office>(office: &O) -> PortResult<Vec<Order>> {
    let mut all = Vec::new();
    let mut from: Option<Cursor> = None;
    loop {
        let Page { items, next } = office.open_orders(PAGE, from.as_ref()).await?;
        all.extend(items.into_iter().filter(Order::is_open));
        from = next;
        if from.is_none() {
            return Ok(all);
        }
    }
}

/// Whether an order is about what its book is about. On AWS an operator of one tenant may write orders
/// of that tenant as they like: what such an order says of others is not believed.
pub fn is_within_its_book(order: &Order) -> bool {
    let about = match &order.body {
        // Nothing is believed of others here either: `holds::bounded` sees to it.
        OrderBody::Hold(_) => return true,
        OrderBody::Redrive(run) => run.selection.book(),
        OrderBody::Ending(ending) => Book::Tenant(ending.delivery.tenant.clone()),
    };
    let is_within = order.book == Book::Across || order.book == about;
    if !is_within {
        tracing::error!(order = %order.id, book = %order.book, %about, "an order beyond its book is not carried out");
    }
    is_within
}
