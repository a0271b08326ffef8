//! `GET /metrics`: what the instruments show, in Prometheus' text format, on the one listener of `serve`.
//!
//! Bounded: the labels are those of [`waybill_service::instruments`], and measured values are summed up
//! in fixed buckets, whether or not anybody scrapes.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use waybill_service::instruments;

use crate::exit::Failure;

const PATH: &str = "/metrics";

/// The bounds of what is measured in milliseconds: an attempt takes moments, a retry up to days.
const SPANS_MS: [f64; 16] = [
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
    250.0,
    500.0,
    1_000.0,
    5_000.0,
    15_000.0,
    60_000.0,
    300_000.0,
    900_000.0,
    3_600_000.0,
    21_600_000.0,
    86_400_000.0,
];

const PERCENT: [f64; 7] = [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 100.0];

const ATTEMPTS: [f64; 8] = [0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0];

/// Whether a request asks for it.
pub(super) fn is_asked(method: &Method, path: &str) -> bool {
    path == PATH && (method == Method::GET || method == Method::HEAD)
}

/// What the instruments of this process show.
#[derive(Clone)]
pub(super) struct Scrape(PrometheusHandle);

impl Scrape {
    /// Starts the instruments of this process.
    pub(super) fn start() -> Result<Self, Failure> {
        let handle =
            handle().map_err(|error| Failure::failed(format!("the metrics cannot start: {error}")))?;
        instruments::describe();
        Ok(Self(handle))
    }

    /// What no instrument tells.
    #[cfg(test)]
    pub(super) fn of_nothing() -> Self {
        Self(PrometheusBuilder::new().build_recorder().handle())
    }

    /// Sums up what was measured since the last time.
    pub(super) fn sum_up(&self) {
        self.0.run_upkeep();
    }

    /// The answer to whoever scrapes.
    pub(super) fn answer(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.0.render())));
        let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, format);
        response
    }
}

fn handle() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets(&SPANS_MS)?
        .set_buckets_for_metric(Matcher::Full("AttemptsToEnd".to_owned()), &ATTEMPTS)?
        .set_buckets_for_metric(Matcher::Full("WorkerSaturation".to_owned()), &PERCENT)?
        .set_buckets_for_metric(Matcher::Full("RedriveSuccess".to_owned()), &PERCENT)?
        .install_recorder()
}
