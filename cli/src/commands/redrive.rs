//! `waybill redrive`: plan (writes nothing), start from a plan, stop, resume, status.
//!
//! What is started is carried out by the reconciler, and goes on when this command has ended.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use futures::future::try_join_all;
use serde_json::Value;
use waybill_domain::authority::Book;
use waybill_domain::identity::TenantId;
use waybill_domain::order::{Order, OrderBody, OrderId};
use waybill_domain::redrive::{ReleaseRate, Run, Selection, outcome_of};
use waybill_domain::time::TimeMs;
use waybill_service::office::Office;
use waybill_service::ports::{Catalogue, Clock as _, DeadLetterGroup, Ledger};
use waybill_service::redrive::orders::{RunAct, Start};
use waybill_service::redrive::plan::{Plan, Wish, plan};
use waybill_system::SystemClock;

use super::config::utf8;
use super::holds::{hold_of, in_force};
use super::operator::{Operator, desk};
use super::{Globals, known, refused, tenant, why};
use crate::backend::on_office;
use crate::exit::{Exit, Failure, in_words};
use crate::out::{self, Format};
use crate::show::runs::{self, Outcomes};
use crate::show::{orders, plan as show};

mod selection;

pub(super) use selection::pattern;

/// What can be done about releasing dead letters.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Count what a run would do, by destination and reason; changes nothing
    Plan(selection::Arguments),
    /// Start the run that a plan becomes; dead letters that ended later are not in it
    Start {
        /// The plan, as redrive plan --save FILE kept it
        plan: PathBuf,
        /// How many are released, for each destination, such as 20/s, 600/m or 1000/h
        #[arg(long, value_parser = rate)]
        rate: ReleaseRate,
        /// Release this many first, and wait for a review: resume releases the rest
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        sample: Option<u64>,
        /// Release nothing before this time (RFC 3339)
        #[arg(long, value_name = "TIME", value_parser = time)]
        not_before: Option<TimeMs>,
        /// Why, for the audit
        #[arg(long, value_parser = why)]
        why: String,
    },
    /// Stop a run: what it released and was not sent yet is held
    Stop(About),
    /// Let a stopped, halted or sampled run go on
    Resume(About),
    /// Where a run stands, or all of them
    Status {
        /// The run (rdr_…)
        #[arg(value_parser = run_id)]
        run: Option<OrderId>,
        /// Only if it is this tenant's
        #[arg(long, value_parser = tenant)]
        tenant: Option<TenantId>,
    },
}

/// Which run, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct About {
    /// The run (rdr_…)
    #[arg(value_parser = run_id)]
    run: OrderId,
    /// Only if it is this tenant's
    #[arg(long, value_parser = tenant)]
    tenant: Option<TenantId>,
    /// Why, for the audit
    #[arg(long, value_parser = why)]
    why: String,
}

pub(super) async fn run(globals: &Globals, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Plan(arguments) => make_plan(globals, arguments).await,
        Command::Start { plan, rate, sample, not_before, why } => {
            start(globals, &plan, Start { rate, sample, not_before }, &why).await
        }
        Command::Stop(About { run, tenant, why }) => {
            let opened = globals.backend().open().await?;
            let operator = Operator::of(globals, &opened, "redrive stop").await?;
            on_office!(opened, |ledger, office| {
                let books = operator.books_of(&opened, office, tenant.as_ref()).await?;
                let act = desk(office).stop(&run, &books, operator.name()?, &why).await?;
                say(globals.output, ledger, &act, "stopped", None).await
            })
        }
        Command::Resume(About { run, tenant, why }) => {
            let opened = globals.backend().open().await?;
            let operator = Operator::of(globals, &opened, "redrive resume").await?;
            on_office!(opened, |ledger, office| {
                let books = operator.books_of(&opened, office, tenant.as_ref()).await?;
                let act = desk(office).resume(&run, &books, operator.name()?, &why).await?;
                say(globals.output, ledger, &act, "resumed", None).await
            })
        }
        Command::Status { run, tenant } => status(globals, run.as_ref(), tenant.as_ref()).await,
    }
}

async fn make_plan(globals: &Globals, arguments: selection::Arguments) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "redrive plan").await?;
    let (mut selection, reviews, save) = arguments.read();
    selection.tenant = operator.tenant(&opened, selection.tenant.as_ref()).await?;
    on_office!(opened, |ledger, office| {
        let by = operator.name()?.to_owned();
        let wish = Wish { run: desk(office).new_id("rdr")?, by, selection, reviews };
        let made = plan(ledger, operator.config()?, wish, SystemClock.now()).await?;
        if made.groups.is_empty() {
            let selection = &made.selection;
            known::check(&operator, selection.tenant.as_ref(), selection.destination.as_ref())?;
            known::check_type_of_dead(ledger, selection).await?;
        }
        let holds = holding(office, &operator, &made).await?;
        if let Some(file) = &save {
            keep(file, &made)?;
        }
        match globals.output {
            Format::Table => {
                out::line(show::of_plan(&made, save.as_deref()));
                warn_of(&holds);
            }
            Format::Json => {
                let mut facts = show::facts(&made, save.as_deref());
                facts["holds"] = in_json(&holds);
                out::json(&facts);
            }
        }
        Ok(Exit::Done)
    })
}

fn keep(file: &Path, plan: &Plan) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(plan).expect("a plan has only string keys");
    text.push('\n');
    std::fs::write(file, text)
        .map_err(|error| Failure::failed(format!("{}: {}", file.display(), in_words(&error))))
}

/// A plan is a file, and may have been edited: whose matter it is counts as it stands there, and so does
/// the operator's authority.
async fn start(globals: &Globals, file: &Path, start: Start, why: &str) -> Result<Exit, Failure> {
    let plan = read(file)?;
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "redrive start").await?;
    operator.check(&opened, &plan.selection.book()).await?;
    plan.check(SystemClock.now())
        .map_err(|invalid| Failure::wrong_input(format!("{}: {invalid}", file.display())))?;
    on_office!(opened, |ledger, office| {
        check_names(ledger, &operator, &plan).await?;
        let act = desk(office).start(&plan, start, operator.name()?, why).await?;
        let holds = holding(office, &operator, &plan).await?;
        if globals.output == Format::Table {
            warn_of(&holds);
        }
        say(globals.output, ledger, &act, "started", Some(in_json(&holds))).await
    })
}

/// Refuses names that nothing has, as `plan` does. Those that the ledger has something of stay selectable.
async fn check_names(ledger: &impl Catalogue, operator: &Operator, plan: &Plan) -> Result<(), Failure> {
    let Selection { tenant, destination, .. } = &plan.selection;
    let Err(unknown) = known::check(operator, tenant.as_ref(), destination.as_ref()) else { return Ok(()) };
    let dead = ledger.dead_letter_summary(tenant.as_ref()).await?;
    let is_its = |group: &DeadLetterGroup| destination.as_ref().is_none_or(|name| group.destination == *name);
    if dead.iter().any(is_its) { Ok(()) } else { Err(unknown) }
}

/// The holds in force, of those that the operator may know of, that keep something of a plan back.
async fn holding(office: &impl Office, operator: &Operator, plan: &Plan) -> Result<Vec<Order>, Failure> {
    let mut holds = in_force(office, operator).await?;
    holds.retain(|order| hold_of(order).is_some_and(|hold| plan.is_touched_by(&hold.rule)));
    Ok(holds)
}

/// Released and held is not sent: whoever waits for outcomes wants to know why there are none.
fn warn_of(holds: &[Order]) {
    for (order, hold) in holds.iter().filter_map(|order| Some((order, hold_of(order)?))) {
        out::complain(format_args!("held: {}", orders::holds_back(order, hold)));
    }
}

fn in_json(holds: &[Order]) -> Value {
    holds.iter().filter_map(|order| Some(Value::from(orders::of_hold(order, hold_of(order)?)))).collect()
}

fn read(file: &Path) -> Result<Plan, Failure> {
    let shown = file.display();
    let bytes = std::fs::read(file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::wrong_input(format!(
            "{shown}: there is no such plan; waybill redrive plan --save {shown} makes one"
        )),
        _ => Failure::wrong_input(format!("{shown}: {}", in_words(&error))),
    })?;
    let text = utf8(bytes).map_err(|why| Failure::wrong_input(format!("{shown}: {why}")))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::wrong_input(format!("{shown}: is not a plan of a redrive: {error}")))
}

/// Says what was done, with what became of the run so far; for programs with the holds in its way, too,
/// where these were asked for.
async fn say(
    output: Format,
    ledger: &impl Ledger,
    act: &RunAct,
    done: &str,
    holds: Option<Value>,
) -> Result<Exit, Failure> {
    let (order, already) = (act.order(), matches!(act, RunAct::Already(_)));
    let Some(run) = run_of(order) else { return Ok(Exit::Done) };
    let seen = seen_now(ledger, order, run).await?;
    match output {
        Format::Json => {
            let mut facts = runs::facts(order, run, seen);
            facts.insert("already".to_owned(), already.into());
            facts.extend(holds.map(|holds| ("holds".to_owned(), holds)));
            out::json(&facts);
        }
        Format::Table => {
            let was = if already { format!("was {done} already") } else { done.to_owned() };
            out::line(format_args!("{} {was}", order.id));
            out::line(runs::of_run(order, run, seen));
        }
    }
    Ok(Exit::Done)
}

fn run_of(order: &Order) -> Option<&Run> {
    match &order.body {
        OrderBody::Redrive(run) => Some(run),
        _ => None,
    }
}

async fn status(globals: &Globals, id: Option<&OrderId>, tenant: Option<&TenantId>) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "redrive status").await?;
    on_office!(opened, |ledger, office| {
        let books = operator.books_of(&opened, office, tenant).await?;
        let Some(id) = id else {
            let found = orders_of(office, &books, |order| run_of(order).is_some()).await?;
            if found.is_empty() {
                known::check(&operator, tenant, None)?;
            }
            return all(globals.output, ledger, found).await;
        };
        let order = desk(office).find(id, &books).await?;
        let Some((order, run)) = order.as_ref().and_then(|order| Some((order, run_of(order)?))) else {
            return Err(Failure::failed(format!("there is no redrive run {id}")));
        };
        let seen = seen_now(ledger, order, run).await?;
        match globals.output {
            Format::Json => out::json(&runs::facts(order, run, seen)),
            Format::Table => out::line(runs::of_run(order, run, seen)),
        }
        Ok(Exit::Done)
    })
}

/// What the run noted, and what is known by now of those that it still watches: a sampled or a stopped
/// run looks no more, and its reviewer wants to know.
async fn seen_now(ledger: &impl Ledger, order: &Order, run: &Run) -> Result<Outcomes, Failure> {
    let mut seen = Outcomes { open: 0, ..Outcomes::noted(run) };
    let loading = run.watched.iter().map(|watched| ledger.load(&watched.delivery));
    for (watched, record) in run.watched.iter().zip(try_join_all(loading).await?) {
        match record.map(|record| outcome_of(watched, &record, order.id.as_str())) {
            Some(Ok(Some(true))) => seen.delivered += 1,
            Some(Ok(Some(false))) => seen.failed += 1,
            Some(Ok(None)) => seen.open += 1,
            // Another run released it since.
            Some(Err(_)) | None => {}
        }
    }
    Ok(seen)
}

async fn all(output: Format, ledger: &impl Ledger, mut orders: Vec<Order>) -> Result<Exit, Failure> {
    // Newest first: an identifier begins with its time.
    orders.sort_by(|a, b| b.id.cmp(&a.id));
    let found: Vec<(&Order, &Run)> =
        orders.iter().filter_map(|order| Some((order, run_of(order)?))).collect();
    match output {
        Format::Json => {
            for (order, run) in found {
                out::json(&runs::facts(order, run, seen_now(ledger, order, run).await?));
            }
        }
        Format::Table if found.is_empty() => out::complain("no redrive runs"),
        Format::Table => out::line(runs::of_runs(&found)),
    }
    Ok(Exit::Done)
}

/// How many orders are read at once.
const PAGE: usize = 100;

/// The orders of these books that are meant, newest first within each.
pub(super) async fn orders_of(
    office: &impl Office,
    books: &[Book],
    is_meant: impl Fn(&Order) -> bool,
) -> Result<Vec<Order>, Failure> {
    let mut found = Vec::new();
    for book in books {
        let mut from = None;
        loop {
            let page = office.orders(Some(book), PAGE, from.as_ref()).await?;
            found.extend(page.items.into_iter().filter(&is_meant));
            from = page.next;
            if from.is_none() {
                break;
            }
        }
    }
    Ok(found)
}

fn rate(text: &str) -> Result<ReleaseRate, String> {
    ReleaseRate::parse("rate", text).map_err(refused)
}

fn time(text: &str) -> Result<TimeMs, String> {
    TimeMs::parse("not-before", text).map_err(refused)
}

fn run_id(text: &str) -> Result<OrderId, String> {
    match OrderId::parse(text) {
        Ok(id) if text.starts_with("rdr_") => Ok(id),
        _ => Err("is not the ID of a run (rdr_ and 26 digits; waybill redrive status shows them)".to_owned()),
    }
}
