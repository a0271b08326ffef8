//! `waybill deliveries list` and `show`.

use std::path::PathBuf;

use waybill_domain::delivery::{Record, State};
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::{DeliveryId, DestinationName, TenantId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Catalogue, Clock as _, Filter, Ledger};

use super::listing::{PAGE, Rows};
use super::owners::Owners;
use super::{Globals, refused};
use crate::backend::on_store;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::timeline::timeline;
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
        /// Only those in this state: pending, retryable, succeeded, dead_lettered, expired
        #[arg(long, value_parser = state)]
        state: Option<State>,
        /// Only those first queued since this time (RFC 3339), or within this span (24h)
        #[arg(long, value_parser = since)]
        since: Option<TimeMs>,
    },
    /// One delivery: its record, every attempt with its evidence, and what comes next
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
    match command {
        Command::List { tenant, destination, state, since } => {
            list(globals, Filter { tenant, destination, state, since }).await
        }
        Command::Show { id, tenant, config } => {
            let owners = Owners::of(config.as_deref(), &globals.backend())?;
            show(globals, &id, tenant.as_ref(), &owners).await
        }
    }
}

async fn list(globals: &Globals, filter: Filter) -> Result<Exit, Failure> {
    on_store!(globals.backend().open().await?, |ledger, _| list_from(ledger, globals, &filter).await)
}

async fn list_from(store: &impl Catalogue, globals: &Globals, filter: &Filter) -> Result<Exit, Failure> {
    let mut rows = Rows::new(globals, table::of_records);
    let mut from = None;
    loop {
        let page = store.list(filter, PAGE, from.as_ref()).await?;
        from = page.next;
        if !rows.take(page.items) || from.is_none() {
            break;
        }
    }
    rows.finish("no deliveries");
    Ok(Exit::Done)
}

async fn show(
    globals: &Globals,
    id: &DeliveryId,
    tenant: Option<&TenantId>,
    owners: &Owners,
) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    on_store!(opened, |ledger, _| show_from(ledger, globals, id, tenant, owners).await)
}

async fn show_from(
    store: &(impl Catalogue + Ledger),
    globals: &Globals,
    id: &DeliveryId,
    tenant: Option<&TenantId>,
    owners: &Owners,
) -> Result<Exit, Failure> {
    let is_wanted = |record: &Record| tenant.is_none_or(|tenant| record.delivery.tenant == *tenant);
    let found: Vec<Record> = store.find(id).await?.into_iter().filter(is_wanted).collect();
    if found.is_empty() {
        let of = tenant.map_or_else(String::new, |tenant| format!(" of tenant {tenant}"));
        let backend = globals.backend();
        return Err(Failure::failed(format!("{backend}: there is no delivery {id}{of}")));
    }
    for record in &found {
        let attempts = store.attempts(&record.delivery.key()).await?;
        let owner = owners.owner(record);
        match globals.output {
            Format::Table => out::line(timeline(record, &attempts, owner)),
            Format::Json => out::json(&facts::of_delivery(record, &attempts, owner)),
        }
    }
    Ok(Exit::Done)
}

pub(super) fn tenant(text: &str) -> Result<TenantId, String> {
    TenantId::parse(text).map_err(refused)
}

pub(super) fn destination(text: &str) -> Result<DestinationName, String> {
    DestinationName::parse(text).map_err(refused)
}

fn delivery_id(text: &str) -> Result<DeliveryId, String> {
    let hint = "; `waybill deliveries list` shows those of every event";
    DeliveryId::parse(text).map_err(|invalid| refused(invalid) + hint)
}

fn state(text: &str) -> Result<State, String> {
    State::parse("state", text).map_err(refused)
}

fn since(text: &str) -> Result<TimeMs, String> {
    if let Ok(span) = DurationMs::parse("since", text) {
        return Ok(SystemClock.now().minus(span));
    }
    TimeMs::parse("since", text).map_err(|invalid| {
        let rule = format!("{}, or a span such as 24h", invalid.rule);
        refused(InvalidField { rule, ..invalid })
    })
}
