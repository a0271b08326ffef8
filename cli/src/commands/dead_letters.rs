//! `waybill dead-letters summary` and `list`; `close` and `resolve` stand in [`endings`].

use waybill_domain::authority::Book;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::order::Decision;
use waybill_service::ports::{Catalogue, DeadLetterFilter};
use waybill_service::sweep::unknown_copies;

use super::listing::{PAGE, Rows};
use super::operator::Operator;
use super::{Globals, destination, endings, known, refused, tenant};
use crate::backend::on_store;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::{facts, table};

/// What can be done with dead letters.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Counted by destination and reason, with the oldest and the nearest deadline
    Summary {
        /// Only this tenant's
        #[arg(long, value_parser = tenant)]
        tenant: Option<TenantId>,
    },
    /// One by one, by destination and reason, oldest first
    List {
        /// Only this tenant's
        #[arg(long, value_parser = tenant)]
        tenant: Option<TenantId>,
        /// Only those to this destination
        #[arg(long, value_parser = destination)]
        destination: Option<DestinationName>,
        /// Only those that ended for this reason, such as attempts_exhausted
        #[arg(long, value_parser = reason)]
        reason: Option<DeadLetterReason>,
    },
    /// Copies in the dead-letter queue that belong to no delivery: they stay until somebody removes them
    Unknown,
    /// End dead letters with which nothing will be done
    Close(endings::Which),
    /// End dead letters whose effect is known to stand: they succeeded
    Resolve {
        /// The recipient is known to have applied them
        #[arg(long, required = true)]
        applied: bool,
        /// They have it although the evidence of every attempt says that none was applied; --why says how that is
        /// known
        #[arg(long)]
        against_evidence: bool,
        #[command(flatten)]
        which: endings::Which,
    },
}

pub(super) async fn run(globals: &Globals, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Summary { tenant } => summary(globals, tenant.as_ref()).await,
        Command::List { tenant, destination, reason } => {
            let opened = globals.backend().open().await?;
            let operator = Operator::of(globals, &opened, "dead-letters list").await?;
            let tenant = operator.tenant(&opened, tenant.as_ref()).await?;
            let filter = DeadLetterFilter { tenant, destination, reason, ended_before: None };
            on_store!(opened, |ledger, _| list(ledger, globals, &operator, &filter).await)
        }
        Command::Unknown => unknown(globals).await,
        Command::Close(which) => endings::run(globals, which, Decision::Close, false).await,
        Command::Resolve { applied: _, against_evidence, which } => {
            endings::run(globals, which, Decision::Resolve, !against_evidence).await
        }
    }
}

async fn summary(globals: &Globals, tenant: Option<&TenantId>) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "dead-letters summary").await?;
    let tenant = operator.tenant(&opened, tenant).await?;
    let groups = on_store!(opened, |ledger, _| ledger.dead_letter_summary(tenant.as_ref()).await)?;
    if groups.is_empty() {
        known::check(&operator, tenant.as_ref(), None)?;
    }
    match globals.output {
        Format::Json => groups.iter().for_each(|group| out::json(&facts::of_group(group))),
        Format::Table if groups.is_empty() => out::complain("no dead letters"),
        Format::Table => out::line(table::of_groups(&groups)),
    }
    Ok(Exit::Done)
}

async fn unknown(globals: &Globals) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "dead-letters unknown").await?;
    // Whose they are, nobody can say.
    operator.check(&opened, &Book::Across).await?;
    let (copies, more) = on_store!(opened, |ledger, queue| unknown_copies(ledger, queue).await)?;
    match globals.output {
        Format::Json => copies.iter().for_each(|copy| out::json(&facts::of_unknown_copy(copy))),
        Format::Table if copies.is_empty() => out::complain("every copy in the dead-letter queue is known"),
        Format::Table => out::line(table::of_unknown_copies(&copies)),
    }
    if more {
        out::complain("only the first thousand copies that are visible were looked at");
    }
    Ok(Exit::Done)
}

async fn list(
    store: &impl Catalogue,
    globals: &Globals,
    operator: &Operator,
    filter: &DeadLetterFilter,
) -> Result<Exit, Failure> {
    let mut rows = Rows::new(globals, operator, table::of_dead_letters);
    let mut from = None;
    loop {
        let page = store.dead_letters(filter, PAGE, from.as_ref()).await?;
        from = page.next;
        if !rows.take(page.items) || from.is_none() {
            break;
        }
    }
    let DeadLetterFilter { tenant, destination, .. } = filter;
    rows.finish("no dead letters", || known::check(operator, tenant.as_ref(), destination.as_ref()))
}

pub(super) fn reason(text: &str) -> Result<DeadLetterReason, String> {
    DeadLetterReason::try_from(text.to_owned()).map_err(|invalid| {
        let known: Vec<&str> = DeadLetterReason::all().map(DeadLetterReason::as_str).collect();
        refused(InvalidField { rule: format!("one of {}", known.join(", ")), ..invalid })
    })
}
