//! `waybill destinations list` and `show`: the recipients in the configuration in force, with whom to
//! ask, what is used of their budgets, what is held, and what is dead.

use std::sync::Arc;

use waybill_domain::destination::Destination;
use waybill_domain::identity::DestinationName;
use waybill_domain::order::{Order, OrderBody};
use waybill_service::config::Config;
use waybill_service::held::count_held;
use waybill_service::office::Office;
use waybill_service::ports::{Catalogue, Clock as _, DeadLetterGroup, Ledger};
use waybill_system::SystemClock;

use super::holds::in_force;
use super::operator::Operator;
use super::{Globals, destination, known};
use crate::backend::on_office;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::destinations::{self as shown, Seen};
use crate::show::standing::Standing;

/// What can be asked of destinations.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// All of them, one line each
    List,
    /// One of them
    Show {
        /// Its name in the configuration
        #[arg(value_parser = destination)]
        destination: DestinationName,
    },
}

/// How many held deliveries are counted of each destination, where all are listed, and of one.
const COUNTED: [usize; 2] = [100, 1000];

pub(super) async fn run(globals: &Globals, command: Command) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    match command {
        Command::List => {
            let operator = Operator::of(globals, &opened, "destinations list").await?;
            on_office!(opened, |ledger, office| {
                let (config, mut seen) = all(ledger, office, &operator).await?;
                for seen in &mut seen {
                    look(ledger, &operator, &config, seen, COUNTED[0]).await?;
                }
                match globals.output {
                    Format::Json => seen.iter().for_each(|seen| out::json(&shown::facts(seen))),
                    Format::Table if seen.is_empty() => out::complain("no destinations"),
                    Format::Table => out::line(shown::of_all(&seen)),
                }
                Ok(Exit::Done)
            })
        }
        Command::Show { destination } => {
            let operator = Operator::of(globals, &opened, "destinations show").await?;
            on_office!(opened, |ledger, office| {
                let (config, all) = all(ledger, office, &operator).await?;
                let Some(mut seen) = all.into_iter().find(|seen| seen.destination.name == destination) else {
                    return Err(known::no_destination(operator.config()?, &operator, &destination));
                };
                look(ledger, &operator, &config, &mut seen, COUNTED[1]).await?;
                match globals.output {
                    Format::Json => out::json(&shown::facts(&seen)),
                    Format::Table => out::line(shown::of_one(&seen)),
                }
                Ok(Exit::Done)
            })
        }
    }
}

/// Every destination that serves a tenant whose matters the operator may know of, and of each what is
/// these tenants'; and the configuration under the holds in force.
async fn all(
    ledger: &impl Catalogue,
    office: &impl Office,
    operator: &Operator,
) -> Result<(Config, Vec<Seen>), Failure> {
    let holds = in_force(office, operator).await?;
    let config = operator.config()?.clone().under(&holds);
    let mut dead = Vec::new();
    if operator.is_across() {
        dead = ledger.dead_letter_summary(None).await?;
    } else {
        for tenant in operator.tenants() {
            dead.extend(ledger.dead_letter_summary(Some(tenant)).await?);
        }
    }
    let seen = config.destinations.values().map(|destination| seen(destination, &holds, &dead, operator));
    let seen = seen.filter(|seen| !seen.tenants.is_empty()).collect();
    Ok((config, seen))
}

fn seen(
    destination: &Arc<Destination>,
    holds: &[Order],
    dead: &[DeadLetterGroup],
    operator: &Operator,
) -> Seen {
    let tenants: Vec<_> =
        destination.tenants.iter().filter(|tenant| operator.may_see(tenant)).cloned().collect();
    let is_about = |order: &&Order| match &order.body {
        OrderBody::Hold(hold) => shown::touches(&hold.rule, &destination.name, &tenants),
        _ => false,
    };
    Seen {
        destination: destination.clone(),
        holds: holds.iter().filter(is_about).cloned().collect(),
        dead: dead.iter().filter(|group| group.destination == destination.name).cloned().collect(),
        tenants,
        standing: None,
    }
}

/// Looks at how it stands, where the store lets the operator read that. What several tenants share is told
/// to whoever may know of all of them.
async fn look(
    ledger: &impl Ledger,
    operator: &Operator,
    config: &Config,
    seen: &mut Seen,
    most: usize,
) -> Result<(), Failure> {
    if !operator.may_read_across() {
        return Ok(());
    }
    let name = &seen.destination.name;
    let usage = ledger.usage(name).await?.usage;
    let held = count_held(ledger, name, most, |key| operator.may_see(&key.tenant)).await?;
    let is_shared = seen.tenants.len() < seen.destination.tenants.len();
    let now = SystemClock.now();
    seen.standing = Some(Standing {
        budget: config.budget_of(&seen.destination).copied(),
        eased: config.eased.get(name).copied(),
        in_use: (!is_shared).then(|| usage.in_use(now)),
        suspension: usage.health.suspension().cloned(),
        failures_in_a_row: usage.health.failures_in_a_row(),
        held,
        now,
    });
    Ok(())
}
