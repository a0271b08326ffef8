//! One attempt from beginning to end, each step on the budget that the steps before it left.
//!
//! One connection per attempt, and none is kept. A connection from a pool may have died while the
//! function was frozen, and the first request over it would be lost with nobody knowing whether it
//! was applied; a connection that was opened by the attempt itself cannot have. The price is a
//! handshake for each attempt, shortened by TLS session resumption.

use tokio::io::{AsyncRead, AsyncWrite};
use url::Url;
use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::attempt::{Phase, SendReport, SendWindow, Sending};
use waybill_domain::destination::Destination;
use waybill_domain::look_up::Finding;
use waybill_domain::outcome::Seen;
use waybill_domain::time::TimeMs;
use waybill_service::ports::{Clock, Recipient, Request};

use crate::answer::Answer;
use crate::budget::Budget;
use crate::connect;
use crate::exchange::Line;
use crate::redact::Redactor;
use crate::report::{self, Fault, Stop};
use crate::request::Draft;
use crate::resolve::{self, Resolver, SystemResolver};
use crate::secrets::{self, EnvSecrets, Secrets, Signing};
use crate::tls::Tls;
use crate::wire::{SentFlag, Wire};

/// The other side, over HTTP/1.1.
pub struct HttpRecipient<C, R = SystemResolver, S = EnvSecrets> {
    clock: C,
    pub(crate) locality: Locality,
    pub(crate) resolver: R,
    secrets: S,
    pub(crate) tls: Tls,
}

impl<C: Clock> HttpRecipient<C> {
    /// With the resolver of the system, secrets from the environment, and the public roots of trust.
    pub fn new(clock: C, locality: Locality) -> Self {
        Self { clock, locality, resolver: SystemResolver, secrets: EnvSecrets, tls: Tls::public() }
    }
}

impl<C, R, S> HttpRecipient<C, R, S> {
    /// The same with another resolver.
    pub fn with_resolver<R2: Resolver>(self, resolver: R2) -> HttpRecipient<C, R2, S> {
        let Self { clock, locality, secrets, tls, .. } = self;
        HttpRecipient { clock, locality, resolver, secrets, tls }
    }

    /// The same with another store of secrets.
    pub fn with_secrets<S2: Secrets>(self, secrets: S2) -> HttpRecipient<C, R, S2> {
        let Self { clock, locality, resolver, tls, .. } = self;
        HttpRecipient { clock, locality, resolver, secrets, tls }
    }

    /// The same with other roots of trust.
    pub fn with_tls(self, tls: Tls) -> Self {
        Self { tls, ..self }
    }
}

impl<C: Clock, R: Resolver, S: Secrets> Recipient for HttpRecipient<C, R, S> {
    async fn send(&self, request: Request, window: SendWindow) -> Sending {
        self.sent(&request, Draft::new(&request), window).await
    }

    async fn look_up(&self, request: Request, url: RecipientUrl, window: SendWindow) -> Finding {
        let started_at = self.clock.now();
        // Half of what is left: the request must still fit in behind the look-up.
        let budget = match window.check(started_at) {
            Ok(rest) => Budget::start(rest, &window).share(2),
            Err(not_sent) => return Finding::NotAsked(not_sent),
        };
        let draft = Draft::look_up(&request, url.as_url());
        let tried = self.attempt(&request.destination, url.as_url(), draft, &window, budget).await;
        let ended_at = self.clock.now();
        let finding = match tried {
            Ok(answer) => report::of_looked_up(answer),
            Err(Stop::Fault(fault)) => report::of_failed_look_up(fault),
            Err(Stop::NotSent(not_sent)) => Finding::NotAsked(not_sent),
        };
        match finding {
            Finding::Settles(report) => Finding::Settles(SendReport { started_at, ended_at, ..report }),
            finding => finding,
        }
    }
}

impl<C: Clock, R, S> HttpRecipient<C, R, S> {
    /// The wall clock.
    pub(crate) fn now(&self) -> TimeMs {
        self.clock.now()
    }

    /// `http` is for local development. A destination that says so although this recipient does not
    /// allow it came from another configuration than the one that is in force.
    pub(crate) fn wants_tls(&self, scheme: &str) -> Result<bool, Fault> {
        match (scheme, self.locality) {
            ("https", _) => Ok(true),
            (_, Locality::AllowLocal) => Ok(false),
            (_, Locality::PublicOnly) => {
                let note = "the destination's URL is not https, and this system sends nothing in the clear";
                Err(Fault::saw(Seen::AddressForbidden, Phase::Resolve, note))
            }
        }
    }
}

impl<C: Clock, R: Resolver, S: Secrets> HttpRecipient<C, R, S> {
    /// Sends what was drafted of `request`.
    pub(crate) async fn sent(
        &self,
        request: &Request,
        draft: Result<Draft, Fault>,
        window: SendWindow,
    ) -> Sending {
        let started_at = self.clock.now();
        // What has no right to be sent is not even connected for.
        let budget = match window.check(started_at) {
            Ok(rest) => Budget::start(rest, &window),
            Err(not_sent) => return Sending::NotSent(not_sent),
        };
        let to = &request.destination;
        let tried = self.attempt(to, to.url.as_url(), draft, &window, budget).await;
        let ended_at = self.clock.now();
        let report = match tried {
            Ok(answer) => report::of_answer(answer, &to.statuses),
            Err(Stop::Fault(fault)) => report::of_fault(fault, &to.statuses),
            Err(Stop::NotSent(not_sent)) => return Sending::NotSent(not_sent),
        };
        Sending::Attempted(SendReport { started_at, ended_at, ..report })
    }

    async fn attempt(
        &self,
        destination: &Destination,
        url: &Url,
        draft: Result<Draft, Fault>,
        window: &SendWindow,
        budget: Budget,
    ) -> Result<Answer, Stop> {
        let draft = draft?;
        let signing = secrets::signing(&self.secrets, destination, &budget).await?;
        let encrypted = self.wants_tls(url.scheme())?;
        let addresses = resolve::judged(&self.resolver, url, self.locality, &budget).await?;
        let sent = SentFlag::default();
        let wire = Wire::new(connect::dial(&addresses, &budget).await?, sent.clone());
        let mut sending = Ready { draft, signing, window, budget, sent, connected: Phase::Connect };
        if encrypted {
            let stream = self.tls.handshake(url, wire, &sending.budget).await?;
            sending.connected = Phase::Tls;
            self.exchange(stream, sending).await
        } else {
            self.exchange(wire, sending).await
        }
    }

    async fn exchange<IO>(&self, stream: IO, ready: Ready<'_>) -> Result<Answer, Stop>
    where
        IO: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let Ready { draft, signing, window, budget, sent, connected } = ready;
        let mut line = Line::open(stream, sent, connected).await?;
        // Signed once the connection stands, so that slow connecting does not age the timestamp.
        let payload = draft.payload();
        let signed = draft.sign(self.clock.now(), &signing);
        let redactor = Redactor::new(signing.texts(), &signed.signatures).and_payload(payload);
        let budget = match window.check(self.clock.now()) {
            Ok(rest) => budget.cut_to(rest),
            Err(not_sent) => return Err(Stop::NotSent(not_sent)),
        };
        let head = line.request(signed.request, &budget).await?;
        let headed_at = self.clock.now();
        Ok(Answer::read(&mut line, head, headed_at, &redactor, &budget).await)
    }
}

/// Everything that is there before the first byte leaves.
struct Ready<'a> {
    draft: Draft,
    signing: Signing,
    window: &'a SendWindow,
    budget: Budget,
    sent: SentFlag,
    /// The phase that was reached so far.
    connected: Phase,
}
