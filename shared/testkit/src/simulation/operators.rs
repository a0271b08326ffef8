//! What operators do, as actors: each act a future over staged ports, which may die at any call.

use std::future::Future;
use std::num::NonZeroU32;
use std::sync::Arc;

use waybill_domain::address::Locality;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::DeliveryKey;
use waybill_domain::order::{Decision, Hold, Order, OrderBody};
use waybill_domain::redrive::{Reviews, Selection};
use waybill_service::acts::Desk;
use waybill_service::config::Config;
use waybill_service::holds::book_of;
use waybill_service::ports::{Clock, Ledger};
use waybill_service::redrive::orders::Start;
use waybill_service::redrive::plan::{Wish, plan};

use crate::clock::SkewedClock;
use crate::dice::SeededDice;
use crate::faults::{Actor, Stage, Staged};
use crate::memory::{MemoryLedger, MemoryOffice};

use super::world::World;

/// What one command has to work with.
struct Command {
    ledger: Staged<MemoryLedger>,
    office: Staged<MemoryOffice>,
    clock: SkewedClock,
    dice: SeededDice,
    config: Arc<Config>,
    who: String,
}

impl Command {
    fn desk(&self) -> Desk<'_, Staged<MemoryOffice>, SkewedClock, SeededDice> {
        Desk { office: &self.office, clock: &self.clock, dice: &self.dice }
    }
}

/// Why, of every act of a history.
const WHY: &str = "the history says so";

impl World {
    /// A command of the operator `name`. What it answers is nobody's: it shows in what it wrote.
    fn command<F>(&self, name: &str, seed: u64, act: impl FnOnce(Command) -> F) -> Actor
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stage = Stage::default();
        let command = Command {
            ledger: Staged::new(self.ledger.clone(), &stage),
            office: Staged::new(self.office.clone(), &stage),
            clock: self.right_clock(),
            dice: SeededDice::new(name, seed),
            config: self.config(),
            who: name.to_owned(),
        };
        Actor::new(name, stage, act(command))
    }

    /// `hold add`
    pub fn operator_holding(&self, name: &str, seed: u64, rule: HoldRule) -> Actor {
        self.command(name, seed, |command| async move {
            let book = book_of(&rule, &command.config);
            let _ = command.desk().place(book, rule, &command.who, WHY).await;
        })
    }

    /// `hold lift`
    pub fn operator_lifting(&self, name: &str, seed: u64, hold: Order) -> Actor {
        self.command(name, seed, |command| async move {
            let _ = command.desk().lift(&hold.id, &[hold.book], &command.who, WHY).await;
        })
    }

    /// `hold lift --concurrency`
    pub fn operator_easing(&self, name: &str, seed: u64, hold: Order, most: NonZeroU32) -> Actor {
        self.command(name, seed, |command| async move {
            let (books, config) = ([hold.book], &command.config);
            let _ = command.desk().ease(&hold.id, &books, most, config, &command.who, WHY).await;
        })
    }

    /// `redrive plan`, then `redrive start` of what it planned.
    pub fn operator_redriving(
        &self,
        name: &str,
        seed: u64,
        selection: Selection,
        reviews: Reviews,
        start: Start,
    ) -> Actor {
        self.command(name, seed, |command| async move {
            let Ok(run) = command.desk().new_id("rdr") else { return };
            let wish = Wish { run, by: command.who.clone(), selection, reviews };
            let now = command.clock.now();
            let Ok(plan) = plan(&command.ledger, &command.config, wish, now).await else { return };
            // A command that was not answered is given again.
            for _ in 0..2 {
                if command.desk().start(&plan, start.clone(), &command.who, WHY).await.is_ok() {
                    return;
                }
            }
        })
    }

    /// `redrive stop`
    pub fn operator_stopping(&self, name: &str, seed: u64, run: Order) -> Actor {
        self.command(name, seed, |command| async move {
            let _ = command.desk().stop(&run.id, &[run.book], &command.who, WHY).await;
        })
    }

    /// `redrive resume`
    pub fn operator_resuming(&self, name: &str, seed: u64, run: Order) -> Actor {
        self.command(name, seed, |command| async move {
            let _ = command.desk().resume(&run.id, &[run.book], &command.who, WHY).await;
        })
    }

    /// `dead-letters close` or `resolve`
    pub fn operator_ending(&self, name: &str, seed: u64, key: DeliveryKey, decision: Decision) -> Actor {
        self.command(name, seed, |command| async move {
            let Ok(Some(record)) = command.ledger.load(&key).await else { return };
            let _ = command.desk().order_ending(&record, decision, &command.who, WHY).await;
        })
    }

    /// `config apply`
    pub fn operator_applying(&self, name: &str, seed: u64, document: String) -> Actor {
        self.command(name, seed, |command| async move {
            let _ = command.desk().apply(&document, Locality::PublicOnly.into(), &command.who, WHY).await;
        })
    }

    /// Everything that operators hold or stopped goes on, at once and without a fault. What automation
    /// suspended it must let go by itself; what is eased goes on to be, if `but_eased`.
    pub fn let_everything_go(&self, name: &str, seed: u64, but_eased: bool) {
        for order in self.office.peek_orders().into_iter().filter(Order::is_open) {
            let actor = match &order.body {
                OrderBody::Hold(Hold { rule: HoldRule::Suspended(_), .. }) => continue,
                OrderBody::Hold(_) if but_eased && order.eased_to().is_some() => continue,
                OrderBody::Hold(_) => self.operator_lifting(name, seed, order),
                OrderBody::Redrive(_) => self.operator_resuming(name, seed, order),
                OrderBody::Ending(_) => continue,
            };
            actor.run();
        }
    }

    /// The first configuration is put in force, a day before the history begins.
    pub fn put_in_force(&self, document: &str) {
        super::in_force::put_first(&self.office, document);
    }
}
