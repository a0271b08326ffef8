//! What a scripted recipient saw, in the order of arrival.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;
use waybill_domain::signature::SigningKey;
use waybill_domain::time::TimeMs;

use super::ArrivalClock;

/// A request as it arrived, or the part of it that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The connection it came over, counted from 1.
    pub connection: usize,
    /// When it arrived, where the server has a clock.
    pub at: Option<TimeMs>,
    /// The host that TLS was asked for.
    pub server_name: Option<String>,
    /// `POST /hooks HTTP/1.1`.
    pub request_line: String,
    /// The header fields as they were written, in order.
    pub headers: Vec<(String, String)>,
    /// The body, as far as it was read.
    pub body: Bytes,
    /// Whether it was read to its end.
    pub complete: bool,
    /// Whether the recipient's database shows its effect.
    pub applied: bool,
}

impl Received {
    /// The first header field of this name, in whatever case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// What the recipient deduplicates by.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.header("idempotency-key")
    }

    /// Whether one of the signatures is that of `key` over this ID, timestamp and body, as a
    /// recipient checks it.
    pub fn is_signed_by(&self, key: &SigningKey) -> bool {
        let (Some(id), Some(timestamp), Some(signatures)) =
            (self.header("webhook-id"), self.header("webhook-timestamp"), self.header("webhook-signature"))
        else {
            return false;
        };
        let Ok(timestamp_s) = timestamp.parse() else { return false };
        let expected = key.sign(id, timestamp_s, &self.body);
        signatures.split(' ').any(|signature| signature == expected)
    }
}

/// The log behind a server.
pub(crate) struct Log {
    state: Mutex<State>,
    changed: watch::Sender<()>,
    clock: Option<ArrivalClock>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) requests: Vec<Received>,
    pub(crate) opened: usize,
    pub(crate) closed: usize,
    pub(crate) bytes_received: usize,
}

impl Log {
    pub(crate) fn new(clock: Option<ArrivalClock>) -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(()), clock }
    }

    /// A connection was accepted; its number.
    pub(crate) fn opened(&self) -> usize {
        self.change(|state| {
            state.opened += 1;
            state.opened
        })
    }

    /// A connection was dealt with.
    pub(crate) fn closed(&self) {
        self.change(|state| state.closed += 1);
    }

    /// Bytes arrived.
    pub(crate) fn counted(&self, bytes: usize) {
        self.change(|state| state.bytes_received += bytes);
    }

    /// A request was read and judged.
    pub(crate) fn add(&self, request: Received) {
        self.change(|state| state.requests.push(request));
    }

    pub(crate) fn now(&self) -> Option<TimeMs> {
        self.clock.as_ref().map(|clock| clock())
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.state().requests.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state().opened
    }

    pub(crate) fn connections_closed(&self) -> usize {
        self.state().closed
    }

    pub(crate) fn bytes_received(&self) -> usize {
        self.state().bytes_received
    }

    pub(crate) async fn wait_until(&self, reached: impl Fn(&State) -> bool) {
        let mut changes = self.changed.subscribe();
        while !reached(&self.state()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.send_replace(());
        changed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state().fmt(f)
    }
}
