//! `nightly-reconciliation`: one job per tenant and closed business day reaches a payment provider, through
//! a rate limit and a worker's death in the ambiguous moment, once each; a mistyped currency never does; and
//! a night that nobody triggered is made up for the next day.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::delivery::{Record, State};
use waybill_domain::destination::Destination;
use waybill_domain::ending::Disposition;
use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId};
use waybill_domain::look_up::StatusUrl;
use waybill_domain::time::TimeMs;
use waybill_service::config::Config;
use waybill_service::config_file;
use waybill_service::ports::Clock as _;
use waybill_service::publish::Published;
use waybill_service::schedule::{Learned, ScheduleLimits, ScheduleReport, Scheduler};
use waybill_testkit::server::Received;
use waybill_testkit::server::script::{Answer, Script};

use super::Rehearsal;
use super::promises::{ends_as, promise};
use super::stage::{NEVER, PATIENCE, Stage};
use crate::exit::Failure;

const CONFIG: &str = include_str!("../../../examples/nightly-reconciliation/waybill.toml");
const SCHEMA: &str = include_str!("../../../examples/nightly-reconciliation/settlement.schema.json");

/// What the example's policy gives automation.
const HORIZON: Duration = Duration::from_secs(20 * 3600);

const PROVIDER: &str = "settlement-provider";
/// What the provider asks for when it is busy.
const BUSY_S: &str = "600";

/// The provider's books: the reference that it gave to each idempotency key.
type Books = Arc<Mutex<BTreeMap<String, String>>>;

/// Accepts each key once, and can be asked.
fn provider(books: &Books) -> Script {
    let books = books.clone();
    Script::decided_by(move |request| {
        let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
        let key = request.idempotency_key().unwrap_or_default().to_owned();
        if request.request_line.starts_with("GET ") {
            return match books.get(&key) {
                Some(reference) => accepted(200, reference).not_applied(),
                None => Answer::status(404),
            };
        }
        let (event, attempt) = (request.header("waybill-event-id"), request.header("waybill-attempt"));
        match (event, attempt) {
            (Some("acme:2026-08-09"), Some("1")) => {
                return Answer::with_body(429, &[("retry-after", BUSY_S)], "month-end closing\n");
            }
            // It is booked, and whoever sent it does not live to hear of it.
            (Some("northwind:2026-08-09"), _) => {
                books.insert(key, "stl-1001".to_owned());
                return Answer::status(200).after(NEVER).applied();
            }
            _ => {}
        }
        let next = format!("stl-{}", 1001 + books.len());
        accepted(200, books.entry(key).or_insert(next)).applied()
    })
}

fn accepted(status: u16, reference: &str) -> Answer {
    let body = serde_json::json!({ "reference": reference }).to_string();
    Answer::with_body(status, &[("content-type", "application/json")], body)
}

/// The example's configuration, its provider moved to loopback, as it is applied at `now`.
fn config(text: &str, base: &str, now: TimeMs) -> Result<Config, Failure> {
    let faulty = |faults: Vec<config_file::ConfigFault>| {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        Failure::failed(format!("examples/nightly-reconciliation/waybill.toml: {first}"))
    };
    let text = config_file::bundle(text, |_| Ok(SCHEMA.to_owned())).map_err(faulty)?;
    let mut config = config_file::parse(&text, Locality::PublicOnly).map_err(faulty)?;
    for destination in config.destinations.values_mut() {
        let status_url = format!("{base}/{{event_id}}");
        *destination = Arc::new(Destination {
            url: RecipientUrl::parse("url", base, Locality::AllowLocal)?,
            status_url: Some(StatusUrl::parse("status_url", &status_url, Locality::AllowLocal)?),
            timeout: PATIENCE,
            ..Destination::clone(destination)
        });
    }
    config.applied_at = Some(now);
    Ok(config)
}

/// Runs it.
pub(crate) async fn run(rehearsal: &mut Rehearsal) -> Result<(), Failure> {
    let books = Books::default();
    let begin = "2026-08-10T06:00:00Z";
    // Somebody mistyped a currency.
    let mistyped = CONFIG.replace("currency = \"EUR\"", "currency = \"EURO\"");
    let applied_at = TimeMs::parse("begin", begin)?;
    let configured = |url: &str| config(&mistyped, url, applied_at);
    let mut stage =
        Stage::set_under(begin, "/reconciliations", configured, provider(&books), rehearsal).await?;

    rehearsal.voice.scene(
        "In New York it is 02:30, and 9 August is closed. The schedule publishes one job for each tenant. \
         Northwind's accounts in euros have a mistyped currency (EURO): the provider's schema refuses it before \
         it is sent.",
    );
    let first_night = TimeMs::parse("trigger", "2026-08-10T06:30:00Z")?;
    stage.clock.skip_to(first_night);
    let report = trigger(&stage).await;
    rehearsal.keep(promise(
        "first night",
        "the schedule publishes one job for each tenant",
        2,
        report.published,
    ));
    rehearsal.keep(promise("first night", "and records the one that the schema refuses", 1, report.refused));
    let again = trigger(&stage).await;
    rehearsal.keep(promise("first night", "triggered twice, it publishes nothing more", 0, published(again)));

    rehearsal.voice.scene(
        "The provider is busy when acme's job comes, and asks for ten minutes. It accepts northwind's, and the \
         worker dies before it hears of it. Whoever finds the message later asks the provider first.",
    );
    let mut deaths = 0;
    while let Some(message) = stage.next_message().await? {
        if message.body.contains(id("northwind", "northwind:2026-08-09")?.as_str()) && deaths == 0 {
            deaths += 1;
            stage.die_after_sending(&message).await;
        } else {
            stage.work(&message).await?;
        }
    }

    rehearsal.voice.scene(
        "The next night nobody triggers anything: the system is down until 14:00 in New York on the 11th, and \
         comes back with the currency mended. The ledger shows that 10 August has no delivery yet.",
    );
    let second_night = TimeMs::parse("trigger", "2026-08-11T06:30:00Z")?;
    stage.clock.skip_to(TimeMs::parse("restart", "2026-08-11T18:00:00Z")?);
    stage.config = config(CONFIG, &stage.recipient.server.url("/reconciliations"), stage.clock.now())?;
    let report = trigger(&stage).await;
    rehearsal.keep(promise(
        "second night",
        "the missed night is made up for, for each tenant",
        3,
        report.published,
    ));
    let again = trigger(&stage).await;
    rehearsal.keep(promise("second night", "and made up for once", 0, published(again)));
    stage.work_until_quiet().await?;

    let nights = [
        ("acme", "acme:2026-08-09", first_night, 2),
        ("northwind", "northwind:2026-08-09", first_night, 1),
        ("acme", "acme:2026-08-10", second_night, 1),
        ("northwind", "northwind:2026-08-10", second_night, 1),
        ("northwind", "northwind:2026-08-10:eur", second_night, 1),
    ];
    for (tenant, event, triggered_at, requests) in nights {
        let record = settled(rehearsal, &stage, &books, tenant, event, requests).await?;
        from_trigger_to_result(rehearsal, &record, triggered_at);
    }
    confirmed(rehearsal, &stage).await?;
    refused(rehearsal, &stage).await
}

/// What a trigger does, in a process that has just been started.
async fn trigger(stage: &Stage) -> ScheduleReport {
    let ports = &stage.ports;
    let scheduler = Scheduler { ledger: &ports.ledger, queue: &ports.queue, clock: &ports.clock };
    scheduler.tick(&stage.config, &Learned::default(), ScheduleLimits::default()).await
}

fn published(report: ScheduleReport) -> usize {
    report.published + report.refused
}

fn id(tenant: &str, event: &str) -> Result<DeliveryId, Failure> {
    let (tenant, event) = (TenantId::parse(tenant)?, EventId::parse(event)?);
    Ok(DeliveryId::derive(&tenant, &event, &DestinationName::parse(PROVIDER)?))
}

/// A delivery as [`Stage::found`] wants it: only its ID counts.
fn delivery(tenant: &str, event: &str) -> Result<Published, Failure> {
    Ok(Published {
        delivery_id: id(tenant, event)?,
        destination: DestinationName::parse(PROVIDER)?,
        state: State::Pending,
        repeated: false,
    })
}

fn is_post(request: &Received) -> bool {
    request.request_line.starts_with("POST ")
}

/// A job that was done: one booking, and the provider's reference as the result.
async fn settled(
    rehearsal: &mut Rehearsal,
    stage: &Stage,
    books: &Books,
    tenant: &str,
    event: &str,
    requests: usize,
) -> Result<Record, Failure> {
    let (record, attempts) = stage.found(&delivery(tenant, event)?).await?;
    let key = record.delivery.id.as_str();
    let arrived = stage.recipient.requests_of(key);
    let posts: Vec<&Received> = arrived.iter().filter(|request| is_post(request)).collect();
    rehearsal.keep(ends_as(&record, State::Succeeded));
    rehearsal.keep(promise(event, format!("requests at the provider: {requests}"), requests, posts.len()));
    let applied = posts.iter().filter(|request| request.applied).count();
    rehearsal.keep(promise(event, "applied by the provider: once", 1, applied));
    let reference = books.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
    let result = record.result.as_ref().and_then(|result| {
        let answer: serde_json::Value = serde_json::from_slice(&result.bytes).ok()?;
        Some(answer["reference"].as_str()?.to_owned())
    });
    rehearsal.keep(promise(event, "the provider's reference is kept as the result", reference, result));
    rehearsal.conclude(stage, &record, &attempts).await?;
    Ok(record)
}

fn from_trigger_to_result(rehearsal: &mut Rehearsal, record: &Record, triggered_at: TimeMs) {
    let took = record.ended_at.map(|at| at.since(triggered_at));
    let in_time = took.is_some_and(|took| took.as_std() < HORIZON);
    let text = "its result is there within the policy's horizon of 20h";
    rehearsal.keep(promise(&record.delivery.event_id, text, true, in_time));
    let took = took.map_or_else(|| "no result".to_owned(), |took| took.to_string());
    rehearsal.voice.tell(format_args!("  {}: {took} from trigger to result", record.delivery.event_id));
}

/// The job whose worker died: found out by asking, and not applied twice.
async fn confirmed(rehearsal: &mut Rehearsal, stage: &Stage) -> Result<(), Failure> {
    let event = "northwind:2026-08-09";
    let (record, attempts) = stage.found(&delivery("northwind", event)?).await?;
    let arrived = stage.recipient.requests_of(record.delivery.id.as_str());
    let asked = arrived.iter().filter(|request| !is_post(request)).count();
    rehearsal.keep(promise(event, "the provider is asked once what became of it", 1, asked));
    let by_look_up = matches!(record.disposition, Some(Disposition::Delivered { by_look_up: true, .. }));
    rehearsal.keep(promise(event, "confirmed by the look-up", true, by_look_up));
    let class = attempts.first().map(|attempt| attempt.failure.class.as_str());
    rehearsal.keep(promise(event, "the evidence says that the worker died", Some("interrupted"), class));
    Ok(())
}

/// The job with the mistyped currency: never sent, and in the dead-letter queue.
async fn refused(rehearsal: &mut Rehearsal, stage: &Stage) -> Result<(), Failure> {
    let event = "northwind:2026-08-09:eur";
    let (record, attempts) = stage.found(&delivery("northwind", event)?).await?;
    rehearsal.keep(ends_as(&record, State::DeadLettered));
    let reason = record.dead_letter_reason().map(|reason| reason.as_str());
    rehearsal.keep(promise(event, "its reason says why", Some("payload_invalid"), reason));
    rehearsal.keep(promise(event, "no attempt was made", 0, record.attempts_made));
    let arrived = stage.recipient.requests_of(record.delivery.id.as_str()).len();
    rehearsal.keep(promise(event, "nothing reached the provider", 0, arrived));
    let dead = stage.store.dead_letter_bodies(10).await?;
    let told = dead.iter().filter(|body| body.contains(record.delivery.id.as_str())).count();
    rehearsal.keep(promise(event, "one message in the dead-letter queue", 1, told));
    rehearsal.tell_timeline(stage, &record, &attempts);
    Ok(())
}
