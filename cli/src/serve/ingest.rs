//! The door of `waybill serve`: a listening socket, whose requests are judged and answered by
//! [`waybill_service::ingest`].

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use waybill_domain::address::Locality;
use waybill_domain::destination::SecretRef;
use waybill_http::{EnvSecrets, Secrets as _};
use waybill_service::ingest::{self, Answer, EVENTS_PATH, Head};
use waybill_service::ports::Inbox as _;
use waybill_service::publish::{Published, Publisher};
use waybill_service::refusal::{Code, Refusal};
use waybill_service::source::ConfigError;
use waybill_system::SystemClock;

use super::Source;
use super::body;
use super::peer::is_on_this_machine;
use super::stop::Stop;
use crate::backend::Store;

/// Takes events over HTTP.
pub(super) struct Ingest {
    pub(super) store: Store,
    pub(super) source: Arc<Source>,
    pub(super) locality: Locality,
}

impl Ingest {
    /// Serves until told to stop, then ends what was begun.
    pub(super) async fn serve(self, listener: TcpListener, stop: Stop) {
        let router = Router::new()
            .route(EVENTS_PATH, post(events))
            .route("/healthz", get(health))
            .method_not_allowed_fallback(wrong_method)
            .fallback(nothing_here)
            .with_state(Arc::new(self));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let serving = axum::serve(listener, service).with_graceful_shutdown(async move { stop.wait().await });
        if let Err(error) = serving.await {
            tracing::error!(%error, "ingest ended");
        }
    }

    async fn accept(
        self: &Arc<Self>,
        peer: SocketAddr,
        headers: &HeaderMap,
        body: &mut Body,
    ) -> Result<Vec<Published>, Refusal> {
        body::check_announced(body)?;
        let head = Head {
            authorization: headers.get(AUTHORIZATION).map(HeaderValue::as_bytes),
            content_type: headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes),
            content_encoding: headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes),
            is_local: self.locality == Locality::AllowLocal && is_on_this_machine(peer, headers),
        };
        let token = async |reference: &SecretRef| EnvSecrets.resolve(reference).await.ok();
        let config = self.source.current().await.map_err(unavailable)?;
        let caller = ingest::judge(&config, head, token).await?;
        let event = ingest::read(&caller, &body::collect(body).await?)?;
        // In a task of its own: a caller that hangs up must not stop it between record and wake-up.
        let door = self.clone();
        let publishing = tokio::spawn(async move {
            let publisher = Publisher { ledger: &door.store, queue: &door.store, clock: &SystemClock };
            ingest::publish(&publisher, &config, event).await
        });
        match publishing.await {
            Ok(published) => published,
            Err(_) => Err(Refusal::new(Code::Unavailable, "not known to be accepted: publish it again")),
        }
    }
}

async fn events(
    State(door): State<Arc<Ingest>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (head, mut body) = request.into_parts();
    let outcome = door.accept(peer, &head.headers, &mut body).await;
    if outcome.is_err() {
        body::discard(body).await;
    }
    write(Answer::of(&outcome))
}

async fn health(State(door): State<Arc<Ingest>>) -> Response {
    write(match door.store.next_visible_at().await {
        Ok(_) => Answer::healthy(),
        Err(error) => Answer::refusing(&Refusal::unavailable(&error)),
    })
}

async fn wrong_method(request: Request) -> Response {
    write(Answer::wrong_method(request.uri().path()))
}

async fn nothing_here() -> Response {
    write(Answer::nothing_here())
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

fn write(answer: Answer) -> Response {
    let mut response = Response::new(Body::from(answer.body.to_string()));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some((name, value)) = answer.header {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}
