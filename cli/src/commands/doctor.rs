//! `waybill doctor`: looks at an installation, and says what to mend. Changes nothing, and sends nothing:
//! a recipient is connected to and greeted, no more.

use std::path::{Path, PathBuf};

use futures::future::join_all;
use serde_json::json;
use waybill_domain::attempt::Phase;
use waybill_domain::destination::Destination;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_http::HttpRecipient;
use waybill_service::config::Config;
use waybill_service::config_file::{Rules, SecretStores, parse};
use waybill_service::examination::{Found, Verdict, of_clock};
use waybill_service::office::Revisions;
use waybill_service::ports::{Clock as _, Inbox as _};
use waybill_system::SystemClock;

use super::Globals;
use super::config::{DEFAULT_FILE, Unusable, locality, rules, text};
use super::operator::Operator;
use crate::backend::{Backend, Opened, Store, on_office};
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::serve::secrets::unusable;
use crate::show::escape::escaped;

/// What is looked at.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file that is to be in force
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
    /// Take recipients on this machine and plain HTTP, for local development
    #[arg(long)]
    allow_local: bool,
}

pub(super) async fn run(globals: &Globals, arguments: Arguments) -> Result<Exit, Failure> {
    let rules = rules(&globals.backend(), locality(arguments.allow_local))?;
    let found = examined(globals, &arguments.config, rules).await?;
    match globals.output {
        Format::Json => found.iter().for_each(|Found { what, verdict, says }| {
            out::json(&json!({ "what": what, "verdict": verdict.as_str(), "says": says }));
        }),
        Format::Table => {
            let width = found.iter().map(|one| one.what.len()).max().unwrap_or_default();
            for Found { what, verdict, says } in &found {
                out::line(format!("{:<8} {what:<width$}  {}", verdict.as_str(), escaped(says)));
            }
        }
    }
    let worst = found.iter().map(|one| one.verdict).max();
    Ok(if worst == Some(Verdict::Mend) { Exit::Failed } else { Exit::Done })
}

async fn examined(globals: &Globals, file: &Path, rules: Rules) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    let document = of_file(file, rules, &mut found);
    let given = document.as_deref().and_then(|text| parse(text, rules).ok());
    let backend = globals.backend();
    if let Some(path) = backend.data_file().filter(|path| !path.exists()) {
        let says = format!("{} is not there yet: waybill serve makes it", path.display());
        found.push(Found::unknown("data file", says));
        of_config(given.as_ref(), rules, |_| true, &mut found).await;
        return Ok(found);
    }
    let opened = match backend.open().await {
        Ok(opened) => opened,
        Err(failure) => {
            found.push(Found::mend("store", failure.to_string()));
            of_config(given.as_ref(), rules, |_| true, &mut found).await;
            return Ok(found);
        }
    };
    of_store(&opened, &backend, &mut found).await?;
    let operator = match Operator::of(globals, &opened, "doctor").await {
        Ok(operator) => operator,
        Err(failure) if failure.exit == Exit::Refused => return Err(failure),
        Err(failure) => {
            found.push(Found::mend("configuration in force", failure.to_string()));
            of_config(given.as_ref(), rules, |_| true, &mut found).await;
            return Ok(found);
        }
    };
    on_office!(opened, |_, office| of_revision(office, document.as_deref(), &mut found).await?);
    let may_know =
        |destination: &Destination| destination.tenants.iter().any(|tenant| operator.may_see(tenant));
    of_config(operator.config_at_hand().or(given.as_ref()), rules, may_know, &mut found).await;
    Ok(found)
}

/// The file; what it says, where that can be put in force.
fn of_file(file: &Path, rules: Rules, found: &mut Vec<Found>) -> Option<String> {
    const WHAT: &str = "configuration file";
    let read = text(file).and_then(|document| match parse(&document, rules) {
        Ok(_) => Ok(document),
        Err(faults) => Err(Unusable::Faulty(faults)),
    });
    let name = file.display();
    match read {
        Ok(document) => {
            found.push(Found::fine(WHAT, format!("{name} has no fault")));
            return Some(document);
        }
        Err(Unusable::Missing) => {
            found.push(Found::unknown(WHAT, format!("{name} is not there; --config names another one")));
        }
        Err(Unusable::Unread(why)) => found.push(Found::mend(WHAT, format!("{name}: {why}"))),
        Err(Unusable::Faulty(faults)) => {
            found.extend(faults.iter().map(|fault| Found::mend(WHAT, format!("{name}: {fault}"))));
        }
    }
    None
}

async fn of_store(opened: &Opened, backend: &Backend, found: &mut Vec<Found>) -> Result<(), Failure> {
    match opened {
        Opened::Embedded(store) => {
            found.push(Found::fine("data file", format!("{backend} can be read")));
            found.extend(of_messages(store).await?);
        }
        #[cfg(feature = "aws")]
        Opened::Aws(store) => {
            found.push(Found::fine("caller", store.caller.arn().to_owned()));
            found.extend(store.examined().await?);
        }
    }
    Ok(())
}

/// For how long a message may lie before somebody should have come for it.
const PATIENCE: DurationMs = DurationMs::from_secs(60);

async fn of_messages(store: &Store) -> Result<Option<Found>, Failure> {
    const WHAT: &str = "queue";
    let Some(at) = store.next_visible_at().await? else { return Ok(Some(Found::fine(WHAT, "is empty"))) };
    let waits = SystemClock.now().since(at);
    Ok(Some(match waits > PATIENCE {
        true => {
            Found::mend(WHAT, format!("has had a message to be worked on for {waits}: start waybill serve"))
        }
        false => Found::fine(WHAT, "nothing waits for a worker"),
    }))
}

/// What is in force, and whether the file is that.
async fn of_revision(
    office: &impl Revisions,
    document: Option<&str>,
    found: &mut Vec<Found>,
) -> Result<(), Failure> {
    const WHAT: &str = "configuration in force";
    let Some(revision) = office.in_force().await? else {
        let says =
            "none was applied yet: waybill config apply FILE --why WHY, or waybill serve --config FILE";
        found.push(Found::mend(WHAT, says));
        return Ok(());
    };
    // Whoever applied it had a clock, too: it cannot have been in the future.
    let now: TimeMs = SystemClock.now();
    if revision.signed.at > now {
        found.push(of_clock(now, revision.signed.at, "the one by which the configuration was applied"));
    }
    let stored = office.document(&revision.revision).await?;
    let differs = document.is_some_and(|document| stored.as_deref() != Some(document));
    found.push(match differs {
        true => Found::unknown(
            WHAT,
            format!(
                "{} says something else than the file: waybill config diff shows what",
                revision.revision
            ),
        ),
        false => Found::fine(WHAT, revision.revision.to_string()),
    });
    Ok(())
}

/// Secrets, and the way to each recipient.
async fn of_config(
    config: Option<&Config>,
    rules: Rules,
    may_know: impl Fn(&Destination) -> bool,
    found: &mut Vec<Found>,
) {
    let Some(config) = config else { return };
    // On AWS the functions resolve secrets, under their own roles.
    if rules.secrets == SecretStores::Environment {
        let lacking = unusable(config).await;
        if lacking.is_empty() {
            found.push(Found::fine("secrets", "every reference resolves in this environment"));
        }
        found.extend(lacking.iter().map(|one| Found::mend("secrets", format!("{one}; as seen from here"))));
    }
    let recipient = &HttpRecipient::new(SystemClock, rules.locality);
    let known = config.destinations.values().filter(|destination| may_know(destination));
    let reaching = known.map(async |destination| {
        let what = format!("destination {}", destination.name);
        match recipient.reach(destination).await {
            Ok(Phase::Tls) => Found::fine(what, "is reached, and its certificate is good"),
            Ok(_) => Found::fine(what, "is reached, in the clear"),
            Err(why) => Found::mend(what, format!("is not reached from here: {why}")),
        }
    });
    found.extend(join_all(reaching).await);
}
