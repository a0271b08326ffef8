//! `waybill rehearse`: runs an example from end to end against a recipient of its own, prints the
//! record after each transition, and fails loudly if any promise is broken.

mod clock;
mod lease_payment;
mod narrated;
mod promises;
mod renewal_reminder;
mod stage;

use std::io::Write as _;
use std::path::PathBuf;

use waybill_domain::attempt::Attempt;
use waybill_domain::delivery::Record;
use waybill_domain::signature::SigningKey;
use waybill_service::ports::Ledger as _;
use waybill_service::publish::{PublishError, Published};
use waybill_testkit::server::Received;

use crate::exit::{Exit, Failure};
use crate::out;
use crate::show::timeline;
use promises::{Promise, of_every_delivery};
use stage::{SECRET, Stage};

/// What `rehearse` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which example
    #[arg(value_enum, default_value_t = Example::All)]
    example: Example,

    /// Also write every request that arrived to this file, as JSON lines, for an independent check
    #[arg(long, value_name = "FILE")]
    requests: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Example {
    /// A lease payment reaches an accounting system, through failures, with one effect
    LeasePayment,
    /// A reminder reaches its recipient before the cutoff, or is never sent
    RenewalReminder,
    /// One after the other
    All,
}

/// What a rehearsal found out.
#[derive(Debug, Default)]
pub(crate) struct Rehearsal {
    promises: Vec<Promise>,
    requests: Vec<Received>,
    timelines: Vec<String>,
}

/// Runs the examples.
pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    let mut requests = Vec::new();
    for example in [Example::LeasePayment, Example::RenewalReminder] {
        if arguments.example != Example::All && arguments.example != example {
            continue;
        }
        let mut rehearsal = Rehearsal::default();
        match example {
            Example::RenewalReminder => {
                out::line("━━ renewal-reminder");
                renewal_reminder::run(&mut rehearsal).await?;
            }
            _ => {
                out::line("━━ lease-payment");
                lease_payment::run(&mut rehearsal).await?;
            }
        }
        exit = exit.max(rehearsal.report());
        requests.append(&mut rehearsal.requests);
    }
    if let Some(path) = &arguments.requests {
        let failed = |error| Failure::failed(format!("{}: {error}", path.display()));
        let mut file = std::fs::File::create(path).map_err(failed)?;
        for request in &requests {
            writeln!(file, "{}", as_json(request)).map_err(failed)?;
        }
    }
    Ok(exit)
}

/// A new scene of the story.
fn scene(text: &str) {
    out::line("");
    let mut line = String::from(" ");
    for word in text.split_whitespace() {
        if line.len() + word.len() > 100 {
            out::line(&line);
            line = String::from(" ");
        }
        line.push(' ');
        line.push_str(word);
    }
    out::line(&line);
    out::line("");
}

impl Rehearsal {
    /// The one delivery of an event that must be accepted.
    fn published(&self, result: Result<Vec<Published>, PublishError>) -> Result<Published, Failure> {
        match result.map(|mut published| published.pop()) {
            Ok(Some(published)) => Ok(published),
            Ok(None) => Err(Failure::failed("the event was accepted, and went nowhere")),
            Err(error) => Err(Failure::failed(format!("the event was not accepted: {error}"))),
        }
    }

    fn keep(&mut self, promise: Promise) {
        self.promises.push(promise);
    }

    fn keep_all(&mut self, promises: Vec<Promise>) {
        self.promises.extend(promises);
    }

    /// The promises of every delivery, and its timeline as `deliveries show` prints it.
    async fn conclude(
        &mut self,
        stage: &Stage,
        record: &Record,
        attempts: &[Attempt],
    ) -> Result<(), Failure> {
        let requests = stage.recipient.requests_of(record.delivery.id.as_str());
        let payload = stage.store.payload(&record.delivery.key()).await?.unwrap_or_default();
        let key = SigningKey::parse("secret", SECRET)?;
        self.keep_all(of_every_delivery(record, &payload, &requests, &key));
        self.requests.extend(requests);
        self.timelines.push(timeline::timeline(record, attempts));
        Ok(())
    }

    fn report(&self) -> Exit {
        scene("What `waybill deliveries show` tells afterwards:");
        for timeline in &self.timelines {
            out::line(timeline.trim_end());
            out::line("");
        }
        scene("The promises:");
        for promise in &self.promises {
            match &promise.broken {
                None => out::line(format_args!("  ✓ {}", promise.text)),
                Some(seen) => out::line(format_args!("  ✗ {} — BROKEN: {seen}", promise.text)),
            }
        }
        out::line("");
        let broken: Vec<&Promise> = self.promises.iter().filter(|promise| promise.broken.is_some()).collect();
        for promise in &broken {
            out::complain(format_args!("broken promise: {}", promise.text));
        }
        if broken.is_empty() { Exit::Done } else { Exit::Failed }
    }
}

fn as_json(request: &Received) -> serde_json::Value {
    use base64::Engine as _;
    let headers: serde_json::Map<String, serde_json::Value> =
        request.headers.iter().map(|(name, value)| (name.to_lowercase(), value.as_str().into())).collect();
    serde_json::json!({
        "headers": headers,
        "body_base64": base64::engine::general_purpose::STANDARD.encode(&request.body),
        "secret": SECRET,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_broken_promise_fails_the_rehearsal() {
        let mut rehearsal = Rehearsal::default();
        rehearsal.keep(promises::promise("kept", 1, 1));
        assert_eq!(rehearsal.report(), Exit::Done);
        rehearsal.keep(promises::promise("broken", 1, 2));
        assert_eq!(rehearsal.report(), Exit::Failed);
    }
}
