//! Which configuration is in force when the work begins.
//!
//! The history of the configuration is kept in the data file. A file that says something new is put in
//! force, as `config apply` would; one that says what was in force before and is no longer changes
//! nothing: a start must not undo what an operator has decided since.

use std::path::{Path, PathBuf};

use waybill_domain::address::Locality;
use waybill_domain::audit;
use waybill_domain::authority::Book;
use waybill_service::acts::Desk;
use waybill_service::config::Config;
use waybill_service::config_file::{self, ConfigFault, Rules};
use waybill_service::office::{Office, Revision, Revisions};
use waybill_service::operators::authority_of;
use waybill_service::ports::{Clock, Dice};
use waybill_service::revisions::ApplyError;

use crate::commands::config::{self, Unusable};
use crate::exit::{Failure, said_once};

/// A configuration file that was read and found good.
#[derive(Debug)]
pub(crate) struct Given {
    file: PathBuf,
    text: String,
    config: Config,
}

impl Given {
    /// Reads the file, once, and checks it; `None` if there is no such file.
    pub(crate) fn read(file: &Path, rules: impl Into<Rules>) -> Result<Option<Self>, Failure> {
        let text = match config::text(file) {
            Ok(text) => text,
            Err(Unusable::Missing) => return Ok(None),
            Err(unusable) => return Err(unusable.of(file)),
        };
        let config = config_file::parse(&text, rules).map_err(|faults| listed(file, &faults))?;
        Ok(Some(Self { file: file.to_owned(), text, config }))
    }
}

/// The failure where there is neither a file nor a configuration in force.
pub(crate) fn nothing_given(file: &Path) -> Failure {
    let file = file.display();
    Failure::wrong_input(format!("{file}: there is no such configuration file; --config names it"))
}

fn listed(file: &Path, faults: &[ConfigFault]) -> Failure {
    let lines: Vec<String> = faults.iter().map(|fault| format!("{}: {fault}", file.display())).collect();
    Failure::wrong_input(lines.join("\n"))
}

/// Puts what was given in force, if it is new. Answers what a person should be warned of.
pub(super) async fn put_in_force<S: Office + Revisions, C: Clock, D: Dice>(
    desk: &Desk<'_, S, C, D>,
    given: &Given,
    rules: Rules,
    operator: Option<&str>,
) -> Result<Option<String>, Failure> {
    let revision = &given.config.revision;
    if let Some(in_force) = desk.office.in_force().await? {
        if in_force.revision == *revision {
            return Ok(None);
        }
        if desk.office.document(revision).await?.is_some() {
            return Ok(Some(warning(given, &in_force, rules.locality)));
        }
    }
    let by = starter(operator);
    if let Some(warning) = beyond_authority(desk, given, &by).await? {
        return Ok(Some(warning));
    }
    match desk.apply(&given.text, rules, &by, &reason(&given.file)).await {
        Ok(_) => Ok(None),
        Err(ApplyError::Faulty(faults)) => Err(listed(&given.file, &faults)),
        Err(ApplyError::Act(error)) => Err(Failure::failed(said_once(&error.to_string()))),
    }
}

fn warning(given: &Given, in_force: &Revision, locality: Locality) -> String {
    let (file, revision) = (given.file.display(), &given.config.revision);
    let switch = if locality == Locality::AllowLocal { " --allow-local" } else { "" };
    let Revision { number, revision: newer, signed, .. } = in_force;
    format!(
        "{file} is revision {revision}, which was in force before; revision {newer} (number {number}, put in \
         force by {} at {}) stays in force; waybill config apply {file}{switch} --why \"why\" brings {revision} back",
        signed.by, signed.at,
    )
}

/// What a person should be warned of where `by` may not change the configuration: nothing is put in force
/// by a start that `config apply` would not put in force. The attempt is entered.
async fn beyond_authority<S: Office + Revisions, C: Clock, D: Dice>(
    desk: &Desk<'_, S, C, D>,
    given: &Given,
    by: &str,
) -> Result<Option<String>, Failure> {
    let Some(in_force) = desk.office.in_force().await? else { return Ok(None) };
    let document = desk.office.document(&in_force.revision).await?.unwrap_or_default();
    // What this version cannot read binds nobody: the file that is given mends it.
    let Ok(config) = config_file::parse(&document, Locality::AllowLocal) else { return Ok(None) };
    let refusal = match authority_of(&config, by) {
        Err(error) => error.to_string(),
        Ok(authority) => match authority.check(&Book::Across) {
            Ok(()) => return Ok(None),
            Err(beyond) => beyond.to_string(),
        },
    };
    desk.enter_refusal(Book::Across, by, "serve", &refusal).await?;
    let file = given.file.display();
    Ok(Some(format!(
        "{file} is not put in force: {by} may not do that ({refusal}); revision {} stays in force",
        in_force.revision
    )))
}

/// Whoever started this: the operator who is named, or the user of this machine, if the environment says so.
fn starter(operator: Option<&str>) -> String {
    let of_machine = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let named = operator.map(str::to_owned).into_iter().chain(of_machine);
    named.filter_map(|name| audit::who(&name).ok()).next().unwrap_or_else(|| "serve".to_owned())
}

fn reason(file: &Path) -> String {
    audit::why(&format!("serve --config {}", file.display())).unwrap_or_else(|_| "serve --config".to_owned())
}
