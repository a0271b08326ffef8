//! `waybill hold add`, `lift` and `list`: pause a destination or a tenant, quarantine a class of
//! payloads, or gate everything. The workers see it within 10 s.

use waybill_domain::authority::Book;
use waybill_domain::destination::EventPattern;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::order::{Hold, Order, OrderBody, OrderId};
use waybill_service::acts::all_open;
use waybill_service::config::Config;
use waybill_service::holds::{HoldAct, book_of};
use waybill_service::office::Office;

use super::operator::{Operator, desk};
use super::redrive::orders_of;
use super::{Globals, destination, tenant, why};
use crate::backend::on_office;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::orders;

/// What can be done about holds.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Keep deliveries from going: it costs no attempt, and their deadlines go on
    Add {
        #[command(flatten)]
        what: What,
        /// Only with this version of the payload; beside --type
        #[arg(long, requires = "event_type", value_name = "N")]
        payload_version: Option<u32>,
        /// Why, for the audit
        #[arg(long, value_parser = why)]
        why: String,
    },
    /// Let them go again, earliest deadline first
    Lift {
        /// The hold (hld_…)
        #[arg(value_parser = hold_id)]
        hold: OrderId,
        /// Why, for the audit
        #[arg(long, value_parser = why)]
        why: String,
    },
    /// The holds in force
    List {
        /// Those that were lifted, too
        #[arg(long)]
        all: bool,
    },
}

/// What is held.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct What {
    /// All deliveries to this destination
    #[arg(long, value_parser = destination, conflicts_with_all = ["tenant", "event_type", "all"])]
    destination: Option<DestinationName>,
    /// All deliveries of this tenant; beside --type, only its own
    #[arg(long, value_parser = tenant, conflicts_with = "all")]
    tenant: Option<TenantId>,
    /// Events of this type, or of those that begin like this, such as lease.*
    #[arg(long = "type", value_name = "PATTERN", value_parser = super::redrive::pattern, conflicts_with = "all")]
    event_type: Option<EventPattern>,
    /// Everything
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(globals: &Globals, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Add { what, payload_version, why } => add(globals, what, payload_version, &why).await,
        Command::Lift { hold, why } => {
            let opened = globals.backend().open().await?;
            let operator = Operator::of(globals, &opened, "hold lift").await?;
            on_office!(opened, |_, office| {
                // They may know of one across tenants, and not lift it.
                if let Some(order) = in_force(office, &operator).await?.iter().find(|order| order.id == hold)
                {
                    operator.check(&opened, &order.book).await?;
                }
                let books = operator.books(office).await?;
                let act = desk(office).lift(&hold, &books, operator.name()?, &why).await?;
                Ok(say(globals.output, &act, "lifted"))
            })
        }
        Command::List { all } => {
            let opened = globals.backend().open().await?;
            let operator = Operator::of(globals, &opened, "hold list").await?;
            on_office!(opened, |_, office| list(globals.output, office, &operator, all).await)
        }
    }
}

async fn add(
    globals: &Globals,
    what: What,
    payload_version: Option<u32>,
    why: &str,
) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "hold add").await?;
    let What { destination, tenant, event_type, all } = what;
    let rule = match (destination, event_type) {
        (Some(name), _) => {
            let is_known = |config: &Config| {
                let known = config.destinations.get(&name);
                known.is_some_and(|known| known.tenants.iter().any(|tenant| operator.may_see(tenant)))
            };
            if !is_known(operator.config()?) {
                return Err(Failure::failed(format!("there is no destination {name}")));
            }
            HoldRule::Destination(name)
        }
        (None, Some(types)) => {
            let tenant = operator.tenant(&opened, tenant.as_ref()).await?;
            HoldRule::Type { types, payload_version, tenant }
        }
        (None, None) => match tenant {
            Some(tenant) => HoldRule::Tenant(tenant),
            None if all => HoldRule::All,
            None => {
                return Err(Failure::wrong_input(
                    "--destination, --tenant, --type or --all says what to hold",
                ));
            }
        },
    };
    let book = match &rule {
        // It needs no configuration to be held.
        HoldRule::Tenant(tenant) => Book::Tenant(tenant.clone()),
        HoldRule::Type { tenant, .. } => Book::from(tenant.clone()),
        HoldRule::All => Book::Across,
        rule => book_of(rule, operator.config()?),
    };
    operator.check(&opened, &book).await?;
    on_office!(opened, |_, office| {
        let act = desk(office).place(book, rule, operator.name()?, why).await?;
        Ok(say(globals.output, &act, "placed"))
    })
}

fn say(output: Format, act: &HoldAct, done: &str) -> Exit {
    let (order, already) = match act {
        HoldAct::Done(order) => (order, false),
        HoldAct::Already(order) => (order, true),
    };
    let Some(hold) = hold_of(order) else { return Exit::Done };
    match output {
        Format::Json => {
            let mut facts = orders::of_hold(order, hold);
            facts.insert("already".to_owned(), already.into());
            out::json(&facts);
        }
        Format::Table => {
            let was = if already { format!("was {done} already") } else { done.to_owned() };
            out::line(format_args!("{} {was}", order.id));
            out::line(orders::of_holds(&[(order, hold)]));
        }
    }
    Exit::Done
}

fn hold_of(order: &Order) -> Option<&Hold> {
    match &order.body {
        OrderBody::Hold(hold) => Some(hold),
        _ => None,
    }
}

async fn list(output: Format, office: &impl Office, operator: &Operator, all: bool) -> Result<Exit, Failure> {
    let mut found = match all {
        true => orders_of(office, &operator.books(office).await?, |order| hold_of(order).is_some()).await?,
        false => in_force(office, operator).await?,
    };
    found.sort_by(|a, b| a.id.cmp(&b.id));
    let holds: Vec<(&Order, &Hold)> =
        found.iter().filter_map(|order| Some((order, hold_of(order)?))).collect();
    match output {
        Format::Json => holds.iter().for_each(|(order, hold)| out::json(&orders::of_hold(order, hold))),
        Format::Table if holds.is_empty() => out::complain("no holds"),
        Format::Table => out::line(orders::of_holds(&holds)),
    }
    Ok(Exit::Done)
}

/// The holds in force that the operator may know of: in their own books, and those across tenants that
/// keep their own deliveries back too, where the store lets them read these.
pub(super) async fn in_force(office: &impl Office, operator: &Operator) -> Result<Vec<Order>, Failure> {
    let mut orders = match operator.may_read_across() {
        true => all_open(office).await?,
        false => {
            let mut own = Vec::new();
            for book in operator.books(office).await? {
                own.extend(office.open_orders_of(&book).await?);
            }
            own
        }
    };
    orders.retain(|order| match (hold_of(order), &order.book) {
        (None, _) => false,
        (Some(_), Book::Tenant(tenant)) => operator.may_see(tenant),
        (Some(_), Book::Across) if operator.is_across() => true,
        (Some(hold), Book::Across) => match &hold.rule {
            HoldRule::All | HoldRule::Type { tenant: None, .. } => true,
            HoldRule::Destination(name) | HoldRule::Suspended(name) => {
                let of = operator.config_at_hand().and_then(|config| config.destinations.get(name));
                of.is_some_and(|of| of.tenants.iter().any(|tenant| operator.may_see(tenant)))
            }
            _ => false,
        },
    });
    Ok(orders)
}

fn hold_id(text: &str) -> Result<OrderId, String> {
    match OrderId::parse(text) {
        Ok(id) if text.starts_with("hld_") => Ok(id),
        _ => Err("is not the ID of a hold (hld_ and 26 digits; waybill hold list shows them)".to_owned()),
    }
}
