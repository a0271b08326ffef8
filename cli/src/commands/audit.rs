//! `waybill audit list` and `verify`: who did what, when and why, and whether anybody was at it since.

use serde_json::json;
use waybill_domain::audit::{Entry, Verification};
use waybill_domain::authority::Book;
use waybill_domain::identity::TenantId;
use waybill_domain::time::TimeMs;
use waybill_service::office::Office;
use waybill_service::ports::PortResult;

use super::operator::Operator;
use super::{Globals, known, moment, tenant};
use crate::backend::on_office;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::audit as show;

/// What can be asked of the audit.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// The entries, oldest first
    List {
        /// Only this tenant's book
        #[arg(long, value_parser = tenant)]
        tenant: Option<TenantId>,
        /// Only those since this time (RFC 3339), or within this span (24h)
        #[arg(long, value_parser = moment)]
        since: Option<TimeMs>,
    },
    /// Whether an entry is missing or was altered, in every book that you may read
    Verify,
}

pub(super) async fn run(globals: &Globals, command: Command) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    match command {
        Command::List { tenant, since } => {
            let operator = Operator::of(globals, &opened, "audit list").await?;
            let book = operator.book(&opened, tenant.as_ref()).await?;
            on_office!(opened, |_, office| {
                // Across tenants: every book, the one across them among them.
                let books = if book == Book::Across { operator.books(office).await? } else { vec![book] };
                let entries = entries(office, &books, since).await?;
                if entries.is_empty() {
                    known::check(&operator, tenant.as_ref(), None)?;
                }
                match globals.output {
                    Format::Json => entries.iter().for_each(|entry| out::json(&show::of_entry(entry))),
                    Format::Table if entries.is_empty() => out::complain("no entries"),
                    Format::Table => out::line(show::of_entries(&entries)),
                }
                Ok(Exit::Done)
            })
        }
        Command::Verify => {
            let operator = Operator::of(globals, &opened, "audit verify").await?;
            on_office!(opened, |_, office| {
                let books = operator.books(office).await?;
                verify(globals.output, office, &books).await
            })
        }
    }
}

/// How many entries are read at once.
const PAGE: usize = 200;

/// Reads a book from its first entry on.
pub(super) async fn each_entry(
    office: &impl Office,
    book: &Book,
    mut take: impl FnMut(Entry),
) -> PortResult<()> {
    let mut from = None;
    loop {
        let page = office.entries(book, PAGE, from.as_ref()).await?;
        page.items.into_iter().for_each(&mut take);
        from = page.next;
        if from.is_none() {
            return Ok(());
        }
    }
}

/// The entries of these books, oldest first.
async fn entries(office: &impl Office, books: &[Book], since: Option<TimeMs>) -> PortResult<Vec<Entry>> {
    let mut entries = Vec::new();
    for book in books {
        each_entry(office, book, |entry| {
            if since.is_none_or(|since| entry.at >= since) {
                entries.push(entry);
            }
        })
        .await?;
    }
    // Within one book the places count, whatever the clocks of the writers said.
    if books.len() > 1 {
        entries.sort_by_key(|entry| entry.at);
    }
    Ok(entries)
}

async fn verify(output: Format, office: &impl Office, books: &[Book]) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    for book in books {
        // The head first: what is entered meanwhile comes after it.
        let head = office.head(book).await?;
        let (mut verification, mut count) = (Verification::of(book.clone()), 0_u64);
        each_entry(office, book, |entry| {
            verification.read(&entry);
            count += 1;
        })
        .await?;
        let broken = verification.finish(head.as_ref());
        if !broken.is_empty() {
            exit = Exit::Failed;
        }
        let faults = broken.iter();
        match output {
            Format::Json => out::json(&json!({
                "book": book.as_str(),
                "entries": count,
                "broken": faults.map(|b| json!({ "seq": b.seq, "fault": b.fault.as_str() })).collect::<Vec<_>>(),
            })),
            Format::Table if broken.is_empty() => {
                out::line(format_args!("{book}: {}, unbroken", crate::show::entries(count)));
            }
            Format::Table => {
                faults.for_each(|b| out::line(format_args!("{book}: entry {}: {}", b.seq, b.fault.as_str())));
            }
        }
    }
    Ok(exit)
}
