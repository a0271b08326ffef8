//! `waybill rehearse`: runs an example from end to end against a recipient of its own, prints the
//! record after each transition, and fails loudly if any promise is broken. As JSON: the promises alone.

#[cfg(feature = "aws")]
mod aws;
mod backing;
mod clock;
mod doubt;
mod lease_payment;
mod narrated;
mod nightly_reconciliation;
mod operated;
mod promises;
mod recovery;
mod renewal_reminder;
mod stage;
mod voice;

use std::fmt::Display;
use std::io::Write as _;
use std::path::PathBuf;

use waybill_domain::attempt::Attempt;
use waybill_domain::delivery::Record;
use waybill_domain::signature::SigningKey;
use waybill_service::ports::Ledger as _;
use waybill_service::publish::Published;
use waybill_testkit::server::Received;

use crate::commands::Globals;
use crate::exit::{Exit, Failure, in_words};
use crate::out::{self, Format};
use crate::show::timeline;
use backing::Backing;
use promises::{Count, Promise, of_every_delivery};
use stage::{SECRET, Stage};
use voice::Voice;

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
    /// Nightly jobs reach a payment provider once each, through a death, a rate limit and a missed night
    NightlyReconciliation,
    /// One after the other
    All,
}

/// What a rehearsal found out, and who tells it.
#[derive(Debug, Default)]
pub(crate) struct Rehearsal {
    voice: Voice,
    backing: Backing,
    promises: Vec<Promise>,
    requests: Vec<Received>,
    timelines: Vec<String>,
}

/// Runs the examples, each on a backing of its own.
pub(crate) async fn run(globals: &Globals, arguments: Arguments) -> Result<Exit, Failure> {
    let (voice, backend) = (Voice(globals.output), globals.backend());
    let mut total = Count::default();
    let mut requests = Vec::new();
    for example in [Example::LeasePayment, Example::RenewalReminder, Example::NightlyReconciliation] {
        if arguments.example != Example::All && arguments.example != example {
            continue;
        }
        let backing = Backing::make(&backend).await?;
        let mut rehearsal = Rehearsal { voice, backing, ..Rehearsal::default() };
        let name = match example {
            Example::RenewalReminder => "renewal-reminder",
            Example::NightlyReconciliation => "nightly-reconciliation",
            _ => "lease-payment",
        };
        voice.tell(format_args!("━━ {name}"));
        let ended = match example {
            Example::RenewalReminder => renewal_reminder::run(&mut rehearsal).await,
            Example::NightlyReconciliation => nightly_reconciliation::run(&mut rehearsal).await,
            _ => lease_payment::run(&mut rehearsal).await,
        };
        // However it ended. Where both failed, the story's own failure is told.
        let removed = std::mem::take(&mut rehearsal.backing).remove().await;
        ended.and(removed)?;
        total = total.and(rehearsal.report(name));
        requests.append(&mut rehearsal.requests);
    }
    if arguments.example == Example::All {
        voice.tell(format_args!("in all: {total}"));
    }
    if let Some(path) = &arguments.requests {
        let failed = |error| Failure::failed(format!("{}: {}", path.display(), in_words(&error)));
        let mut file = std::fs::File::create(path).map_err(failed)?;
        for request in &requests {
            writeln!(file, "{}", as_json(request)).map_err(failed)?;
        }
    }
    Ok(if total.broken == 0 { Exit::Done } else { Exit::Failed })
}

impl Rehearsal {
    /// The one delivery of an event that must be accepted.
    fn published<E: Display>(&self, result: Result<Vec<Published>, E>) -> Result<Published, Failure> {
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
        // Look-ups are no requests of the delivery: they carry its ID and nothing else of it.
        let mut requests = stage.recipient.requests_of(record.delivery.id.as_str());
        requests.retain(|request| request.request_line.starts_with("POST "));
        let payload = stage.store.payload(&record.delivery.key()).await?.unwrap_or_default();
        let key = SigningKey::parse("secret", SECRET)?;
        self.keep_all(of_every_delivery(record, &payload, &requests, &key));
        self.requests.extend(requests);
        self.tell_timeline(stage, record, attempts);
        Ok(())
    }

    /// The timeline alone: for what was never sent.
    fn tell_timeline(&mut self, stage: &Stage, record: &Record, attempts: &[Attempt]) {
        self.timelines.push(timeline::timeline(record, attempts, stage.owner(record)));
    }

    /// Tells how it ended, and counts the promises.
    fn report(&self, example: &str) -> Count {
        let voice = self.voice;
        voice.scene("What `waybill deliveries show` tells afterwards:");
        voice.tell(self.timelines.join("\n\n"));
        voice.scene("The promises:");
        let mut count = Count::default();
        // Promises about one event are not always made in a row.
        let mut events: Vec<&str> = Vec::new();
        for promise in &self.promises {
            count.add(promise);
            if !events.contains(&&*promise.event) {
                events.push(&promise.event);
            }
        }
        for event in events {
            voice.tell(format_args!("  {event}"));
            for promise in self.promises.iter().filter(|promise| promise.event == event) {
                voice.tell(format_args!("    {promise}"));
            }
            voice.tell("");
        }
        for promise in &self.promises {
            if voice.0 == Format::Json {
                out::json(&promise.as_json(example));
            }
            if !promise.is_kept {
                out::complain(format_args!("broken promise: {}: {}", promise.event, promise.text));
            }
        }
        voice.tell(format_args!("{example}: {count}\n"));
        count
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
    fn one_broken_promise_is_counted_as_one() {
        let mut rehearsal = Rehearsal::default();
        rehearsal.keep(promises::promise("e", "kept", 1, 1));
        assert_eq!(rehearsal.report("x"), Count { kept: 1, broken: 0 });
        rehearsal.keep(promises::promise("e", "broken", 1, 2));
        assert_eq!(rehearsal.report("x"), Count { kept: 1, broken: 1 });
    }
}
