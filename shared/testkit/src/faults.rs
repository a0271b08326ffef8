//! Fault points: a port call can be stopped before it and after it, made to fail, or made twice.
//!
//! An [`Actor`] is a use case as a future that is polled by hand. Every port it is given is
//! [`Staged`]: the future stands still before and after each call, and whoever polls it chooses
//! what happens there. To drop it there is a crash: before the effect, or after the effect and
//! before its answer was seen.
//!
//! A stage that nobody drives stands still nowhere: its process dies after so many calls
//! ([`Stage::dies_after`]), takes its time ([`Stage::slow`]) or is overtaken ([`Stage::overtaken`]).

mod actor;
mod life;
mod staged;
mod staged_office;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use waybill_domain::time::DurationMs;

pub use actor::{Actor, Progress};
use life::{Life, Moment};
pub use staged::Staged;

use crate::clock::VirtualClock;

macro_rules! calls {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The calls that ports offer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Call { $($(#[$doc])* $variant,)* }

        impl Call {
            /// Every call.
            pub const ALL: &[Call] = &[$(Call::$variant,)*];

            /// The call as traces write it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Call::$variant => $name,)* }
            }
        }
    };
}

calls! {
    /// `Ledger::create`
    Create = "create",
    /// `Ledger::load`
    Load = "load",
    /// `Ledger::payload`
    Payload = "payload",
    /// `Ledger::apply`
    Apply = "apply",
    /// `Ledger::add_attempt`
    AddAttempt = "add_attempt",
    /// `Ledger::attempts`
    Attempts = "attempts",
    /// `Ledger::due_for_look`
    DueForLook = "due_for_look",
    /// `Ledger::held_destinations`
    HeldDestinations = "held_destinations",
    /// `Ledger::held`
    Held = "held",
    /// `Budgets::usage`
    Usage = "usage",
    /// `Budgets::set_usage`
    SetUsage = "set_usage",
    /// `Queue::send`
    Send = "send",
    /// `Queue::bury`
    Bury = "bury",
    /// `Inbox::receive`
    Receive = "receive",
    /// `Inbox::acknowledge`
    Acknowledge = "acknowledge",
    /// `Inbox::hide_until`
    HideUntil = "hide_until",
    /// `Inbox::next_visible_at`
    NextVisibleAt = "next_visible_at",
    /// `Catalogue::list`
    List = "list",
    /// `Catalogue::find`
    Find = "find",
    /// `Catalogue::dead_letter_summary`
    DeadLetterSummary = "dead_letter_summary",
    /// `Catalogue::dead_letters`
    DeadLetters = "dead_letters",
    /// `DeadLetterBox::take`
    TakeDeadLetters = "take_dead_letters",
    /// `DeadLetterBox::remove`
    RemoveDeadLetter = "remove_dead_letter",
    /// `DeadLetterBox::show`
    ShowDeadLetter = "show_dead_letter",
    /// `Office::head`
    Head = "head",
    /// `Office::enter`
    Enter = "enter",
    /// `Office::progress`
    Progress = "progress",
    /// `Office::order`
    ReadOrder = "order",
    /// `Office::open_orders`
    OpenOrders = "open_orders",
    /// `Office::orders`
    Orders = "orders",
    /// `Office::entries`
    Entries = "entries",
    /// `Office::books`
    Books = "books",
    /// `Revisions::in_force`
    InForce = "in_force",
    /// `Revisions::document`
    Document = "document",
    /// `Revisions::install`
    Install = "install",
    /// `Revisions::history`
    History = "history",
    /// `Recipient::send`
    Request = "request",
    /// `Recipient::look_up`
    LookUp = "look_up",
}

/// Before a call's effect, or after it and before its answer is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Nothing happened yet.
    Before,
    /// It happened, and the actor does not know yet.
    After,
}

/// Where an actor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// At which call.
    pub call: Call,
    /// On which side of it.
    pub side: Side,
}

/// What is done with the call that an actor stands before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// It is made.
    #[default]
    Go,
    /// It fails without an effect: ask later.
    FailBefore,
    /// It has its effect, and its answer is lost: ask later.
    FailAfter,
    /// It is made twice, and the second answer is the one that is seen, as when a store's client
    /// repeats a write of its own whose answer it lost.
    Twice,
}

/// What an actor and whoever drives it share, or what the ports of one undriven process share.
#[derive(Debug, Clone, Default)]
pub struct Stage {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    place: Option<Place>,
    order: Order,
    calls: BTreeMap<Call, usize>,
    /// None: whoever polls the actor drives it.
    life: Option<Life>,
}

impl Stage {
    /// Nobody drives it: so many calls go through, and from then on every port is silent ("ask later").
    /// A recipient's calls count, and go through nevertheless.
    pub fn dies_after(calls: usize) -> Self {
        Self::living(Life::of(calls))
    }

    /// Nobody drives it: every call goes through, and takes so long before it has its effect.
    pub fn slow(clock: &VirtualClock, each: DurationMs) -> Self {
        Self::living(Life { pace: Some((clock.clone(), each)), ..Life::of(usize::MAX) })
    }

    /// Nobody drives it: every call goes through, and somebody else is quicker once, right before the
    /// first `call`.
    pub fn overtaken(call: Call, by: impl FnOnce() + Send + 'static) -> Self {
        Self::overtaken_at(Moment::Before(call), by)
    }

    /// The same, once so many calls were made.
    pub fn overtaken_after(calls: usize, by: impl FnOnce() + Send + 'static) -> Self {
        Self::overtaken_at(Moment::After(calls), by)
    }

    fn overtaken_at(moment: Moment, by: impl FnOnce() + Send + 'static) -> Self {
        Self::living(Life { meanwhile: Some((moment, Box::new(by))), ..Life::of(usize::MAX) })
    }

    fn living(life: Life) -> Self {
        let shared = Shared { life: Some(life), ..Shared::default() };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    /// Whether all its calls are spent: a process that dies is dead from here on.
    pub fn is_over(&self) -> bool {
        self.shared().life.as_ref().is_some_and(|life| life.left == 0)
    }

    /// How often a call was made so far.
    pub fn calls(&self, call: Call) -> usize {
        self.shared().calls.get(&call).copied().unwrap_or_default()
    }

    /// Where the actor stands, if it stands at a fault point.
    pub fn place(&self) -> Option<Place> {
        self.shared().place
    }

    /// What is to be done with the call that the actor stands before.
    pub fn order(&self, order: Order) {
        self.shared().order = order;
    }

    pub(crate) async fn before(&self, call: Call) -> Order {
        *self.shared().calls.entry(call).or_default() += 1;
        if let Some(order) = self.live(call) {
            return order;
        }
        self.stand(Place { call, side: Side::Before }).await;
        std::mem::take(&mut self.shared().order)
    }

    pub(crate) async fn after(&self, call: Call) {
        if self.shared().life.is_some() {
            return;
        }
        self.stand(Place { call, side: Side::After }).await;
    }

    /// What becomes of a call where nobody drives. None: somebody does.
    fn live(&self, call: Call) -> Option<Order> {
        let (order, meanwhile) = {
            let mut shared = self.shared();
            let life = shared.life.as_mut()?;
            (life.spend(), life.overtaken_at(call))
        };
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        Some(order)
    }

    async fn stand(&self, place: Place) {
        self.shared().place = Some(place);
        YieldOnce { yielded: false }.await;
        self.shared().place = None;
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pending once, and ready to be polled again at once.
struct YieldOnce {
    yielded: bool,
}

impl Future for YieldOnce {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
