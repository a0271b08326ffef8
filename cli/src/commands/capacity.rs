//! `waybill capacity`: what an outage leaves, reckoned from what it is told, or from what the ledger shows.

mod ledger;

use std::path::PathBuf;

use waybill_domain::budget::Rate;
use waybill_domain::capacity::Load;
use waybill_domain::identity::DestinationName;
use waybill_domain::time::{DurationMs, TimeMs};

use super::{Globals, destination, moment, refused};
use crate::exit::{Exit, Failure, in_words};
use crate::out::{self, Format};
use crate::show::capacity as shown;

/// What it is reckoned from.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Measure in the ledger what the line does not say, of deliveries to --destination; says where each
    /// figure comes from, and refuses where there is too little to measure
    #[arg(long, requires = "destination")]
    from_ledger: bool,
    /// Whose deliveries are measured
    #[arg(long, requires = "from_ledger", value_parser = destination)]
    destination: Option<DestinationName>,
    /// Measure deliveries first queued since this time (RFC 3339), or within this span, as far as they are
    /// among the newest 10000 of the destination's tenants, in equal parts, or the newest 200 of each tenant
    /// where that is more; older ones count where they wait [default: 1h]
    #[arg(long, requires = "from_ledger", value_parser = moment)]
    since: Option<TimeMs>,
    /// Deliveries that come in, per second
    #[arg(long, value_name = "N", value_parser = positive, required_unless_present = "from_ledger")]
    arrivals_per_s: Option<f64>,
    /// How long the recipient is down, such as 1h; measured: as long as what waits took to come in
    #[arg(long, value_name = "SPAN", value_parser = span, required_unless_present = "from_ledger")]
    outage: Option<DurationMs>,
    /// How long one request takes, such as 250ms; measured: the mean from claim to settle, and what passes until the next has the place
    #[arg(long, value_name = "SPAN", value_parser = span_above_zero, required_unless_present = "from_ledger")]
    service_time: Option<DurationMs>,
    /// Requests at once as things stand; measured: the destination's budget in force, or what a hold is eased to
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), required_unless_present = "from_ledger")]
    concurrency: Option<u32>,
    /// Requests at once that the recipient can bear [default: --concurrency]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    safe_concurrency: Option<u32>,
    /// Requests that may start in a span, such as 20/s; measured: the destination's budget in force
    /// [default: as many as the concurrency allows]
    #[arg(long, value_parser = rate)]
    rate: Option<Rate>,
    /// Requests beyond one for each delivery (retries, duplicates), in percent; measured: of what succeeded
    /// [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    duplicates: Option<f64>,
    /// From the recipient's return to the deadline of what waits, such as 2h; measured: from now to the
    /// nearest that has not come
    #[arg(long, value_name = "SPAN", value_parser = span_above_zero, required_unless_present = "from_ledger")]
    deadline: Option<DurationMs>,
    /// Draw backlog and slack over time into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Reckons, shows, and draws where it is asked to.
pub(super) async fn run(globals: &Globals, arguments: &Arguments) -> Result<Exit, Failure> {
    let (load, origins) = match (&arguments.destination, arguments.load()) {
        (Some(destination), _) => ledger::measured(globals, arguments, destination).await?,
        (None, Some(load)) => (load, Vec::new()),
        (None, None) => return Err(Failure::wrong_input("capacity needs its figures, or --from-ledger")),
    };
    if load.safe_concurrency < load.concurrency {
        let said = format!(
            "--safe-concurrency {} is less than --concurrency {}",
            load.safe_concurrency, load.concurrency
        );
        return Err(Failure::wrong_input(format!(
            "{said}: the recipient would be asked for more than it bears"
        )));
    }
    let outlook = load.outlook();
    if let Some(file) = &arguments.svg {
        let unwritten = |error| Failure::failed(format!("{}: {}", file.display(), in_words(&error)));
        std::fs::write(file, shown::picture(&load)).map_err(unwritten)?;
    }
    match globals.output {
        Format::Json => out::json(&shown::facts(&load, &outlook, &origins)),
        Format::Table => out::line(shown::table(&load, &outlook, &origins)),
    }
    Ok(Exit::Done)
}

impl Arguments {
    /// What the line says, if it says everything.
    fn load(&self) -> Option<Load> {
        let concurrency = self.concurrency?;
        Some(Load {
            arrivals_per_s: self.arrivals_per_s?,
            outage: self.outage?,
            service_time: self.service_time?,
            concurrency,
            safe_concurrency: self.safe_concurrency.unwrap_or(concurrency),
            rate_per_s: self.rate.map(Rate::per_s),
            duplicates_percent: self.duplicates.unwrap_or(0.0),
            deadline: self.deadline?,
        })
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    Rate::parse("rate", text).map_err(refused)
}

fn span(text: &str) -> Result<DurationMs, String> {
    DurationMs::parse("span", text).map_err(refused)
}

fn span_above_zero(text: &str) -> Result<DurationMs, String> {
    let span = span(text)?;
    if span == DurationMs::ZERO { Err("is 0 (must be longer)".to_owned()) } else { Ok(span) }
}

fn positive(text: &str) -> Result<f64, String> {
    let read = text.parse().ok().filter(|n| (0.001..=1_000_000.0).contains(n));
    read.ok_or_else(|| "is not such a number (from 0.001 to 1000000)".to_owned())
}

fn percent(text: &str) -> Result<f64, String> {
    let read = text.parse().ok().filter(|n| (0.0..=1_000.0).contains(n));
    read.ok_or_else(|| "is not such a number (from 0 to 1000)".to_owned())
}
