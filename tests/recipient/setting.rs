//! What the tests of the recipient have in common: a clock, names, secrets, a request, and one way
//! to send it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::attempt::{SendReport, SendWindow, Sending};
use waybill_domain::destination::{Destination, OnAmbiguous, SecretRef};
use waybill_domain::identity::{AttemptNumber, DeliveryId, DestinationName, EventId, EventType, TenantId};
use waybill_domain::outcome::{Applied, Failure, FailureClass, Outcome, Verdict};
use waybill_domain::policy::Policy;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_http::{HttpRecipient, ResolveError, Resolver, SecretError, Secrets};
use waybill_service::ports::{Clock, Recipient, Request};

/// 2026-01-01T00:00:00Z.
pub(crate) const T0: TimeMs = TimeMs::from_unix_ms(1_767_225_600_000);
/// Test secrets.
pub(crate) const K1: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
pub(crate) const K2: &str = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
/// Long enough for everything that ought to work, however slow the machine.
pub(crate) const PLENTY: DurationMs = DurationMs::from_secs(20);
/// For what is meant to run out of time.
pub(crate) const SHORT: DurationMs = DurationMs::from_ms(300);

/// A clock that says what a closure says.
#[derive(Clone)]
pub(crate) struct TestClock(Arc<dyn Fn() -> TimeMs + Send + Sync>);

impl TestClock {
    pub(crate) fn at(now: TimeMs) -> Self {
        Self::reading(move || now)
    }

    pub(crate) fn reading(now: impl Fn() -> TimeMs + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }
}

impl Clock for TestClock {
    fn now(&self) -> TimeMs {
        (self.0)()
    }
}

type Lookup = dyn Fn(usize, &str) -> Result<Vec<IpAddr>, ResolveError> + Send + Sync;

/// A resolver that says what a closure says of the n-th look-up, and counts.
#[derive(Clone)]
pub(crate) struct TestResolver {
    answer: Arc<Lookup>,
    asked: Arc<AtomicUsize>,
}

impl TestResolver {
    pub(crate) fn saying(
        answer: impl Fn(usize, &str) -> Result<Vec<IpAddr>, ResolveError> + Send + Sync + 'static,
    ) -> Self {
        Self { answer: Arc::new(answer), asked: Arc::default() }
    }

    pub(crate) fn here() -> Self {
        Self::always(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
    }

    pub(crate) fn always(addresses: Vec<IpAddr>) -> Self {
        Self::saying(move |_, _| Ok(addresses.clone()))
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolver for TestResolver {
    async fn resolve(&self, host: &str, _port: u16) -> Result<Vec<IpAddr>, ResolveError> {
        let n = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        (self.answer)(n, host)
    }
}

/// Secrets by the name of their variable.
#[derive(Clone)]
pub(crate) struct TestSecrets(BTreeMap<&'static str, &'static str>);

impl TestSecrets {
    pub(crate) fn of(secrets: &[(&'static str, &'static str)]) -> Self {
        Self(secrets.iter().copied().collect())
    }
}

impl Secrets for TestSecrets {
    async fn resolve(&self, reference: &SecretRef) -> Result<String, SecretError> {
        let SecretRef::Env(name) = reference else { return Err(SecretError::Missing) };
        self.0.get(name.as_str()).map(|text| (*text).to_owned()).ok_or(SecretError::Missing)
    }
}

/// A recipient for local development that signs with K1 and finds every name on this machine.
pub(crate) fn recipient() -> HttpRecipient<TestClock, TestResolver, TestSecrets> {
    recipient_at(TestClock::at(T0), Locality::AllowLocal)
}

pub(crate) fn recipient_at(
    clock: TestClock,
    locality: Locality,
) -> HttpRecipient<TestClock, TestResolver, TestSecrets> {
    HttpRecipient::new(clock, locality)
        .with_resolver(TestResolver::here())
        .with_secrets(TestSecrets::of(&[("K1", K1), ("K2", K2)]))
}

pub(crate) fn request_to(url: &str) -> Request {
    let tenant = TenantId::parse("acme").unwrap();
    let name = DestinationName::parse("acme-accounting").unwrap();
    let event_id = EventId::parse("evt_1").unwrap();
    Request {
        delivery_id: DeliveryId::derive(&tenant, &event_id, &name),
        destination: Arc::new(Destination {
            name,
            tenants: vec![tenant],
            owner: None,
            url: RecipientUrl::parse("url", url, Locality::AllowLocal).unwrap(),
            secrets: vec![SecretRef::Env("K1".to_owned())],
            headers: Vec::new(),
            event_types: Vec::new(),
            policy: Policy::default(),
            timeout: PLENTY,
            budget: None,
            suspension: None,
            on_ambiguous: OnAmbiguous::Retry,
            status_url: None,
            statuses: BTreeMap::new(),
            keep_result: false,
        }),
        event_id,
        event_type: EventType::parse("lease.payment_recorded").unwrap(),
        attempt: AttemptNumber::FIRST,
        content_type: "application/json".to_owned(),
        body: Bytes::from_static(b"{\"leaseId\":\"lease_881\"}"),
        trace: None,
    }
}

/// The same request, with its destination changed.
pub(crate) fn with_destination(mut request: Request, change: impl FnOnce(&mut Destination)) -> Request {
    let mut destination = Destination::clone(&request.destination);
    change(&mut destination);
    request.destination = Arc::new(destination);
    request
}

/// The right to send at `T0`, for an attempt of this length.
pub(crate) fn window(timeout: DurationMs) -> SendWindow {
    SendWindow {
        lease_until: T0.plus(timeout).plus(DurationMs::from_secs(5)),
        limit_at: T0.plus(DurationMs::from_secs(3600)),
        timeout,
        started_at: T0,
    }
}

/// Sends to `url` with the common recipient, and expects that something was attempted.
pub(crate) async fn attempt(url: &str, timeout: DurationMs) -> SendReport {
    attempt_by(&recipient(), request_to(url), timeout).await
}

pub(crate) async fn attempt_by(
    recipient: &impl Recipient,
    request: Request,
    timeout: DurationMs,
) -> SendReport {
    match recipient.send(request, window(timeout)).await {
        Sending::Attempted(report) => report,
        Sending::NotSent(not_sent) => panic!("not sent: {not_sent:?}"),
    }
}

pub(crate) const fn retryable(class: FailureClass, applied: Applied) -> Outcome {
    Outcome::Failed(Failure { verdict: Verdict::Retryable, class, applied })
}

pub(crate) const fn permanent(class: FailureClass, applied: Applied) -> Outcome {
    Outcome::Failed(Failure { verdict: Verdict::Permanent, class, applied })
}

/// `delivered`, or verdict, class and doubt, as `vectors/outcomes.json` writes them.
pub(crate) fn in_words(outcome: Outcome) -> String {
    match outcome {
        Outcome::Delivered => "delivered yes".to_owned(),
        Outcome::Failed(Failure { verdict, class, applied }) => {
            let verdict = match verdict {
                Verdict::Retryable => "retryable",
                Verdict::Permanent => "permanent",
            };
            format!("{verdict} {class} {}", applied.as_str())
        }
    }
}

/// A row of `vectors/outcomes.json`.
#[derive(serde::Deserialize)]
pub(crate) struct OutcomeRow {
    #[serde(default)]
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) event: String,
    outcome: String,
    class: Option<String>,
    applied: String,
}

impl OutcomeRow {
    pub(crate) fn in_words(&self) -> String {
        let class = self.class.as_ref().map(|class| format!(" {class}")).unwrap_or_default();
        format!("{}{class} {}", self.outcome, self.applied)
    }
}

#[derive(serde::Deserialize)]
pub(crate) struct Outcomes {
    pub(crate) statuses: Vec<OutcomeRow>,
    pub(crate) transport: Vec<OutcomeRow>,
}

pub(crate) fn outcome_vectors() -> Outcomes {
    serde_json::from_str(include_str!("../vectors/outcomes.json")).unwrap()
}

/// A port of 127.0.0.1 where nobody listens.
pub(crate) async fn deserted_port() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}
