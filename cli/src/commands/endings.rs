//! `waybill dead-letters close` and `resolve`: a person ends dead letters.
//!
//! The order is entered with its audit entry; on the embedded backend it is also carried out at once,
//! by the code of the reconciler's, which does it otherwise.

use waybill_domain::delivery::Record;
use waybill_domain::ending::is_known_unapplied;
use waybill_domain::identity::{DeliveryId, TenantId};
use waybill_domain::order::{CameTo, Decision, Order, OrderBody};
use waybill_service::acts::ActError;
use waybill_service::endings::{EndingAct, carry_out};
use waybill_service::office::Office;
use waybill_service::ports::{Ledger, PortResult};

use super::deliveries::found;
use super::operator::{Operator, desk};
use super::{Globals, delivery_id, tenant, why};
use crate::backend::on_office;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::orders;

/// Which dead letters, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// The delivery IDs (whd_…)
    #[arg(required = true, value_parser = delivery_id)]
    ids: Vec<DeliveryId>,
    /// Only if they are this tenant's
    #[arg(long, value_parser = tenant)]
    tenant: Option<TenantId>,
    /// Why, for the audit
    #[arg(long, value_parser = why)]
    why: String,
}

/// Ends each; of several ends the gravest counts, and the others are done all the same. What is said to be
/// applied is held against the evidence where it `heeds_evidence`.
pub(super) async fn run(
    globals: &Globals,
    which: Which,
    decision: Decision,
    heeds_evidence: bool,
) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    let command = match decision {
        Decision::Close => "dead-letters close",
        Decision::Resolve => "dead-letters resolve",
    };
    let operator = Operator::of(globals, &opened, command).await?;
    operator.name()?;
    // Looked up before anything is done: a mistyped ID ends none of them.
    let mut records = Vec::new();
    for id in &which.ids {
        let mut of_id = found(globals, &opened, &operator, id, which.tenant.as_ref()).await?;
        if of_id.len() > 1 {
            let sentence =
                format!("{id} is a delivery of more than one tenant; --tenant says which is meant");
            return Err(Failure::wrong_input(sentence));
        }
        records.append(&mut of_id);
    }
    let at_once = opened.carries_out_orders();
    on_office!(opened, |ledger, office| {
        let mut exit = Exit::Done;
        for record in &records {
            if heeds_evidence && let Some(refused) = contradiction(ledger, record).await? {
                exit = exit.max(refused.exit);
                out::complain(refused);
                continue;
            }
            match end(ledger, office, &operator, record, decision, &which.why, at_once).await {
                Ok((act, order)) => exit = exit.max(say(globals.output, &act, &order)),
                Err(failure) => {
                    exit = exit.max(failure.exit);
                    out::complain(failure);
                }
            }
        }
        Ok(exit)
    })
}

/// Why it is no dead letter of which the recipient can have applied anything, where its evidence says so.
async fn contradiction(ledger: &impl Ledger, record: &Record) -> PortResult<Option<Failure>> {
    if record.dead_letter_reason().is_none() {
        return Ok(None);
    }
    let attempts = ledger.attempts(&record.delivery.key()).await?;
    if !is_known_unapplied(record.attempts_made, &attempts) {
        return Ok(None);
    }
    let said = match attempts.last() {
        None => "no attempt of it was made".to_owned(),
        Some(last) => {
            let status = last.status.map_or_else(String::new, |status| format!("{status} "));
            let last = format!("attempt {}: {status}{}", last.number, last.failure.class);
            format!("the evidence of its attempts says that none was applied ({last})")
        }
    };
    Ok(Some(Failure::refused(format!(
        "{} is refused: {said}; where the recipient has it all the same, say --against-evidence",
        record.delivery.id
    ))))
}

async fn end<L: Ledger, O: Office>(
    ledger: &L,
    office: &O,
    operator: &Operator,
    record: &Record,
    decision: Decision,
    why: &str,
    at_once: bool,
) -> Result<(EndingAct, Order), Failure> {
    let act = desk(office).order_ending(record, decision, operator.name()?, why).await?;
    let mut order = act.order().clone();
    if at_once && order.is_open() {
        carry_out(ledger, &desk(office), &order).await?;
        let gone = || ActError::Unknown(format!("the order {} cannot be read back", order.id));
        order = office.order(&order.book, &order.id).await?.ok_or_else(gone)?;
    }
    Ok((act, order))
}

fn say(output: Format, act: &EndingAct, order: &Order) -> Exit {
    let OrderBody::Ending(ending) = &order.body else { return Exit::Done };
    let already = matches!(act, EndingAct::Already(_));
    match output {
        Format::Json => out::json(&orders::of_ending(order, ending, already)),
        Format::Table => out::line(orders::ending_in_words(order, ending, already)),
    }
    // Somebody released or ended it in the meantime.
    if ending.came_to == Some(CameTo::NoDeadLetter) { Exit::Failed } else { Exit::Done }
}
