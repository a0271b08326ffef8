//! What is known of a delivery beside its record: operators' acts about it and about the run that
//! released it, and what a replay would do with it now.

use waybill_domain::audit::Entry;
use waybill_domain::authority::Book;
use waybill_domain::delivery::Record;
use waybill_domain::order::OrderId;
use waybill_domain::redrive::{Bench, Fate, Reviews, judge};
use waybill_domain::time::TimeMs;
use waybill_service::config::Config;
use waybill_service::office::Office;
use waybill_service::ports::PortResult;

use super::audit::each_entry;
use super::operator::Operator;
use crate::backend::{Opened, on_office};
use crate::show::beside::{Act, Replay};

/// The acts about a delivery and about its run, oldest first.
pub(super) async fn acts_about(
    opened: &Opened,
    operator: &Operator,
    record: &Record,
) -> PortResult<Vec<Act>> {
    on_office!(*opened, |_, office| gathered(office, operator.may_read_across(), record).await)
}

/// A run across tenants is entered in the book across tenants. Whoever may see a delivery may know who
/// released it, when and why; what else that entry says is not theirs to know, and is not kept here. Where
/// the store itself keeps that book from them, the record alone names the run.
async fn gathered(office: &impl Office, reads_across: bool, record: &Record) -> PortResult<Vec<Act>> {
    let (id, run) = (record.delivery.id.as_str(), record.redrive_run.as_deref());
    let own = Book::Tenant(record.delivery.tenant.clone());
    let mut acts = Vec::new();
    let mut keep = |entry: Entry, is_meant: bool| {
        if is_meant {
            acts.push(Act::of(entry));
        }
    };
    each_entry(office, &own, |entry| {
        let is_meant = entry.subject == id || Some(entry.subject.as_str()) == run;
        keep(entry, is_meant);
    })
    .await?;
    if reads_across
        && let Some(run) = run.and_then(|run| OrderId::parse(run).ok())
        && office.order(&Book::Across, &run).await?.is_some()
    {
        each_entry(office, &Book::Across, |entry| {
            let is_meant = entry.subject == run.as_str();
            keep(entry, is_meant);
        })
        .await?;
    }
    acts.sort_by_key(|act| act.at);
    Ok(acts)
}

/// What a redrive without any review would do now; `None` where it is no dead letter.
pub(super) fn replay(config: &Config, record: &Record, now: TimeMs) -> Option<Replay> {
    record.dead_letter_reason()?;
    let delivery = &record.delivery;
    let destination = config.destination_of(delivery);
    let reviews = Reviews::default();
    let bench = Bench { reviews: &reviews, max_redrives: config.system.max_redrives, now };
    let fate = judge(record, destination.as_deref(), bench);
    let is_to_come = delivery.deadline.is_some_and(|at| now < at);
    let too_near = destination.filter(|_| fate == Fate::Expire && is_to_come);
    Some(Replay { fate, too_near: too_near.map(|destination| destination.policy.minimum_window) })
}
