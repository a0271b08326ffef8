//! What is read of an answer: the status, `Retry-After`, and the beginning of the body.
//!
//! The status stands from the moment its head was read. A body that stalls, breaks, never ends or is
//! not what it says it is changes nothing of it; it only makes the excerpt shorter.

use http::header::RETRY_AFTER;
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::io::{AsyncRead, AsyncWrite};
use waybill_domain::attempt::{Excerpt, RetryAfter};
use waybill_domain::retry_after;
use waybill_domain::time::TimeMs;

use crate::budget::Budget;
use crate::exchange::Line;
use crate::redact::Redactor;

/// How many bytes of a body are waited for: twice what is kept, so that a secret that begins within
/// what is kept is seen whole.
const MOST_READ: usize = 4096;

/// How much of a `Retry-After` is kept.
const MOST_SHOWN: usize = 64;

/// A final answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The final status.
    pub(crate) status: u16,
    /// What the recipient asked for.
    pub(crate) retry_after: Option<RetryAfter>,
    /// What it said; `None` where it said nothing.
    pub(crate) excerpt: Option<Excerpt>,
}

impl Answer {
    /// Takes what is wanted of `head`, and of the body what comes in time.
    pub(crate) async fn read<IO: AsyncRead + AsyncWrite + Send + Unpin>(
        line: &mut Line<IO>,
        head: Response<Incoming>,
        headed_at: TimeMs,
        redactor: &Redactor,
        budget: &Budget,
    ) -> Self {
        let status = head.status().as_u16();
        let retry_after = asked_wait(head.headers(), headed_at, redactor);
        let body = Told::read(line, head.into_body(), budget).await;
        Self { status, retry_after, excerpt: body.into_excerpt(redactor) }
    }
}

/// The beginning of a body.
struct Told {
    bytes: Vec<u8>,
    announced: Option<u64>,
    arrived: u64,
    complete: bool,
}

impl Told {
    async fn read<IO: AsyncRead + AsyncWrite + Send + Unpin>(
        line: &mut Line<IO>,
        mut body: Incoming,
        budget: &Budget,
    ) -> Self {
        let announced = body.size_hint().exact();
        let mut told = Told { bytes: Vec::new(), announced, arrived: 0, complete: body.is_end_stream() };
        while !told.complete && told.arrived < MOST_READ as u64 {
            match budget.within(line.drive(body.frame())).await {
                Ok(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        told.take(data);
                    }
                    told.complete = body.is_end_stream();
                }
                Ok(None) => told.complete = true,
                // Out of time, or broken off: what was read is what there is.
                Ok(Some(Err(_))) | Err(_) => return told,
            }
        }
        drop(body);
        line.hang_up().await;
        told
    }

    fn take(&mut self, data: &[u8]) {
        self.arrived += data.len() as u64;
        let room = MOST_READ - self.bytes.len();
        self.bytes.extend_from_slice(&data[..data.len().min(room)]);
    }

    fn into_excerpt(self, redactor: &Redactor) -> Option<Excerpt> {
        let full_length = self.announced.unwrap_or(self.arrived).max(self.arrived);
        if self.complete && full_length == 0 {
            return None;
        }
        let mut bytes = redactor.clean(&self.bytes);
        bytes.truncate(Excerpt::MOST);
        Some(Excerpt { bytes, full_length, complete: self.complete })
    }
}

/// Every `Retry-After` field together: the longest wait counts, and all are shown.
fn asked_wait(headers: &HeaderMap, at: TimeMs, redactor: &Redactor) -> Option<RetryAfter> {
    let fields: Vec<&[u8]> = headers.get_all(RETRY_AFTER).iter().map(|value| value.as_bytes()).collect();
    if fields.is_empty() {
        return None;
    }
    let legible = fields.iter().filter_map(|field| std::str::from_utf8(field).ok());
    let wait = retry_after::parse_fields(legible, at);
    let shown = redactor.clean(&fields.join(&b", "[..]));
    let shown = String::from_utf8_lossy(&shown);
    let received =
        shown.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).take(MOST_SHOWN).collect();
    Some(RetryAfter { received, wait })
}
