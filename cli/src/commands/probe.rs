//! `waybill probe D`: asks a recipient with signed test events whether it does what it should.
//!
//! The destination is the configuration's, with its URL, secrets and header fields, and everything that
//! guards a delivery guards the probe. The ledger is told nothing. A hold does not keep a probe back: it
//! is how one finds out whether the hold can be lifted.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use waybill_domain::destination::Destination;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::probe::{Heard, Opinion, judge};
use waybill_http::HttpRecipient;
use waybill_service::config_file::Rules;
use waybill_service::ports::Dice as _;
use waybill_system::{SystemClock, SystemDice};

use super::config::{load, locality};
use super::operator::Operator;
use super::{Globals, destination, known};
use crate::backend::Opened;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::probe as shown;

/// Whom to ask.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Its name in the configuration
    #[arg(value_parser = destination)]
    destination: DestinationName,
    /// A configuration file, instead of the configuration in force
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Send to recipients on this machine and over plain HTTP too, for local development
    #[arg(long)]
    allow_local: bool,
}

pub(super) async fn run(globals: &Globals, arguments: Arguments) -> Result<Exit, Failure> {
    let Arguments { destination: name, config, allow_local } = arguments;
    let (backend, locality) = (globals.backend(), locality(allow_local));
    // With a file of configuration, and secrets from the environment, no ledger is needed.
    let opened = match config.is_some() && backend.data_file().is_some() {
        true => None,
        false => Some(backend.open().await?),
    };
    let (destination, tenant) = match (config, &opened) {
        (None, Some(opened)) => in_force(globals, opened, &name).await?,
        (None, None) => return Err(known::unknown("destination", &name, &BTreeSet::new())),
        (Some(file), _) => {
            let rules = Rules { locality, secrets: backend.secret_stores(), worker_runs: None };
            let destinations = load(&file, rules)?.destinations;
            let found =
                destinations.get(&name).and_then(|it| Some((it.clone(), it.tenants.first()?.clone())));
            let known = destinations.keys().map(DestinationName::as_str).collect();
            found.ok_or_else(|| known::unknown("destination", &name, &known))?
        }
    };
    let recipient = HttpRecipient::new(SystemClock, locality);
    let heard = ask(opened.as_ref(), recipient, &destination, &tenant).await?;
    let findings = judge(&heard, destination.timeout);
    match globals.output {
        Format::Json => findings.iter().for_each(|finding| out::json(&shown::facts(&name, finding))),
        Format::Table => out::line(shown::of_findings(&findings)),
    }
    let is_bad = findings.iter().any(|finding| finding.opinion == Opinion::Bad);
    Ok(if is_bad { Exit::Failed } else { Exit::Done })
}

/// The destination in the configuration in force, and a tenant whose matters the operator may know of.
async fn in_force(
    globals: &Globals,
    opened: &Opened,
    name: &DestinationName,
) -> Result<(Arc<Destination>, TenantId), Failure> {
    let operator = Operator::of(globals, opened, "probe").await?;
    let config = operator.config()?;
    let found = config.destinations.get(name).and_then(|destination| {
        let tenant = destination.tenants.iter().find(|tenant| operator.may_see(tenant))?;
        Some((destination.clone(), tenant.clone()))
    });
    found.ok_or_else(|| known::no_destination(config, &operator, name))
}

/// Asks from here, with the secrets of the backend: on AWS whoever asks must be allowed to read them.
async fn ask(
    opened: Option<&Opened>,
    recipient: HttpRecipient<SystemClock>,
    destination: &Arc<Destination>,
    tenant: &TenantId,
) -> Result<Vec<Heard>, Failure> {
    let nonce = SystemDice.token();
    match opened {
        #[cfg(feature = "aws")]
        Some(Opened::Aws(store)) => {
            let recipient = recipient.with_secrets(store.secrets());
            Ok(recipient.probe(destination, tenant, nonce.as_str()).await?)
        }
        Some(Opened::Embedded(_)) | None => Ok(recipient.probe(destination, tenant, nonce.as_str()).await?),
    }
}
