//! Which configuration is in force when the work begins.
//!
//! The history of the configuration is kept in the data file. A file that says something new is put in
//! force, as `config apply` would; one that says what was in force before and is no longer changes
//! nothing: a start must not undo what an operator has decided since.

use std::path::{Path, PathBuf};

use waybill_domain::audit;
use waybill_service::acts::Desk;
use waybill_service::config::Config;
use waybill_service::config_file::{self, ConfigFault, Rules};
use waybill_service::office::{Office, Revision, Revisions};
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
) -> Result<Option<String>, Failure> {
    let revision = &given.config.revision;
    if let Some(in_force) = desk.office.in_force().await? {
        if in_force.revision == *revision {
            return Ok(None);
        }
        if desk.office.document(revision).await?.is_some() {
            return Ok(Some(warning(given, &in_force)));
        }
    }
    match desk.apply(&given.text, rules, &starter(), &reason(&given.file)).await {
        Ok(_) => Ok(None),
        Err(ApplyError::Faulty(faults)) => Err(listed(&given.file, &faults)),
        Err(ApplyError::Act(error)) => Err(Failure::failed(said_once(&error.to_string()))),
    }
}

fn warning(given: &Given, in_force: &Revision) -> String {
    let (file, revision) = (given.file.display(), &given.config.revision);
    let Revision { number, revision: newer, signed, .. } = in_force;
    format!(
        "{file} is revision {revision}, which was in force before; revision {newer} (number {number}, put in \
         force by {} at {}) stays in force; waybill config apply {file} --why \"why\" brings {revision} back",
        signed.by, signed.at,
    )
}

/// Whoever started this: the user of this machine, if the environment says so.
fn starter() -> String {
    let named = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    named.filter_map(|name| audit::who(&name).ok()).next().unwrap_or_else(|| "serve".to_owned())
}

fn reason(file: &Path) -> String {
    audit::why(&format!("serve --config {}", file.display())).unwrap_or_else(|_| "serve --config".to_owned())
}
