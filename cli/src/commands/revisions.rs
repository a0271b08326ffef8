//! `waybill config apply`, `diff`, `show`, `history` and `rollback`: what is in force, since when, by
//! whom and why. The configuration is everybody's: only an operator across tenants sees or changes it.

use std::path::{Path, PathBuf};

use waybill_domain::authority::{Authority, Book};
use waybill_domain::identity::ConfigRevision;
use waybill_service::config::Config;
use waybill_service::office::{Revision, Revisions};
use waybill_service::revisions::{ApplyError, Installed, differences};

use super::config::{DEFAULT_FILE, locality, read, say, text, warnings};
use super::operator::{Operator, desk};
use super::{Globals, why};
use crate::backend::on_office;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::revisions as shown;

/// What is put in force.
#[derive(Debug, clap::Args)]
pub(crate) struct Apply {
    /// The configuration file
    #[arg(default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// Why, for the audit
    #[arg(long, value_parser = why, required_unless_present = "dry_run")]
    why: Option<String>,
    /// Check it, show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take recipients on this machine and plain HTTP, for local development
    #[arg(long)]
    allow_local: bool,
}

/// What is put in force again.
#[derive(Debug, clap::Args)]
pub(crate) struct Rollback {
    /// Its revision, or its number in the history
    revision: String,
    /// Why, for the audit
    #[arg(long, value_parser = why)]
    why: String,
    /// Take recipients on this machine and plain HTTP, for local development
    #[arg(long)]
    allow_local: bool,
}

pub(super) async fn apply(globals: &Globals, arguments: Apply) -> Result<Exit, Failure> {
    let Apply { file, why, dry_run, allow_local } = arguments;
    let rules = super::config::rules(&globals.backend(), locality(allow_local))?;
    // Every fault, of the file and of those that it names, before the one text that is applied.
    let (config, document) = match read(&file, rules).and_then(|config| Ok((config, text(&file)?))) {
        Ok(read) => read,
        Err(unusable) => return say(unusable, &file, globals.output, "config apply"),
    };
    let opened = globals.backend().open_or_make().await?;
    let operator = Operator::of(globals, &opened, "config apply").await?;
    operator.check(&opened, &Book::Across).await?;
    on_office!(opened, |_, office| {
        let Some(why) = why.filter(|_| !dry_run) else {
            return compare(globals.output, office, &document).await;
        };
        if !has_somebody_across(&config) {
            out::complain(
                "warning: nobody will be able to apply another one: no operator has tenants = [\"*\"]",
            );
        }
        let installed = desk(office).apply(&document, rules, operator.name()?, &why).await;
        // As far as this process can see: what counts is the environment of the one that sends.
        for warning in warnings(&config, rules).await {
            out::complain(format_args!("warning, as seen from here: {warning}"));
        }
        installed.map(|installed| told(globals.output, &installed)).map_err(|error| failure(error, ""))
    })
}

/// Whether somebody may change the configuration again once this one is in force.
fn has_somebody_across(config: &Config) -> bool {
    config.operators.is_empty() || config.operators.values().any(|of| *of == Authority::Across)
}

pub(super) async fn roll_back(globals: &Globals, arguments: Rollback) -> Result<Exit, Failure> {
    let Rollback { revision, why, allow_local } = arguments;
    let rules = super::config::rules(&globals.backend(), locality(allow_local))?;
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "config rollback").await?;
    operator.check(&opened, &Book::Across).await?;
    on_office!(opened, |_, office| {
        let to = meant(office, &revision).await?;
        let installed = desk(office).roll_back(&to.revision, rules, operator.name()?, &why).await;
        let of = format!("configuration {} (number {}): ", to.revision, to.number);
        installed.map(|installed| told(globals.output, &installed)).map_err(|error| failure(error, &of))
    })
}

/// `of` says of which document faults are, where the line names none.
fn failure(error: ApplyError, of: &str) -> Failure {
    match error {
        ApplyError::Act(error) => error.into(),
        ApplyError::Faulty(faults) => {
            let faults: Vec<String> = faults.iter().map(|fault| format!("{of}{fault}")).collect();
            Failure::wrong_input(faults.join("\n"))
        }
    }
}

fn told(output: Format, installed: &Installed) -> Exit {
    match output {
        Format::Json => out::json(&shown::of_installed(installed)),
        Format::Table => out::line(shown::installed_in_words(installed)),
    }
    Exit::Done
}

pub(super) async fn diff(globals: &Globals, file: &Path) -> Result<Exit, Failure> {
    // What is refused may hold what nobody should read: a secret where a reference belongs.
    let rules = super::config::rules(&globals.backend(), locality(true))?;
    let document = match read(file, rules).and_then(|_| text(file)) {
        Ok(document) => document,
        Err(unusable) => return say(unusable, file, globals.output, "config diff"),
    };
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "config diff").await?;
    operator.check(&opened, &Book::Across).await?;
    on_office!(opened, |_, office| compare(globals.output, office, &document).await)
}

async fn compare(output: Format, office: &impl Revisions, document: &str) -> Result<Exit, Failure> {
    let before = match office.in_force().await? {
        Some(revision) => document_of(office, &revision.revision).await?,
        None => String::new(),
    };
    let diff = differences(&before, document);
    match output {
        Format::Json => diff.iter().for_each(out::json),
        Format::Table if diff.is_empty() => out::complain("no differences"),
        Format::Table => out::line(shown::of_differences(&diff)),
    }
    Ok(Exit::Done)
}

pub(super) async fn show(globals: &Globals, revision: Option<&str>) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "config show").await?;
    operator.check(&opened, &Book::Across).await?;
    on_office!(opened, |_, office| {
        let revision = match revision {
            Some(named) => meant(office, named).await?,
            None => office.in_force().await?.ok_or_else(none_applied)?,
        };
        let document = document_of(office, &revision.revision).await?;
        match globals.output {
            Format::Json => out::json(&shown::of_document(&revision, &document)),
            Format::Table => {
                out::line(format_args!("# {}", shown::in_words(&revision)));
                out::line(document.trim_end());
            }
        }
        Ok(Exit::Done)
    })
}

pub(super) async fn history(globals: &Globals) -> Result<Exit, Failure> {
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "config history").await?;
    operator.check(&opened, &Book::Across).await?;
    on_office!(opened, |_, office| {
        let mut all = Vec::new();
        each_revision(office, |revision| {
            all.push(revision);
            None::<()>
        })
        .await?;
        match globals.output {
            Format::Json => all.iter().for_each(|revision| out::json(&shown::of_revision(revision))),
            Format::Table if all.is_empty() => out::complain("no configuration was applied yet"),
            Format::Table => out::line(shown::of_history(&all)),
        }
        Ok(Exit::Done)
    })
}

/// How many revisions are read at once.
const PAGE: usize = 100;

/// Shows `look` every revision, newest first, until it answers.
async fn each_revision<T>(
    office: &impl Revisions,
    mut look: impl FnMut(Revision) -> Option<T>,
) -> Result<Option<T>, Failure> {
    let mut from = None;
    loop {
        let page = office.history(PAGE, from.as_ref()).await?;
        if let Some(found) = page.items.into_iter().find_map(&mut look) {
            return Ok(Some(found));
        }
        from = page.next;
        if from.is_none() {
            return Ok(None);
        }
    }
}

/// The newest revision of this name or number.
async fn meant(office: &impl Revisions, named: &str) -> Result<Revision, Failure> {
    let number = named.parse::<u64>().ok();
    let is_meant =
        |revision: &Revision| Some(revision.number) == number || revision.revision.as_str() == named;
    let found = each_revision(office, |revision| Some(revision).filter(is_meant)).await?;
    found.ok_or_else(|| {
        Failure::wrong_input(format!("there is no configuration {named}; waybill config history lists them"))
    })
}

async fn document_of(office: &impl Revisions, revision: &ConfigRevision) -> Result<String, Failure> {
    let missing = || Failure::failed(format!("the document of configuration {revision} is missing"));
    office.document(revision).await?.ok_or_else(missing)
}

fn none_applied() -> Failure {
    Failure::failed("no configuration was applied yet")
}
