//! The instruments: what is counted and measured, by one facade for every backend. `serve` shows them to
//! Prometheus, a function writes them as embedded metric format; the names are the same.
//!
//! A label has a value out of a set that the configuration or the code fixes: a destination with
//! `metrics = true` (all others share [`OTHER`]), or a reason. Never a tenant, an ID, a URL or anything
//! else that a caller chooses: the number of series does not grow with what comes in.

use metrics::{Unit, counter, gauge, histogram};
use waybill_domain::attempt::SendReport;
use waybill_domain::delivery::{Record, State};
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::hold::HoldReason;
use waybill_domain::identity::DestinationName;
use waybill_domain::outcome::{FailureClass, Outcome};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::config::Config;
use crate::reconcile::TickReport;

/// The label that every destination without `metrics = true` shares.
pub const OTHER: &str = "other";

/// What an instrument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Counts upwards.
    Counter,
    /// Measures one case at a time.
    Histogram,
    /// How something stands.
    Gauge,
}

/// One instrument.
#[derive(Debug, Clone, Copy)]
pub struct Instrument {
    /// Its name, on every backend.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// The unit of its values.
    pub unit: Unit,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it tells, in one sentence.
    pub help: &'static str,
}

macro_rules! instruments {
    ($($name:ident: $kind:ident, $unit:ident, $labels:expr, $help:literal;)*) => {
        /// Every instrument.
        pub const ALL: &[Instrument] = &[$(Instrument {
            name: stringify!($name), kind: Kind::$kind, unit: Unit::$unit, labels: &$labels, help: $help,
        },)*];
    };
}

instruments! {
    Delivered: Counter, Count, ["destination"], "Deliveries that their recipient acknowledged";
    RetryScheduled: Counter, Count, ["destination"], "Attempts that failed and are followed by another";
    PermanentlyRejected: Counter, Count, ["destination"], "Dead letters by a failure that only a person can mend";
    DeadLettered: Counter, Count, ["destination", "reason"], "Deliveries that automation gave up, for a person to decide";
    Expired: Counter, Count, ["destination"], "Deliveries whose deadline passed before they were delivered";
    DuplicateSuppressed: Counter, Count, ["destination"], "Messages that came and led to no request";
    RateLimited: Counter, Count, ["destination"], "Attempts that the recipient answered with 429";
    Held: Counter, Count, ["destination", "reason"], "Deliveries that began to be held";
    RetryToSuccess: Histogram, Milliseconds, ["destination"], "From the first queueing to the success of what needed more than one attempt";
    AttemptDuration: Histogram, Milliseconds, ["destination"], "How long an attempt took";
    RetryAge: Histogram, Milliseconds, ["destination"], "How long after its first queueing a delivery got an attempt that was not its first";
    ScheduleToResult: Histogram, Milliseconds, ["destination"], "From the firing of a schedule to the success of its delivery";
    RedriveSuccess: Histogram, Percent, ["destination"], "How released deliveries ended: 100 for each that was delivered, 0 for each that was not";
    DeadlineSlack: Histogram, Milliseconds, ["destination"], "What was left to the deadline at a success, or is left when a retry is due";
    AttemptsToEnd: Histogram, Count, ["destination"], "Attempts that a delivery had when it ended";
    WorkerSaturation: Histogram, Percent, [], "How much of its room for messages a worker had in use when it received some";
    Reconciled: Counter, Count, [], "Rounds of the reconciler that came to their end";
    OldestDueAge: Gauge, Milliseconds, [], "How long the oldest of the deliveries that the last round of the reconciler looked at has been due";
    LeastDeadlineSlack: Gauge, Milliseconds, [], "What is left to the nearest deadline of the open deliveries that the last round of the reconciler looked at; a day where it is more, or none has one";
    OldestHeldAge: Gauge, Milliseconds, ["reason"], "How long the longest held of the deliveries that the last round of the reconciler looked at has been held; 0 where none is";
    OldestDeadLetterAge: Gauge, Milliseconds, [], "How long the oldest dead letter has waited for a person; 0 where there is none";
    OpenRuns: Gauge, Count, [], "Redrive runs that are not finished";
}

/// Tells the recorder of this process about every instrument.
pub fn describe() {
    for Instrument { name, kind, unit, help, .. } in ALL {
        match kind {
            Kind::Counter => metrics::describe_counter!(*name, *unit, *help),
            Kind::Histogram => metrics::describe_histogram!(*name, *unit, *help),
            Kind::Gauge => metrics::describe_gauge!(*name, *unit, *help),
        }
    }
}

/// A destination as a label.
fn label(config: &Config, destination: &DestinationName) -> String {
    match config.measured.get(destination) {
        Some(name) => name.to_string(),
        None => OTHER.to_owned(),
    }
}

/// An attempt was made, the next one of `record`.
pub(crate) fn attempted(config: &Config, record: &Record, report: &SendReport) {
    let destination = label(config, &record.delivery.destination);
    let duration = report.ended_at.since(report.started_at);
    if matches!(report.outcome, Outcome::Failed(failure) if failure.class == FailureClass::RateLimited) {
        counter!("RateLimited", "destination" => destination.clone()).increment(1);
    }
    if record.attempts_made > 0 {
        let age = report.started_at.since(record.delivery.first_queued_at).as_ms() as f64;
        histogram!("RetryAge", "destination" => destination.clone()).record(age);
    }
    histogram!("AttemptDuration", "destination" => destination).record(duration.as_ms() as f64);
}

/// A message led to no request.
pub(crate) fn suppressed(config: &Config, record: &Record) {
    counter!("DuplicateSuppressed", "destination" => label(config, &record.delivery.destination))
        .increment(1);
}

/// A consumer's write stands: a success, an end, a hold, or the outcome of an attempt. `attempts_before`
/// is how many attempts the record had before it.
pub(crate) fn decided(config: &Config, attempts_before: u32, record: &Record) {
    if let Some(held) = &record.hold {
        let destination = label(config, &record.delivery.destination);
        counter!("Held", "destination" => destination, "reason" => held.reason.as_str()).increment(1);
    } else if !record.state.is_open() {
        ended(config, record);
    } else if record.attempts_made > attempts_before {
        let destination = label(config, &record.delivery.destination);
        counter!("RetryScheduled", "destination" => destination.clone()).increment(1);
        slack(record, destination, record.due_at);
    }
}

/// A delivery ended, by whichever hand of automation's.
pub(crate) fn ended(config: &Config, record: &Record) {
    let destination = label(config, &record.delivery.destination);
    let ended_at = record.ended_at.unwrap_or(record.due_at);
    match record.state {
        State::Succeeded => {
            counter!("Delivered", "destination" => destination.clone()).increment(1);
            if record.attempts_made > 1 {
                let took = ended_at.since(record.delivery.first_queued_at).as_ms() as f64;
                histogram!("RetryToSuccess", "destination" => destination.clone()).record(took);
            }
            if let Some(fired_at) = config.fired_at(&record.delivery, ended_at) {
                let took = ended_at.since(fired_at).as_ms() as f64;
                histogram!("ScheduleToResult", "destination" => destination.clone()).record(took);
            }
            slack(record, destination.clone(), ended_at);
        }
        State::Expired => counter!("Expired", "destination" => destination.clone()).increment(1),
        State::DeadLettered => {
            let reason = record.dead_letter_reason();
            if matches!(reason, Some(DeadLetterReason::Permanent(_))) {
                counter!("PermanentlyRejected", "destination" => destination.clone()).increment(1);
            }
            let reason = reason.map_or("", DeadLetterReason::as_str);
            counter!("DeadLettered", "destination" => destination.clone(), "reason" => reason).increment(1);
        }
        State::Pending | State::Retryable => return,
    }
    if record.redrives > 0 {
        let success = if record.state == State::Succeeded { 100.0 } else { 0.0 };
        histogram!("RedriveSuccess", "destination" => destination.clone()).record(success);
    }
    histogram!("AttemptsToEnd", "destination" => destination).record(f64::from(record.attempts_made));
}

/// The most slack that is told: what is further away endangers nothing.
const MOST_SLACK: DurationMs = DurationMs::from_secs(86_400);

/// What the reconciler saw at what was due for a look and at what is held.
pub(crate) fn looked(report: &TickReport) {
    gauge!("OldestDueAge").set(report.oldest_due.as_ms() as f64);
    let slack = report.least_slack.unwrap_or(MOST_SLACK).min(MOST_SLACK);
    gauge!("LeastDeadlineSlack").set(slack.as_ms() as f64);
    for (reason, age) in HoldReason::ALL.into_iter().zip(report.oldest_held) {
        gauge!("OldestHeldAge", "reason" => reason.as_str()).set(age.as_ms() as f64);
    }
}

/// So many redrive runs are not finished.
pub(crate) fn runs(open: usize) {
    gauge!("OpenRuns").set(open as f64);
}

/// The oldest dead letter has waited for so long.
pub(crate) fn dead_letters_looked_at(oldest: DurationMs) {
    gauge!("OldestDeadLetterAge").set(oldest.as_ms() as f64);
}

/// A round of the reconciler came to its end.
pub(crate) fn reconciled() {
    counter!("Reconciled").increment(1);
}

/// A worker that has room for so many messages received some, and works on so many now.
pub fn saturated(busy: usize, room: usize) {
    histogram!("WorkerSaturation").record(100.0 * busy as f64 / room.max(1) as f64);
}

fn slack(record: &Record, destination: String, at: TimeMs) {
    if let Some(deadline) = record.delivery.deadline {
        histogram!("DeadlineSlack", "destination" => destination).record(deadline.since(at).as_ms() as f64);
    }
}

impl Instrument {
    /// Uses it once, with every label as [`OTHER`]: for whoever tests what a recorder makes of it.
    pub fn touch(&self) {
        let labels: Vec<(&'static str, &'static str)> =
            self.labels.iter().map(|label| (*label, OTHER)).collect();
        match self.kind {
            Kind::Counter => counter!(self.name, &labels).increment(1),
            Kind::Histogram => histogram!(self.name, &labels).record(1.0),
            Kind::Gauge => gauge!(self.name, &labels).set(1.0),
        }
    }
}
