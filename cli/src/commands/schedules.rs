//! `waybill schedules list`: what the calendar publishes under the configuration in force, for every
//! tenant whose matters the operator may know of.

use waybill_domain::identity::TenantId;
use waybill_service::ports::{Clock as _, Ledger};
use waybill_service::schedule::standing::standing;
use waybill_system::SystemClock;

use super::operator::Operator;
use super::{Globals, known, tenant};
use crate::backend::on_store;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::schedules::{self as shown, Seen};

/// What can be asked of schedules.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Next firing, last window with its delivery, and what is owed: one line for each schedule and tenant
    List {
        /// Of this tenant
        #[arg(long, value_parser = tenant)]
        tenant: Option<TenantId>,
    },
}

pub(super) async fn run(globals: &Globals, command: Command) -> Result<Exit, Failure> {
    let Command::List { tenant } = command;
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "schedules list").await?;
    if tenant.is_some() {
        operator.tenant(&opened, tenant.as_ref()).await?;
    }
    let seen = on_store!(opened, |ledger, _| all(ledger, &operator, tenant.as_ref()).await)?;
    if seen.is_empty() {
        known::check(&operator, tenant.as_ref(), None)?;
    }
    match globals.output {
        Format::Json => seen.iter().for_each(|seen| out::json(&shown::facts(seen))),
        Format::Table if seen.is_empty() => out::complain("no schedules"),
        Format::Table => out::line(shown::of_all(&seen)),
    }
    Ok(Exit::Done)
}

async fn all(
    ledger: &impl Ledger,
    operator: &Operator,
    only: Option<&TenantId>,
) -> Result<Vec<Seen>, Failure> {
    let (config, now) = (operator.config()?, SystemClock.now());
    let mut seen = Vec::new();
    for schedule in &config.schedules {
        let tenants = schedule.tenants.iter().filter(|tenant| only.is_none_or(|only| only == *tenant));
        for tenant in tenants.filter(|tenant| operator.may_see(tenant)) {
            let standing = standing(ledger, config, schedule, tenant, now).await?;
            seen.push(Seen { schedule: schedule.clone(), tenant: tenant.clone(), standing });
        }
    }
    Ok(seen)
}
