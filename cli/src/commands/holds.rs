//! `waybill hold add`, `lift` and `list`: pause a destination or a tenant, quarantine a class of
//! payloads, or gate everything; and let it go again. The workers see it within 10 s.

use std::num::NonZeroU32;

use waybill_domain::authority::Book;
use waybill_domain::destination::EventPattern;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::order::{Hold, Order, OrderBody, OrderId};
use waybill_service::acts::all_open;
use waybill_service::holds::{HoldAct, book_of, bounded};
use waybill_service::office::Office;
use waybill_service::ports::{Catalogue as _, Filter, Ledger};

use super::deliveries::each_held;
use super::lifting::{concurrency, lift};
use super::operator::{Operator, desk};
use super::redrive::orders_of;
use super::{Globals, destination, known, tenant, why};
use crate::backend::{Opened, on_office, on_store};
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::orders::{self, HeldCounts};

/// What can be done about holds.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Keep deliveries from going: it costs no attempt, and their deadlines go on
    Add {
        #[command(flatten)]
        what: What,
        /// Only with this version of the payload; beside --type
        // `requires` alone is waived where what it requires conflicts with what is given.
        #[arg(long, requires = "event_type", conflicts_with_all = ["destination", "all"], value_name = "N")]
        payload_version: Option<u32>,
        /// Why, for the audit
        #[arg(long, value_parser = why)]
        why: String,
    },
    /// Let them go again, earliest deadline first; with --concurrency a few at a time, as a first step
    Lift {
        /// The hold (hld_…)
        #[arg(value_parser = hold_id)]
        hold: OrderId,
        /// So many requests at once to each destination that it keeps back as a whole, and to none more than its
        /// own budget allows: the hold stays, until a lift without this
        #[arg(long, value_name = "N", value_parser = concurrency)]
        concurrency: Option<NonZeroU32>,
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
        Command::Lift { hold, concurrency, why } => lift(globals, &hold, concurrency, &why).await,
        Command::List { all } => {
            let opened = globals.backend().open().await?;
            let operator = Operator::of(globals, &opened, "hold list").await?;
            on_office!(opened, |ledger, office| list(globals.output, ledger, office, &operator, all).await)
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
            known::check_destination(operator.config()?, &operator, &name)?;
            HoldRule::Destination(name)
        }
        (None, Some(types)) => {
            let tenant = operator.tenant(&opened, tenant.as_ref()).await?;
            on_store!(opened, |ledger, _| {
                known::check_type(ledger, &operator, tenant.as_ref(), &types).await
            })?;
            if let Some(tenant) = &tenant {
                check_tenant(&opened, &operator, tenant).await?;
            }
            HoldRule::Type { types, payload_version, tenant }
        }
        (None, None) => match tenant {
            Some(tenant) => {
                operator.book(&opened, Some(&tenant)).await?;
                check_tenant(&opened, &operator, &tenant).await?;
                HoldRule::Tenant(tenant)
            }
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

/// A tenant that the configuration does not name, and of whom there is no delivery, is a slip.
async fn check_tenant(opened: &Opened, operator: &Operator, tenant: &TenantId) -> Result<(), Failure> {
    let filter = Filter { tenant: Some(tenant.clone()), ..Filter::default() };
    match known::check(operator, Some(tenant), None) {
        Ok(()) => Ok(()),
        Err(unknown) => {
            let any = on_store!(*opened, |ledger, _| ledger.list(&filter, 1, None).await)?;
            if any.items.is_empty() { Err(unknown) } else { Ok(()) }
        }
    }
}

pub(super) fn say(output: Format, act: &HoldAct, done: &str) -> Exit {
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
            let was = match (already, hold.lifted.is_some()) {
                (true, _) => format!("was {done} already"),
                (false, true) => done.to_owned(),
                (false, false) => format!("{done}; bites within a second (on AWS within ten)"),
            };
            out::line(format_args!("{} {was}", order.id));
            out::line(orders::of_holds(&[(order, hold)], None));
        }
    }
    Exit::Done
}

pub(super) fn hold_of(order: &Order) -> Option<&Hold> {
    match &order.body {
        OrderBody::Hold(hold) => Some(hold),
        _ => None,
    }
}

/// At how many held deliveries a listing of holds looks, to count them.
const MOST_COUNTED: usize = 10_000;

/// How many held deliveries each hold keeps back. One that several keep back counts for each.
async fn counts(
    ledger: &impl Ledger,
    operator: &Operator,
    holds: &[(&Order, &Hold)],
) -> Result<HeldCounts, Failure> {
    let mut counts = HeldCounts { of: vec![0; holds.len()], are_all: true };
    if holds.iter().all(|(_, hold)| hold.lifted.is_some()) {
        return Ok(counts);
    }
    let rule_of = |(order, hold): &(&Order, &Hold)| match operator.config_at_hand() {
        Some(config) => bounded(hold.rule.clone(), &order.book, config),
        None => hold.rule.clone(),
    };
    let rules: Vec<HoldRule> = holds.iter().map(rule_of).collect();
    let mut looked_at = 0;
    each_held(ledger, operator, None, |record| {
        counts.are_all = looked_at < MOST_COUNTED;
        if !counts.are_all {
            return false;
        }
        looked_at += 1;
        for (((_, hold), rule), count) in holds.iter().zip(&rules).zip(&mut counts.of) {
            *count += u64::from(hold.lifted.is_none() && rule.matches(&record));
        }
        true
    })
    .await?;
    Ok(counts)
}

async fn list(
    output: Format,
    ledger: &impl Ledger,
    office: &impl Office,
    operator: &Operator,
    all: bool,
) -> Result<Exit, Failure> {
    let mut found = match all {
        true => orders_of(office, &operator.books(office).await?, |order| hold_of(order).is_some()).await?,
        false => in_force(office, operator).await?,
    };
    found.sort_by(|a, b| a.id.cmp(&b.id));
    let holds: Vec<(&Order, &Hold)> =
        found.iter().filter_map(|order| Some((order, hold_of(order)?))).collect();
    // What is held stands by destination: a store that keeps tenants apart shows it to nobody of one.
    let counts = match operator.may_read_across() {
        true => Some(counts(ledger, operator, &holds).await?),
        false => None,
    };
    match output {
        Format::Json => {
            for (n, (order, hold)) in holds.iter().enumerate() {
                let mut facts = orders::of_hold(order, hold);
                if let Some(counts) = &counts {
                    facts.insert("held".to_owned(), counts.of[n].into());
                    facts.insert("held_is_all".to_owned(), counts.are_all.into());
                }
                out::json(&facts);
            }
        }
        Format::Table if holds.is_empty() => out::complain("no holds"),
        Format::Table => out::line(orders::of_holds(&holds, counts.as_ref())),
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
            HoldRule::All | HoldRule::Newer(_) | HoldRule::Type { tenant: None, .. } => true,
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
