//! `waybill deliveries list` and `show`.

use std::path::PathBuf;

use waybill_domain::delivery::{Record, State};
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::{DeliveryId, DeliveryKey, DestinationName, TenantId};
use waybill_domain::time::TimeMs;
use waybill_service::held;
use waybill_service::ports::{Catalogue, Clock as _, Filter, Ledger, PortResult};

use super::beside::{acts_about, replay};
use super::listing::{PAGE, Rows};
use super::operator::Operator;
use super::owners::Owners;
use super::{Globals, delivery_id, destination, known, moment, refused, tenant};
use crate::backend::{Opened, on_store};
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::beside::Beside;
use crate::show::timeline::told;
use crate::show::{facts, table};
use waybill_system::SystemClock;

/// What can be done with deliveries.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Deliveries by tenant, newest first
    List {
        /// Only this tenant's
        #[arg(long, value_parser = tenant)]
        tenant: Option<TenantId>,
        /// Only those to this destination
        #[arg(long, value_parser = destination)]
        destination: Option<DestinationName>,
        /// Only those in this state: pending, retryable, succeeded, dead_lettered, expired; or held, which
        /// are pending or retryable, by destination and earliest deadline
        #[arg(long, value_parser = state)]
        state: Option<Wanted>,
        /// Only those first queued since this time (RFC 3339), or within this span (24h)
        #[arg(long, value_parser = moment)]
        since: Option<TimeMs>,
    },
    /// One delivery: its record, every attempt that failed with its evidence, and what comes next
    ///
    /// Of the attempt that succeeded the record keeps when it ended and how long it took. Its status is not
    /// kept, and its body only where the destination says `keep_result = true`.
    Show {
        /// The delivery ID (whd_…)
        #[arg(value_parser = delivery_id)]
        id: DeliveryId,
        /// Only if it is this tenant's
        #[arg(long, value_parser = tenant)]
        tenant: Option<TenantId>,
        /// The configuration that says who owns its destination [default: waybill.toml, if it is there]
        #[arg(long)]
        config: Option<PathBuf>,
    },
}

pub(super) async fn run(globals: &Globals, command: Command) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    match command {
        Command::List { tenant, destination, state, since } => {
            let operator = Operator::of(globals, &opened, "deliveries list").await?;
            let tenant = operator.tenant(&opened, tenant.as_ref()).await?;
            let filter = Filter { tenant, destination, state: state.and_then(Wanted::state), since };
            on_store!(opened, |ledger, _| match state {
                Some(Wanted::Held) => list_held(ledger, globals, &operator, &filter).await,
                _ => list(ledger, globals, &operator, &filter).await,
            })
        }
        Command::Show { id, tenant, config } => {
            let operator = Operator::of(globals, &opened, "deliveries show").await?;
            let owners = Owners::of(config.as_deref(), &operator, &globals.backend())?;
            show(globals, opened, &operator, &owners, &id, tenant.as_ref()).await
        }
    }
}

async fn list(
    store: &impl Catalogue,
    globals: &Globals,
    operator: &Operator,
    filter: &Filter,
) -> Result<Exit, Failure> {
    let mut rows = Rows::new(globals, operator, table::of_records);
    let mut from = None;
    loop {
        let page = store.list(filter, PAGE, from.as_ref()).await?;
        from = page.next;
        if !rows.take(page.items) || from.is_none() {
            break;
        }
    }
    rows.finish("no deliveries", || {
        known::check(operator, filter.tenant.as_ref(), filter.destination.as_ref())
    })
}

/// By the index of what is held, so that it costs as much as there is held, whatever else there is.
async fn list_held(
    store: &impl Ledger,
    globals: &Globals,
    operator: &Operator,
    filter: &Filter,
) -> Result<Exit, Failure> {
    if !operator.may_read_across() {
        return Err(Failure::refused(
            "deliveries list --state held is refused: what is held stands by destination, for operators across \
             tenants; pending and retryable show which of a tenant's are held",
        ));
    }
    let mut rows = Rows::new(globals, operator, table::of_records);
    let is_meant = |record: &Record| {
        let delivery = &record.delivery;
        filter.tenant.as_ref().is_none_or(|tenant| *tenant == delivery.tenant)
            && filter.since.is_none_or(|since| delivery.first_queued_at >= since)
    };
    each_held(store, operator, filter.destination.as_ref(), |record| {
        let records = Some(record).filter(|record| is_meant(record)).into_iter().collect();
        rows.take(records)
    })
    .await?;
    rows.finish("nothing is held", || {
        known::check(operator, filter.tenant.as_ref(), filter.destination.as_ref())
    })
}

/// Every held delivery that the operator may know of, destination by destination, earliest deadline first,
/// until `look` wants no more.
pub(super) async fn each_held(
    store: &impl Ledger,
    operator: &Operator,
    destination: Option<&DestinationName>,
    mut look: impl FnMut(Record) -> bool,
) -> Result<(), Failure> {
    let names = match destination {
        Some(name) => vec![name.clone()],
        None => store.held_destinations().await?,
    };
    for name in names {
        if !held::each_held(store, &name, |key| operator.may_see(&key.tenant), &mut look).await? {
            return Ok(());
        }
    }
    Ok(())
}

async fn show(
    globals: &Globals,
    opened: Opened,
    operator: &Operator,
    owners: &Owners,
    id: &DeliveryId,
    tenant: Option<&TenantId>,
) -> Result<Exit, Failure> {
    let records = found(globals, &opened, operator, id, tenant).await?;
    for record in &records {
        let (config, now) = (operator.config_at_hand(), SystemClock.now());
        let beside = Beside {
            owner: owners.owner(record),
            acts: Some(acts_about(&opened, operator, record).await?),
            replay: config.and_then(|config| replay(config, record, now)),
        };
        let key = record.delivery.key();
        let attempts = on_store!(opened, |ledger, _| ledger.attempts(&key).await)?;
        match globals.output {
            Format::Table => out::line(told(record, &attempts, &beside)),
            Format::Json => out::json(&beside.added_to(facts::of_delivery(record, &attempts, &beside))),
        }
    }
    Ok(Exit::Done)
}

/// The deliveries of this ID that the operator may know of: one, unless two tenants' identifiers met.
/// Somebody else's is answered as one that there is not.
pub(super) async fn found(
    globals: &Globals,
    opened: &Opened,
    operator: &Operator,
    id: &DeliveryId,
    tenant: Option<&TenantId>,
) -> Result<Vec<Record>, Failure> {
    if let Some(tenant) = tenant {
        operator.book(opened, Some(tenant)).await?;
    }
    let of_whom = match tenant {
        Some(tenant) => std::slice::from_ref(tenant),
        None => operator.tenants(),
    };
    let mut records = on_store!(*opened, |ledger, _| with_id(ledger, id, of_whom).await)?;
    records.retain(|record| {
        let of = &record.delivery.tenant;
        operator.may_see(of) && tenant.is_none_or(|tenant| tenant == of)
    });
    if records.is_empty() {
        let of = tenant.map_or_else(String::new, |tenant| format!(" of tenant {tenant}"));
        let backend = globals.backend();
        return Err(Failure::failed(format!("{backend}: there is no delivery {id}{of}")));
    }
    Ok(records)
}

/// The deliveries of this ID of these tenants, or of all: who may read some tenants' items alone can find
/// nothing by looking at everybody's.
async fn with_id(
    ledger: &(impl Ledger + Catalogue),
    id: &DeliveryId,
    tenants: &[TenantId],
) -> PortResult<Vec<Record>> {
    if tenants.is_empty() {
        return ledger.find(id).await;
    }
    let mut found = Vec::new();
    for tenant in tenants {
        let key = DeliveryKey { tenant: tenant.clone(), delivery_id: id.clone() };
        found.extend(ledger.load(&key).await?);
    }
    Ok(found)
}

/// What `--state` says: a state of the record, or that a hold keeps it back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    In(State),
    Held,
}

impl Wanted {
    const fn state(self) -> Option<State> {
        match self {
            Wanted::In(state) => Some(state),
            Wanted::Held => None,
        }
    }
}

fn state(text: &str) -> Result<Wanted, String> {
    if text == "held" {
        return Ok(Wanted::Held);
    }
    State::parse("state", text).map(Wanted::In).map_err(|invalid| {
        let rule = format!("{}, or held", invalid.rule);
        refused(InvalidField { rule, ..invalid })
    })
}
