//! `POST /v1/events`: size → token → media type → parse → tenant → publish → 202.
//!
//! Never 2xx before the record is durable; a repeat is answered like the first time. Every refusal
//! is one of the table in [`crate::refusal`], as `{"error": {"code", "field", "message"}}`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use waybill_domain::address::Locality;
use waybill_service::config::Config;
use waybill_service::event::Event;
use waybill_service::ports::Inbox as _;
use waybill_service::publish::{Published, Publisher};

use super::authorize::identify;
use super::body;
use super::stop::Stop;
use crate::backend::Store;
use crate::commands::publish::facts;
use crate::refusal::{Code, Refusal};
use crate::system::SystemClock;

/// Takes events over HTTP.
pub(super) struct Ingest {
    pub(super) store: Store,
    pub(super) config: Arc<Config>,
    pub(super) locality: Locality,
}

impl Ingest {
    /// Serves until told to stop, then ends what was begun.
    pub(super) async fn serve(self, listener: TcpListener, stop: Stop) {
        let router = Router::new()
            .route("/v1/events", post(events))
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
        let caller = identify(&self.config, self.locality, peer, headers).await?;
        check_media_type(headers)?;
        let bytes = body::collect(body).await?;
        let event = Event::parse(&bytes).map_err(|invalid| Refusal::of_event(invalid, bytes.len()))?;
        if !caller.may_publish_for(&event.tenant) {
            let message = format!("this token does not publish for tenant {}", event.tenant);
            return Err(Refusal::new(Code::Forbidden, message));
        }
        // In a task of its own: a caller that hangs up must not stop it between record and wake-up.
        let ingest = self.clone();
        let publishing = tokio::spawn(async move {
            let publisher = Publisher { ledger: &ingest.store, queue: &ingest.store, clock: &SystemClock };
            publisher.publish(&ingest.config, event).await
        });
        match publishing.await {
            Ok(published) => published.map_err(Refusal::of_publish),
            Err(_) => Err(Refusal::new(Code::Unavailable, "not known to be accepted: publish it again")),
        }
    }
}

async fn events(
    State(ingest): State<Arc<Ingest>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (head, mut body) = request.into_parts();
    match ingest.accept(peer, &head.headers, &mut body).await {
        Ok(published) => {
            let deliveries: Vec<Value> = published.iter().map(facts).collect();
            answer(202, &json!({ "deliveries": deliveries }))
        }
        Err(refusal) => {
            body::discard(body).await;
            refuse(&refusal)
        }
    }
}

async fn health(State(ingest): State<Arc<Ingest>>) -> Response {
    match ingest.store.next_visible_at().await {
        Ok(_) => answer(200, &json!({ "status": "ok" })),
        Err(error) => refuse(&Refusal::unavailable(&error)),
    }
}

async fn wrong_method(request: Request) -> Response {
    let allowed = if request.uri().path() == "/healthz" { "GET, HEAD" } else { "POST" };
    let mut response = refuse(&Refusal::new(Code::MethodNotAllowed, format!("takes only {allowed}")));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

async fn nothing_here() -> Response {
    refuse(&Refusal::new(Code::NotFound, "events go to POST /v1/events"))
}

/// A browser on this machine asks before it sends JSON to somebody else's port, and is told no. What
/// is compressed is refused, not undone: nobody knows how large it becomes.
fn check_media_type(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        let message = "content-encoding is not taken; send the event as it is";
        return Err(Refusal::new(Code::UnsupportedMediaType, message));
    }
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "content-type is missing or is not application/json";
    Err(Refusal::new(Code::UnsupportedMediaType, message))
}

fn refuse(refusal: &Refusal) -> Response {
    let mut response = answer(refusal.code.status(), &json!({ "error": refusal.facts() }));
    let headers = response.headers_mut();
    match refusal.code {
        Code::Unauthorized => headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
        Code::Unavailable => headers.insert(RETRY_AFTER, HeaderValue::from_static("1")),
        _ => None,
    };
    response
}

fn answer(status: u16, facts: &Value) -> Response {
    let mut response = Response::new(Body::from(facts.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
