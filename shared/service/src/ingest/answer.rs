//! Answers, to be written by a door as they are.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::route::EVENTS_PATH;
use crate::publish::Published;
use crate::refusal::{Code, Refusal};

/// What `GET /v1/openapi.json` answers: the interface as it is, with examples that run.
pub const DESCRIPTION: &str = include_str!("../../../../docs/openapi.json");

/// An answer. Its body is JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header that this status calls for, beside `content-type: application/json`.
    pub header: Option<(&'static str, &'static str)>,
    /// The body.
    pub body: Cow<'static, str>,
}

impl Answer {
    /// What is answered to a request for an event to be published.
    pub fn of(outcome: &Result<Vec<Published>, Refusal>) -> Self {
        match outcome {
            Ok(published) => {
                let deliveries: Vec<Value> = published.iter().map(facts).collect();
                Self::json(202, &json!({ "deliveries": deliveries }))
            }
            Err(refusal) => Self::refusing(refusal),
        }
    }

    /// What is answered where nothing is wrong.
    pub fn healthy() -> Self {
        Self::json(200, &json!({ "status": "ok" }))
    }

    /// What there is, for programs.
    pub fn description() -> Self {
        Self { status: 200, header: None, body: Cow::Borrowed(DESCRIPTION) }
    }

    /// A refusal.
    pub fn refusing(refusal: &Refusal) -> Self {
        let header = match refusal.code {
            Code::Unauthorized => Some(("www-authenticate", "Bearer")),
            Code::InvalidSignature | Code::StaleSignature => Some(("www-authenticate", "Signature")),
            Code::Unavailable | Code::Overloaded => Some(("retry-after", "1")),
            _ => None,
        };
        Self { header, ..Self::json(refusal.code.status(), &json!({ "error": refusal.facts() })) }
    }

    /// There is nothing at this path.
    pub(super) fn nothing_here() -> Self {
        Self::refusing(&Refusal::new(Code::NotFound, format!("events go to POST {EVENTS_PATH}")))
    }

    /// There is something at this path, but not for this method.
    pub(super) fn wrong_method(allowed: &'static str) -> Self {
        let refusal = Refusal::new(Code::MethodNotAllowed, format!("takes only {allowed}"));
        Self { header: Some(("allow", allowed)), ..Self::refusing(&refusal) }
    }

    fn json(status: u16, body: &Value) -> Self {
        Self { status, header: None, body: Cow::Owned(body.to_string()) }
    }
}

/// One delivery, as publishing answers it on every path.
pub fn facts(published: &Published) -> Value {
    json!({
        "delivery_id": published.delivery_id.as_str(),
        "destination": published.destination.as_str(),
        "state": published.state.as_str(),
        "repeated": published.repeated,
    })
}
