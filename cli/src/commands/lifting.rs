//! `waybill hold lift`: what was held goes again, all of it or, while the hold is eased, a few at a time.

use std::num::NonZeroU32;

use waybill_domain::budget::Budget;
use waybill_domain::order::OrderId;
use waybill_service::config::Config;
use waybill_service::easing::Easing;
use waybill_service::holds::HoldAct;

use super::Globals;
use super::holds::{hold_of, in_force, say};
use super::operator::{Operator, desk};
use crate::backend::on_office;
use crate::exit::{Exit, Failure};
use crate::out;
use crate::show::orders;

pub(super) async fn lift(
    globals: &Globals,
    hold: &OrderId,
    concurrency: Option<NonZeroU32>,
    why: &str,
) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "hold lift").await?;
    on_office!(opened, |_, office| {
        // They may know of one across tenants, and not lift it.
        if let Some(order) = in_force(office, &operator).await?.iter().find(|order| order.id == *hold) {
            operator.check(&opened, &order.book).await?;
        }
        let books = operator.books(office).await?;
        let (desk, by) = (desk(office), operator.name()?);
        match concurrency {
            None => {
                let act = desk.lift(hold, &books, by, why).await?;
                Ok(say(globals.output, &act, "lifted"))
            }
            Some(concurrency) => {
                let config = operator.config()?;
                let act = desk.ease(hold, &books, concurrency, config, by, why).await?;
                tell_what_stays(&act, config);
                Ok(say(globals.output, &act, "eased"))
            }
        }
    })
}

/// A tenant's hold keeps its part of shared destinations back, however far it is eased.
fn tell_what_stays(act: &HoldAct, config: &Config) {
    let (HoldAct::Done(order) | HoldAct::Already(order)) = act;
    let Some(hold) = hold_of(order) else { return };
    for rule in Easing::of(&hold.rule, &order.book, config).keeps {
        let rule = orders::rule_in_words(&rule);
        out::complain(format_args!("still held: {rule}, for a limit would be on what is not held, too"));
    }
}

/// Reads how many requests at once.
pub(super) fn concurrency(text: &str) -> Result<NonZeroU32, String> {
    let most = Budget::MOST_CONCURRENCY;
    let read = text.parse().ok().filter(|number: &NonZeroU32| number.get() <= most);
    read.ok_or_else(|| format!("is not a number of requests at once from 1 to {most}"))
}
