//! The body of a request, bounded in bytes and in time.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use waybill_service::event::MAX_EVENT_BYTES;
use waybill_service::ingest;

use waybill_service::refusal::{Code, Refusal};

/// How long a body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(30);

/// How much of a refused body is read past, and for how long: a caller that is still writing would
/// otherwise see its connection break instead of the answer.
const MOST_DISCARDED: usize = 4 * MAX_EVENT_BYTES;
const DISCARDING: Duration = Duration::from_secs(5);

/// Refuses a body that says itself that it is too large, before anything is done with it.
pub(super) fn check_announced(body: &Body) -> Result<(), Refusal> {
    ingest::check_size(body.size_hint().lower())
}

/// The whole body.
pub(super) async fn collect(body: &mut Body) -> Result<Bytes, Refusal> {
    let reading = Limited::new(body, MAX_EVENT_BYTES).collect();
    match tokio::time::timeout(ARRIVAL, reading).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ingest::too_large()),
        Ok(Err(_)) => Err(Refusal::new(Code::InvalidJson, "the body broke off before its end")),
        Err(_) => Err(Refusal::new(
            Code::RequestTimeout,
            format!("the body did not arrive within {} s", ARRIVAL.as_secs()),
        )),
    }
}

/// Reads past what is left of a refused body, and keeps none of it.
pub(super) async fn discard(mut body: Body) {
    let reading = async {
        let mut seen = 0;
        while seen < MOST_DISCARDED
            && let Some(Ok(frame)) = body.frame().await
        {
            seen += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // Whoever is slower than this does not get to read the answer.
    let _ = tokio::time::timeout(DISCARDING, reading).await;
}
