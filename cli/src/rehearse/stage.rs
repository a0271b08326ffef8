//! The stage of a rehearsal: the whole system on a backing of its own, and a recipient on loopback.
//!
//! Everything is what runs in production but three things: the clock skips waits, the dice are
//! seeded, and the ledger tells what lands in it.

use std::sync::Arc;
use std::time::Duration;

use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::attempt::Attempt;
use waybill_domain::delivery::Record;
use waybill_domain::destination::{Destination, SecretRef};
use waybill_domain::identity::{DestinationName, MessageId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_domain::verify::headers::Headers;
use waybill_http::secrets::{SecretError, Secrets};
use waybill_http::{HttpRecipient, SystemResolver};
use waybill_service::authorize::Vault;
use waybill_service::config::Config;
use waybill_service::config_file;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::desk::Desk;
use waybill_service::event::Event;
use waybill_service::ingest::{self, Head, Inlet};
use waybill_service::ports::{Clock, Inbox as _, Ledger as _, Ports, Received};
use waybill_service::publish::{PublishError, Published, Publisher};
use waybill_service::reconcile::{Reconciler, TickLimits};
use waybill_service::refusal::Refusal;
use waybill_testkit::dice::SeededDice;
use waybill_testkit::server::script::Script;
use waybill_testkit::server::{DeduplicatingRecipient, Setting};

use super::Rehearsal;
use super::backing::Store;
use super::clock::StoryClock;
use super::narrated::Narrated;
use super::voice::Voice;
use crate::exit::Failure;

/// The configuration that the rehearsals run under, but for addresses and patience.
const EXAMPLE: &str = include_str!("../../../waybill.example.toml");

/// What signs the requests of every rehearsal: a test secret, to be shown to anybody.
pub(crate) const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// How long a recipient on loopback is waited for: longer than a busy machine stands still.
pub(crate) const PATIENCE: DurationMs = DurationMs::from_ms(1_500);
/// How long a received message is hidden: longer than any lease of the rehearsal.
const VISIBILITY: DurationMs = DurationMs::from_secs(30);

type Narrator = Narrated<Store>;
type OverHttp = HttpRecipient<StoryClock, SystemResolver, TestSecret>;

/// The same secret for every reference.
pub(crate) struct TestSecret;

impl Secrets for TestSecret {
    async fn resolve(&self, _: &SecretRef) -> Result<String, SecretError> {
        Ok(SECRET.to_owned())
    }
}

impl Vault for TestSecret {
    async fn secret(&self, _: &SecretRef) -> Option<String> {
        Some(SECRET.to_owned())
    }
}

/// The whole system, and the other side.
pub(crate) struct Stage {
    pub(crate) clock: StoryClock,
    pub(crate) recipient: DeduplicatingRecipient,
    pub(crate) store: Store,
    pub(super) config: Config,
    pub(super) ports: Ports<Narrator, Store, OverHttp, StoryClock, SeededDice>,
    voice: Voice,
}

impl Stage {
    /// Builds it: the story begins at `begin`, the destination answers as `script` says.
    pub(crate) async fn set(
        begin: &str,
        destination: &str,
        script: Script,
        rehearsal: &Rehearsal,
    ) -> Result<Self, Failure> {
        Self::set_under(begin, "/hooks", |url| config(destination, url), script, rehearsal).await
    }

    /// The same under a configuration of its own, which is told the recipient's URL with this path.
    pub(crate) async fn set_under(
        begin: &str,
        path: &str,
        config: impl FnOnce(&str) -> Result<Config, Failure>,
        script: Script,
        rehearsal: &Rehearsal,
    ) -> Result<Self, Failure> {
        let voice = rehearsal.voice;
        let clock = StoryClock::beginning_at(TimeMs::parse("begin", begin)?);
        let arrivals = clock.clone();
        let recipient = DeduplicatingRecipient::set(Setting::new(script).with_clock(move || arrivals.now()))
            .await
            .map_err(|error| Failure::failed(format!("no recipient on loopback: {error}")))?;
        let config = config(&recipient.server.url(path))?;

        let store = rehearsal.backing.store(&clock)?;
        let ports = Ports {
            ledger: Narrated::new(store.clone(), clock.clone(), voice),
            queue: store.clone(),
            recipient: HttpRecipient::new(clock.clone(), Locality::AllowLocal).with_secrets(TestSecret),
            clock: clock.clone(),
            dice: SeededDice::new("rehearsal", 7319),
            desk: Desk::default(),
        };
        Ok(Self { clock, recipient, store, config, ports, voice })
    }

    /// Publishes an event as it stands in its file.
    pub(crate) async fn publish(&self, json: &str) -> Result<Vec<Published>, PublishError> {
        let event = Event::parse(json.as_bytes()).map_err(PublishError::Invalid)?;
        let publisher =
            Publisher { ledger: &self.ports.ledger, queue: &self.ports.queue, clock: &self.ports.clock };
        publisher.publish(&self.config, event).await
    }

    /// Takes a webhook of a source as it comes in over HTTP.
    pub(crate) async fn receive(
        &self,
        source: &str,
        headers: &Headers,
        body: &str,
    ) -> Result<Vec<Published>, Refusal> {
        let head = Head { headers, is_local: false, now: self.clock.now() };
        let body = std::future::ready(Ok(body.to_owned().into()));
        let event = ingest::receive(&self.config, Inlet::Source(source), head, &TestSecret, body).await?;
        let publisher =
            Publisher { ledger: &self.ports.ledger, queue: &self.ports.queue, clock: &self.ports.clock };
        ingest::publish(&publisher, &self.config, event).await
    }

    /// The next message, once it may be seen; `None` if the queue is empty.
    pub(crate) async fn next_message(&self) -> Result<Option<Received>, Failure> {
        loop {
            if let Some(message) = self.store.receive(1, VISIBILITY).await?.pop() {
                return Ok(Some(message));
            }
            match self.store.next_visible_at().await? {
                Some(at) => self.clock.skip_to(at),
                None => return Ok(None),
            }
        }
    }

    /// Works for a message and does with it what the verdict says.
    pub(crate) async fn work(&self, message: &Received) -> Result<(), Failure> {
        match self.consume(&message.message_id, &message.body).await {
            Verdict::Acknowledge => self.store.acknowledge(&message.receipt).await?,
            Verdict::Leave { hidden_until: Some(until) } => {
                self.store.hide_until(&message.receipt, until).await?;
            }
            Verdict::Leave { hidden_until: None } => {}
        }
        Ok(())
    }

    /// A worker that dies once its request has arrived: it hears no answer and writes nothing more.
    pub(crate) async fn die_after_sending(&self, message: &Received) {
        let arrived = self.recipient.server.requests().len() + 1;
        tokio::select! {
            biased;
            () = self.recipient.server.arrived(arrived) => {}
            _ = self.consume(&message.message_id, &message.body) => {}
        }
        self.voice.tell(format_args!("  {:12}  the worker dies, with its request on the way", ""));
    }

    /// Works for one message twice at once, as when the queue delivers a duplicate.
    pub(crate) async fn work_twice(&self, message: &Received) -> Result<(), Failure> {
        let other = async {
            let verdict = self.consume(&message.message_id, &message.body).await;
            self.voice.tell(format_args!("  {:12}  the duplicate of the wake-up: {}", "", words(verdict)));
        };
        let (done, ()) = futures::join!(self.work(message), other);
        done
    }

    async fn consume(&self, message_id: &MessageId, body: &str) -> Verdict {
        let consumer = Consumer { ports: &self.ports };
        consumer.consume(&self.config, Incoming { message_id, body }, DurationMs::from_secs(60)).await
    }

    /// Works until nothing is left in the queue.
    pub(crate) async fn work_until_quiet(&self) -> Result<(), Failure> {
        while let Some(message) = self.next_message().await? {
            self.work(&message).await?;
        }
        Ok(())
    }

    /// One tick of the reconciler.
    pub(crate) async fn reconcile(&self) -> Result<(), Failure> {
        let Ports { ledger, queue, clock, dice, .. } = &self.ports;
        Reconciler { ledger, queue, clock, dice }.tick(&self.config, TickLimits::default()).await?;
        Ok(())
    }

    /// Who owns the destination of a delivery.
    pub(crate) fn owner(&self, record: &Record) -> Option<&str> {
        let delivery = &record.delivery;
        self.config.destination(&delivery.destination, &delivery.tenant)?.owner.as_deref()
    }

    /// The record of a delivery and its evidence.
    pub(crate) async fn found(&self, published: &Published) -> Result<(Record, Vec<Attempt>), Failure> {
        use waybill_service::ports::Catalogue as _;
        let found = self.store.find(&published.delivery_id).await?.pop();
        let record = found.ok_or_else(|| Failure::failed(format!("{} is lost", published.delivery_id)))?;
        let attempts = self.store.attempts(&record.delivery.key()).await?;
        Ok((record, attempts))
    }
}

/// The example's configuration with its destination moved to loopback, and less patience.
fn config(destination: &str, url: &str) -> Result<Config, Failure> {
    let mut config = config_file::parse(EXAMPLE, Locality::PublicOnly).map_err(|faults| {
        Failure::failed(format!(
            "waybill.example.toml: {}",
            faults.first().map(ToString::to_string).unwrap_or_default()
        ))
    })?;
    let name = DestinationName::parse(destination)?;
    let Some(example) = config.destinations.get(&name) else {
        return Err(Failure::failed(format!("waybill.example.toml has no destination {name}")));
    };
    let moved = Destination {
        url: RecipientUrl::parse("url", url, Locality::AllowLocal)?,
        timeout: PATIENCE,
        ..Destination::clone(example)
    };
    config.destinations.insert(name, Arc::new(moved));
    Ok(config)
}

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Acknowledge => "suppressed, and acknowledged",
        Verdict::Leave { .. } => "suppressed, and left to come again if the first worker dies",
    }
}

/// Longer than the recipient is waited for.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);
