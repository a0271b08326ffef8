//! `waybill capacity`: what an outage leaves, reckoned from what it is told. Reads no ledger.

use std::path::PathBuf;

use waybill_domain::capacity::Load;
use waybill_domain::time::DurationMs;

use super::{Globals, refused};
use crate::exit::{Exit, Failure, in_words};
use crate::out::{self, Format};
use crate::show::capacity as shown;

/// What it is reckoned from.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Deliveries that come in, per second
    #[arg(long, value_name = "N", value_parser = positive)]
    arrivals_per_s: f64,
    /// How long the recipient is down, such as 1h
    #[arg(long, value_name = "SPAN", value_parser = span)]
    outage: DurationMs,
    /// How long one request takes, such as 250ms
    #[arg(long, value_name = "SPAN", value_parser = span_above_zero)]
    service_time: DurationMs,
    /// Requests at once as things stand
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: u32,
    /// Requests at once that the recipient can bear [default: --concurrency]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    safe_concurrency: Option<u32>,
    /// Requests beyond one for each delivery (retries, duplicates), in percent
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "0")]
    duplicates: f64,
    /// From the recipient's return to the deadline of what waits, such as 2h
    #[arg(long, value_name = "SPAN", value_parser = span_above_zero)]
    deadline: DurationMs,
    /// Draw backlog and slack over time into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Reckons, shows, and draws where it is asked to.
pub(super) fn run(globals: &Globals, arguments: &Arguments) -> Result<Exit, Failure> {
    let safe_concurrency = arguments.safe_concurrency.unwrap_or(arguments.concurrency);
    if safe_concurrency < arguments.concurrency {
        let said = format!(
            "--safe-concurrency {safe_concurrency} is less than --concurrency {}",
            arguments.concurrency
        );
        return Err(Failure::wrong_input(format!(
            "{said}: the recipient would be asked for more than it bears"
        )));
    }
    let load = Load {
        arrivals_per_s: arguments.arrivals_per_s,
        outage: arguments.outage,
        service_time: arguments.service_time,
        concurrency: arguments.concurrency,
        safe_concurrency,
        duplicates_percent: arguments.duplicates,
        deadline: arguments.deadline,
    };
    let outlook = load.outlook();
    if let Some(file) = &arguments.svg {
        let unwritten = |error| Failure::failed(format!("{}: {}", file.display(), in_words(&error)));
        std::fs::write(file, shown::picture(&load)).map_err(unwritten)?;
    }
    match globals.output {
        Format::Json => out::json(&shown::facts(&load, &outlook)),
        Format::Table => out::line(shown::table(&load, &outlook)),
    }
    Ok(Exit::Done)
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
