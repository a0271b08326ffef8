//! The body of a request, bounded in bytes and in time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use waybill_service::event::MAX_EVENT_BYTES;
use waybill_service::ingest::Inlet;
use waybill_service::refusal::{Code, Refusal};

use super::room::Taken;

/// How long a body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(30);

/// How much of a refused body is read past, and for how long: a caller that is still writing would
/// otherwise see its connection break instead of the answer.
const MOST_DISCARDED: usize = 4 * MAX_EVENT_BYTES;
const DISCARDING: Duration = Duration::from_secs(5);

/// The whole body, at most as large as the inlet takes, for as much of it as there is room.
pub(super) async fn collect<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    inlet: Inlet<'_>,
    taken: &mut Taken,
) -> Result<Bytes, Refusal> {
    let reading = async {
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|_| Refusal::new(Code::InvalidJson, "the body broke off before its end"))?;
            let Ok(data) = frame.into_data() else { continue };
            inlet.check_size((bytes.len() + data.len()) as u64)?;
            taken.take(data.len())?;
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
    };
    let late = || format!("the body did not arrive within {} s", ARRIVAL.as_secs());
    let within = tokio::time::timeout(ARRIVAL, reading).await;
    within.unwrap_or_else(|_| Err(Refusal::new(Code::RequestTimeout, late())))
}

/// Reads past what is left of a refused body, and keeps none of it.
pub(super) async fn discard<B: Body<Data = Bytes> + Unpin>(mut body: B) {
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
