//! Orders: what operators (and automation on their behalf) decided, for the workers to carry out.
//!
//! An operator never writes a delivery. An order is written with its audit entry, and the reconciler
//! carries it out, as often as it is asked to.

use serde::{Deserialize, Serialize};

use crate::authority::Book;
use crate::fault::InvalidField;
use crate::hold::HoldRule;
use crate::identity::DeliveryKey;
use crate::redrive::{Resumed, Run};
use crate::time::TimeMs;

/// An order's identifier: `hld_`, `rdr_` or `end_`, and a ULID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OrderId(String);

impl OrderId {
    /// Takes the text if it is one.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidField> {
        let text = text.into();
        let digits = ["hld_", "rdr_", "end_"].into_iter().find_map(|prefix| text.strip_prefix(prefix));
        let good = |digits: &str| {
            digits.len() == 26 && digits.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
        };
        if digits.is_some_and(good) {
            return Ok(Self(text));
        }
        let rule = "hld_, rdr_ or end_ and 26 digits";
        Err(InvalidField::new("order", "is not the ID of a hold, a run or a decision", rule))
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for OrderId {
    type Error = InvalidField;
    fn try_from(text: String) -> Result<Self, InvalidField> {
        Self::parse(text)
    }
}

impl From<OrderId> for String {
    fn from(id: OrderId) -> String {
        id.0
    }
}

impl std::fmt::Display for OrderId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// One order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Which one.
    pub id: OrderId,
    /// Whose matter it is.
    pub book: Book,
    /// Counts the writes; every change compares it. The first is 1.
    pub revision: u64,
    /// What is ordered, and how far that has come.
    pub body: OrderBody,
}

/// What is ordered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderBody {
    /// To keep deliveries from going.
    Hold(Hold),
    /// To release dead letters.
    Redrive(Box<Run>),
    /// To end a dead letter.
    Ending(EndingOrder),
}

/// Who did something, when, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// Who: an operator's name, or automation.
    pub by: String,
    /// When.
    #[serde(with = "crate::time::rfc3339")]
    pub at: TimeMs,
    /// Why.
    pub why: String,
}

/// A hold that was placed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// What it keeps back.
    pub rule: HoldRule,
    /// Who placed it.
    pub placed: Signed,
    /// Who let some of it go, and how much; `None` while it keeps all of it back. A version that does not know
    /// this goes on to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eased: Option<Eased>,
    /// Who lifted it; `None` while it is in force.
    pub lifted: Option<Signed>,
}

/// How far a hold is eased: what it keeps back may go, so many requests at once to each destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eased {
    /// How many requests at once; a destination's own budget counts where it is less.
    pub concurrency: u32,
    /// Who eased it.
    pub signed: Signed,
}

/// How a person ends a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Nothing will be done.
    Close,
    /// The effect is known to stand.
    Resolve,
}

/// An order to end one dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndingOrder {
    /// Which delivery.
    pub delivery: DeliveryKey,
    /// Which dead letter of it: the one that ended then.
    #[serde(with = "crate::time::rfc3339")]
    pub ended_at: TimeMs,
    /// How.
    pub decision: Decision,
    /// Who decided.
    pub signed: Signed,
    /// What became of it; `None` until the reconciler has carried it out.
    pub came_to: Option<CameTo>,
}

/// What became of an order to end a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CameTo {
    /// It was done.
    Done,
    /// The delivery was no dead letter any more: nothing was done.
    NoDeadLetter,
}

/// The change of an order, to be made only if what is stored has the expected revision.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderChange {
    /// The stored revision; `None` where there must be no such order yet.
    pub expected: Option<u64>,
    /// The order as it will be.
    pub after: Order,
}

impl Order {
    /// A new order.
    pub fn place(id: OrderId, book: Book, body: OrderBody) -> OrderChange {
        OrderChange { expected: None, after: Self { id, book, revision: 1, body } }
    }

    /// The same order with another body.
    pub fn becoming(&self, body: OrderBody) -> OrderChange {
        let after = Self { revision: self.revision + 1, body, ..self.clone() };
        OrderChange { expected: Some(self.revision), after }
    }

    /// Whether there is still something to be carried out or kept in force.
    pub fn is_open(&self) -> bool {
        match &self.body {
            OrderBody::Hold(hold) => hold.lifted.is_none(),
            OrderBody::Redrive(run) => !run.is_finished(),
            OrderBody::Ending(ending) => ending.came_to.is_none(),
        }
    }

    /// The hold that it means for deliveries, if it means one: of its own, or of a stopped run. A
    /// suspension's order only shows it: what it keeps back is decided in its destination's budget. An eased
    /// one is answered as if it were not: how far it is eased says [`Order::eased_to`].
    pub fn hold_rule(&self) -> Option<HoldRule> {
        match &self.body {
            OrderBody::Hold(Hold { rule: HoldRule::Suspended(_), .. }) => None,
            OrderBody::Hold(hold) if hold.lifted.is_none() => Some(hold.rule.clone()),
            OrderBody::Redrive(run) if run.holds_what_it_released() => {
                Some(HoldRule::Run { run: self.id.to_string(), tenant: self.book.tenant().cloned() })
            }
            _ => None,
        }
    }

    /// How many requests at once may go of what [`Order::hold_rule`] keeps back, where its hold is eased.
    pub fn eased_to(&self) -> Option<u32> {
        match &self.body {
            OrderBody::Hold(hold) => hold.eased.as_ref().map(|eased| eased.concurrency),
            _ => None,
        }
    }

    /// What whoever lifts must know of it, if it is a run that goes on after a stop.
    pub fn resumed(&self) -> Option<Resumed> {
        match &self.body {
            OrderBody::Redrive(run) if !run.holds_what_it_released() => {
                Resumed::of(&self.id, self.book.tenant(), run)
            }
            _ => None,
        }
    }
}
