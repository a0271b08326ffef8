//! Suspensions as operators see them: an order with its entries in the audit, and one alert.
//!
//! A worker suspends a destination, and lifts that by a probe's success, in the item of its budget; that
//! alone bites. Here the reconciler enters what stands there, under the suspension's own identifier: so
//! however many workers saw it and however often it is carried out, it is entered once, and so is its
//! end. What a person lifted is carried out the other way round: from the order to the budget.

use std::collections::BTreeSet;

use serde_json::json;
use waybill_domain::audit::{AUTOMATION, Act, Draft};
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::DestinationName;
use waybill_domain::order::{Hold, Order, OrderBody, Signed};
use waybill_domain::suspension::{Cause, Health, Suspension};
use waybill_domain::time::TimeMs;

use crate::acts::{ActError, Desk};
use crate::config::Config;
use crate::holds::HoldAct;
use crate::instruments;
use crate::office::Office;
use crate::ports::{Clock, Dice, Ledger, PortError, PortResult, UsageSet};
use crate::release::MOST_WRITES;

/// What carrying suspensions out needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suspensions<'a, L, O, C, D> {
    pub(crate) ledger: &'a L,
    pub(crate) desk: Desk<'a, O, C, D>,
}

/// How a suspension stands.
enum Standing {
    None,
    InForce(Suspension),
    Lifted(Suspension),
}

impl<L: Ledger, O: Office, C: Clock, D: Dice> Suspensions<'_, L, O, C, D> {
    /// Brings orders and budgets together. Answers which destinations a person let go: what is held of
    /// them is nobody's to release but the reconciler's.
    pub(crate) async fn carry_out(
        &self,
        config: &Config,
        open: &[Order],
    ) -> PortResult<Vec<DestinationName>> {
        // A forged one is lifted: only the order that a suspension names itself says anything of it.
        let shown: Vec<(&DestinationName, &Order)> = open
            .iter()
            .filter_map(|order| match &order.body {
                OrderBody::Hold(Hold { rule: HoldRule::Suspended(name), .. }) => Some((name, order)),
                _ => None,
            })
            .collect();
        let with_rules = config.destinations.values().filter(|it| it.suspension.is_some());
        let mut names: BTreeSet<DestinationName> = with_rules.map(|it| it.name.clone()).collect();
        names.extend(shown.iter().map(|(name, _)| (*name).clone()));
        let mut let_go = Vec::new();
        for name in names {
            let shown = shown.iter().filter(|(of, _)| **of == name).map(|(_, order)| *order);
            match self.of_one(config, &name, shown.collect()).await {
                Ok(true) => let_go.push(name),
                Ok(false) => {}
                // One that cannot be carried out must not keep the others from it.
                Err(error) => {
                    tracing::error!(destination = %name, error = error.in_full(), "not carried out")
                }
            }
        }
        Ok(let_go)
    }

    /// Whether a person let it go just now.
    async fn of_one(&self, config: &Config, name: &DestinationName, shown: Vec<&Order>) -> PortResult<bool> {
        let is_ruled = config.destinations.get(name).is_some_and(|it| it.suspension.is_some());
        let standing = match self.ledger.usage(name).await?.usage.health.to_enter().cloned() {
            None => Standing::None,
            Some(suspension) if is_ruled && suspension.lifted_at.is_none() => Standing::InForce(suspension),
            Some(suspension) => Standing::Lifted(suspension),
        };
        let id = match &standing {
            Standing::None => None,
            Standing::InForce(suspension) | Standing::Lifted(suspension) => Some(&suspension.id),
        };
        let mut is_over = false;
        for order in shown.into_iter().filter(|order| Some(&order.id) != id) {
            self.lift(config, name, order, "nothing suspends it any more").await?;
            is_over = true;
        }
        match standing {
            Standing::None => Ok(is_over),
            Standing::InForce(suspension) => {
                let order = self.entered(config, name, &suspension).await?;
                match lifted_at(&order) {
                    None => Ok(false),
                    Some(at) if at < suspension.since => {
                        self.write(name, |health| health.rename(&suspension)).await?;
                        Ok(false)
                    }
                    Some(_) => self.forget(name, &suspension).await,
                }
            }
            Standing::Lifted(suspension) => {
                let order = self.entered(config, name, &suspension).await?;
                let why = match suspension.lifted_at {
                    Some(_) => "a probe succeeded",
                    None => "its configuration suspends it no more",
                };
                // Before its order is lifted: a relapse goes on under the order of the last suspension, while
                // the budget keeps that, and must find it open. Who dies in between leaves an order that the
                // next round lifts.
                if !self.forget(name, &suspension).await? {
                    return Ok(false);
                }
                self.lift(config, name, &order, why).await?;
                Ok(suspension.lifted_at.is_none())
            }
        }
    }

    /// The order of a suspension, entered now if it was not before.
    async fn entered(
        &self,
        config: &Config,
        name: &DestinationName,
        suspension: &Suspension,
    ) -> PortResult<Order> {
        let Suspension { id, book, failures, cause, .. } = suspension;
        if let Some(order) = self.desk.office.order(book, id).await? {
            return Ok(order);
        }
        let rule = HoldRule::Suspended(name.clone());
        let why = in_words(*cause, *failures);
        let placed = Signed { by: AUTOMATION.to_owned(), at: suspension.since, why };
        let owner = config.destinations.get(name).and_then(|destination| destination.owner.as_deref());
        let details = json!({ "rule": rule, "cause": cause, "failures": failures, "owner": owner });
        let hold = Hold { rule, placed: placed.clone(), eased: None, lifted: None };
        let change = Order::place(id.clone(), book.clone(), OrderBody::Hold(hold));
        let draft = Draft {
            book: book.clone(),
            at: placed.at,
            who: placed.by,
            act: Act::Suspended,
            subject: id.to_string(),
            why: Some(placed.why.clone()),
            details,
        };
        if self.desk.enter(draft, Some(&change)).await? {
            tracing::error!(destination = %name, owner, hold = %id, cause = cause.as_str(), failures,
                since = %suspension.since, why = placed.why, "destination suspended");
            instruments::suspended(config, name);
            return Ok(change.after);
        }
        let entered = self.desk.office.order(book, id).await?;
        entered.ok_or_else(|| unreadable(format!("the order {id} was entered and cannot be read")))
    }

    /// Lifts its order as automation, if nobody did.
    async fn lift(&self, config: &Config, name: &DestinationName, of: &Order, why: &str) -> PortResult<()> {
        match self.desk.lift(&of.id, std::slice::from_ref(&of.book), AUTOMATION, why).await {
            Ok(HoldAct::Done(_)) => {
                let owner =
                    config.destinations.get(name).and_then(|destination| destination.owner.as_deref());
                tracing::warn!(destination = %name, owner, hold = %of.id, why, "suspension lifted");
                Ok(())
            }
            Ok(HoldAct::Already(_)) => Ok(()),
            Err(ActError::Port(error)) => Err(error),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// The budget keeps nothing of it. `false` where it has relapsed meanwhile, and goes on.
    async fn forget(&self, name: &DestinationName, seen: &Suspension) -> PortResult<bool> {
        self.write(name, |health| health.forget(seen)).await
    }

    /// Changes what the budget keeps, and answers what `change` answered when that landed.
    async fn write<T>(
        &self,
        name: &DestinationName,
        change: impl Fn(&mut Health) -> T + Send + Sync,
    ) -> PortResult<T> {
        for _ in 0..MOST_WRITES {
            let kept = self.ledger.usage(name).await?;
            let mut usage = kept.usage.clone();
            let answer = change(&mut usage.health);
            if usage == kept.usage
                || self.ledger.set_usage(name, kept.revision, &usage).await? == UsageSet::Landed
            {
                return Ok(answer);
            }
        }
        Err(PortError::AskLater {
            port: "ledger",
            cause: "the budget is being written by many at once".into(),
        })
    }
}

fn lifted_at(order: &Order) -> Option<TimeMs> {
    match &order.body {
        OrderBody::Hold(hold) => hold.lifted.as_ref().map(|lifted| lifted.at),
        _ => None,
    }
}

fn in_words(cause: Cause, failures: u32) -> String {
    let times = if failures == 1 { "once".to_owned() } else { format!("{failures} times in a row") };
    match cause {
        Cause::Refused => format!("it refused {times} for want of a right: only a person can mend that"),
        Cause::Gone => "it answered 410: it wants no more".to_owned(),
        Cause::Unreachable => format!("it could not be reached {times}"),
    }
}

fn unreadable(sentence: String) -> PortError {
    PortError::NeedsPerson { port: "ledger", cause: sentence.into() }
}
