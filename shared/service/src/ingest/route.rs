//! What there is: which path is for what, and how much it takes.

use waybill_domain::verify::headers::Headers;

use super::answer::Answer;
use crate::event::{MAX_EVENT_BYTES, MAX_PAYLOAD_BYTES};
use crate::refusal::{Code, Refusal};

/// Where own producers' events go.
pub const EVENTS_PATH: &str = "/v1/events";

const SOURCES_PATH: &str = "/v1/sources/";
const OPENAPI_PATH: &str = "/v1/openapi.json";
const HEALTH_PATH: &str = "/healthz";

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route<'p> {
    /// `POST`: something to publish.
    In(Inlet<'p>),
    /// `GET /v1/openapi.json`: what there is, for programs.
    Description,
    /// `GET /healthz`: whether what comes in can be kept.
    Health,
}

/// Where events come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inlet<'p> {
    /// `/v1/events`.
    Events,
    /// `/v1/sources/{source}`.
    Source(&'p str),
}

impl<'p> Route<'p> {
    /// What a method and a path are for, or the refusal.
    pub fn of(method: &str, path: &'p str) -> Result<Self, Answer> {
        let route = match path {
            EVENTS_PATH => Route::In(Inlet::Events),
            OPENAPI_PATH => Route::Description,
            HEALTH_PATH => Route::Health,
            _ => match path.strip_prefix(SOURCES_PATH) {
                Some(name) if !name.is_empty() && !name.contains('/') => Route::In(Inlet::Source(name)),
                _ => return Err(Answer::nothing_here()),
            },
        };
        let allowed = match route {
            Route::In(_) => "POST",
            Route::Description | Route::Health => "GET, HEAD",
        };
        if allowed.split(", ").any(|one| one == method) {
            return Ok(route);
        }
        Err(Answer::wrong_method(allowed))
    }
}

impl Inlet<'_> {
    /// The largest body that is taken, in bytes. A source's body is the payload itself.
    pub const fn most_bytes(self) -> usize {
        match self {
            Inlet::Events => MAX_EVENT_BYTES,
            Inlet::Source(_) => MAX_PAYLOAD_BYTES,
        }
    }

    /// Whether nobody knows who sends before the body is read, because a signature over it says so. With
    /// a token and a signature, the token counts.
    pub fn is_told_by_body(self, headers: &Headers) -> bool {
        match self {
            Inlet::Events => {
                headers.get("authorization").is_none() && headers.get("webhook-signature").is_some()
            }
            Inlet::Source(_) => true,
        }
    }

    /// Refuses a body of so many bytes if that is too many.
    pub fn check_size(self, length: u64) -> Result<(), Refusal> {
        if length <= self.most_bytes() as u64 { Ok(()) } else { Err(self.too_large()) }
    }

    /// What is said of a body that is too large.
    pub fn too_large(self) -> Refusal {
        let most = self.most_bytes();
        Refusal::new(Code::PayloadTooLarge, format!("the body is too large (at most {most} bytes)"))
    }
}
