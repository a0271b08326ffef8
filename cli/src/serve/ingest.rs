//! The door of `waybill serve`: requests of a listening socket, judged and answered by
//! [`waybill_service::ingest`].

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use waybill_domain::address::Locality;
use waybill_domain::destination::SecretRef;
use waybill_domain::verify::headers::Headers;
use waybill_http::{EnvSecrets, Secrets as _};
use waybill_service::authorize::Vault;
use waybill_service::ingest::{self, Answer, Head, Inlet, Route};
use waybill_service::ports::Clock as _;
use waybill_service::publish::{Published, Publisher};
use waybill_service::refusal::{Code, Refusal};
use waybill_service::source::ConfigError;
use waybill_system::SystemClock;

use super::Source;
use super::body;
use super::health::Health;
use super::peer::is_on_this_machine;
use super::room::Rooms;
use super::scrape::{self, Scrape};
use crate::backend::Store;

/// Takes events over HTTP.
pub(super) struct Ingest {
    pub(super) store: Store,
    pub(super) source: Arc<Source>,
    pub(super) locality: Locality,
    /// For the bodies of all requests together.
    pub(super) rooms: Rooms,
    /// What the instruments show.
    pub(super) scrape: Scrape,
    /// Whether what comes in can be kept.
    pub(super) health: Health,
}

impl Ingest {
    /// Answers one request of `peer`.
    pub(super) async fn answer(
        self: &Arc<Self>,
        peer: SocketAddr,
        request: Request<Incoming>,
    ) -> Response<Full<Bytes>> {
        let (head, mut body) = request.into_parts();
        if scrape::is_asked(&head.method, head.uri.path()) {
            return self.scrape.answer();
        }
        write(match Route::of(head.method.as_str(), head.uri.path()) {
            Err(answer) => answer,
            Ok(Route::Description) => Answer::description(),
            Ok(Route::Health) => self.health.of(&self.store).await,
            Ok(Route::In(inlet)) => {
                let lines = head.headers.iter().map(|(name, value)| (name, value.as_bytes()));
                let outcome = self.accept(peer, inlet, &lines.collect(), &mut body).await;
                if outcome.is_err() {
                    body::discard(body).await;
                }
                Answer::of(&outcome)
            }
        })
    }

    async fn accept(
        self: &Arc<Self>,
        peer: SocketAddr,
        inlet: Inlet<'_>,
        headers: &Headers,
        body: &mut Incoming,
    ) -> Result<Vec<Published>, Refusal> {
        // A body that says itself that it is too large is refused before anything is done with it.
        inlet.check_size(body.size_hint().lower())?;
        let config = self.source.current().await.map_err(unavailable)?;
        let is_local = self.locality == Locality::AllowLocal && is_on_this_machine(peer, headers);
        let head = Head { headers, is_local, now: SystemClock.now() };
        let mut taken = self.rooms.of(inlet, headers).none();
        let body = body::collect(body, inlet, &mut taken);
        let event = ingest::receive(&config, inlet, head, &Environment, body).await?;
        // In a task of its own: a caller that hangs up must not stop it between record and wake-up.
        let door = self.clone();
        let publishing = tokio::spawn(async move {
            let publisher = Publisher { ledger: &door.store, queue: &door.store, clock: &SystemClock };
            let published = ingest::publish(&publisher, &config, event).await;
            drop(taken);
            published
        });
        match publishing.await {
            Ok(published) => published,
            Err(_) => Err(Refusal::new(Code::Unavailable, "not known to be accepted: publish it again")),
        }
    }
}

/// The secrets of this process. What is missing was told when it started.
struct Environment;

impl Vault for Environment {
    async fn secret(&self, reference: &SecretRef) -> Option<String> {
        EnvSecrets.resolve(reference).await.ok()
    }
}

/// There is no configuration, which nobody outside needs to know more of.
fn unavailable(error: ConfigError) -> Refusal {
    match error {
        ConfigError::Port(error) => Refusal::unavailable(&error),
        error => {
            tracing::error!(%error, "there is no configuration");
            Refusal::new(Code::Unavailable, "there is no configuration to publish under: try again later")
        }
    }
}

/// The answer as HTTP has it.
pub(super) fn write(answer: Answer) -> Response<Full<Bytes>> {
    let body = match answer.body {
        std::borrow::Cow::Borrowed(text) => Bytes::from_static(text.as_bytes()),
        std::borrow::Cow::Owned(text) => Bytes::from(text),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some((name, value)) = answer.header {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}
