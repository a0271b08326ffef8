//! What an operator does in a rehearsal, by the commands' own use cases, and what the reconciler makes of
//! it, minute by minute.

use std::sync::Arc;

use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::destination::Destination;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::order::{Order, OrderBody};
use waybill_domain::redrive::{Fate, ReleaseRate, Reviews, Run, Selection};
use waybill_domain::time::DurationMs;
use waybill_service::acts::{ActError, Desk, all_open};
use waybill_service::endings;
use waybill_service::office::Office as _;
use waybill_service::ports::Clock as _;
use waybill_service::redrive::orders::Start;
use waybill_service::redrive::plan::{Plan, Wish, plan};
use waybill_service::redrive::release::{AHEAD, Releaser};
use waybill_testkit::dice::SeededDice;

use super::Rehearsal;
use super::backing::Store;
use super::clock::StoryClock;
use super::stage::Stage;
use crate::exit::Failure;

/// Who operates.
pub(super) const OPERATOR: &str = "maria";

/// Where an operator's acts are entered.
pub(super) fn desk(stage: &Stage) -> Desk<'_, Store, StoryClock, SeededDice> {
    Desk { office: &stage.store, clock: &stage.clock, dice: &stage.ports.dice }
}

/// What the reconciler does in a minute, under the holds that stand.
pub(super) async fn round(stage: &mut Stage) -> Result<(), Failure> {
    under_holds(stage).await?;
    let (ledger, queue) = (&stage.ports.ledger, &stage.ports.queue);
    let releaser = Releaser { ledger, queue, desk: desk(stage), ahead: AHEAD };
    for order in all_open(&stage.store).await? {
        match order.body {
            OrderBody::Ending(_) => endings::carry_out(ledger, &desk(stage), &order).await?,
            _ => drop(releaser.carry_out(&stage.config, &order, None).await?),
        }
    }
    stage.reconcile().await
}

/// Rounds, a minute apart, until a run is finished.
pub(super) async fn carried_out(stage: &mut Stage, run: &Order) -> Result<(), Failure> {
    for _ in 0..10 {
        round(stage).await?;
        stage.work_until_quiet().await?;
        if run_of(stage, run).await?.is_finished() {
            return Ok(());
        }
        stage.clock.skip_to(stage.clock.now().plus(DurationMs::from_secs(60)));
    }
    Err(Failure::failed(format!("the run {} does not end", run.id)))
}

/// As every process does within seconds: the holds in force are part of the configuration.
pub(super) async fn under_holds(stage: &mut Stage) -> Result<(), Failure> {
    let open = all_open(&stage.store).await?;
    stage.config = stage.config.clone().under(&open);
    Ok(())
}

/// What a run would do. Writes nothing.
pub(super) async fn planned(stage: &Stage, selection: Selection) -> Result<Plan, Failure> {
    reviewed(stage, selection, Reviews::default()).await
}

/// The same, after a person has looked at what it would leave alone otherwise.
pub(super) async fn reviewed(stage: &Stage, selection: Selection, reviews: Reviews) -> Result<Plan, Failure> {
    // A plan means what ended before it.
    stage.clock.skip_to(stage.clock.now().plus(DurationMs::from_secs(1)));
    let run = desk(stage).new_id("rdr")?;
    let wish = Wish { run, by: OPERATOR.to_owned(), selection, reviews };
    Ok(plan(&stage.store, &stage.config, wish, stage.clock.now()).await?)
}

/// A run of this plan.
pub(super) async fn started(
    stage: &Stage,
    plan: &Plan,
    rate: &str,
    sample: Option<u64>,
    why: &str,
) -> Result<Order, Failure> {
    let start = Start { rate: ReleaseRate::parse("rate", rate)?, sample, not_before: None };
    let act = acted(desk(stage).start(plan, start, OPERATOR, why).await)?;
    Ok(act.order().clone())
}

/// Whether a run of this plan is refused.
pub(super) async fn is_refused(stage: &Stage, plan: &Plan, rate: &str, why: &str) -> Result<bool, Failure> {
    let start = Start { rate: ReleaseRate::parse("rate", rate)?, sample: None, not_before: None };
    match desk(stage).start(plan, start, OPERATOR, why).await {
        Err(ActError::Refused(_)) => Ok(true),
        act => acted(act).map(|_| false),
    }
}

/// How it stands.
pub(super) async fn run_of(stage: &Stage, order: &Order) -> Result<Run, Failure> {
    let stored = stage.store.order(&order.book, &order.id).await?;
    match stored.map(|order| order.body) {
        Some(OrderBody::Redrive(run)) => Ok(*run),
        _ => Err(Failure::failed(format!("the run {} is lost", order.id))),
    }
}

/// What an act came to, or why the story cannot go on.
pub(super) fn acted<T>(act: Result<T, ActError>) -> Result<T, Failure> {
    act.map_err(|error| match error {
        ActError::Port(error) => error.into(),
        error => Failure::failed(error.to_string()),
    })
}

/// A corrected configuration: the destination's URL has another path.
pub(super) fn move_to(stage: &mut Stage, destination: &str, path: &str) -> Result<(), Failure> {
    let url = RecipientUrl::parse("url", &stage.recipient.server.url(path), Locality::AllowLocal)?;
    configure(stage, destination, |before| Destination { url, ..before })
}

/// The same of whatever a destination has.
pub(super) fn configure(
    stage: &mut Stage,
    destination: &str,
    change: impl FnOnce(Destination) -> Destination,
) -> Result<(), Failure> {
    let name = DestinationName::parse(destination)?;
    if let Some(before) = stage.config.destinations.get(&name) {
        let changed = change(Destination::clone(before));
        stage.config.destinations.insert(name, Arc::new(changed));
    }
    Ok(())
}

/// Tells a plan, group by group.
pub(super) fn tell(rehearsal: &Rehearsal, plan: &Plan) {
    for group in &plan.groups {
        let fate = match group.fate {
            Fate::Release => "release".to_owned(),
            Fate::Expire => "expired: never sent".to_owned(),
            Fate::Blocked(block) => format!("blocked ({}): {}", block.as_str(), block.remedy()),
        };
        let (count, destination, reason) = (group.count, &group.destination, group.reason);
        rehearsal.voice.tell(format_args!("  {count} to {destination}, {reason}: {fate}"));
    }
}

/// Whatever is acme's.
pub(super) fn of_acme() -> Result<Selection, Failure> {
    Ok(Selection { tenant: Some(TenantId::parse("acme")?), ..Selection::default() })
}
