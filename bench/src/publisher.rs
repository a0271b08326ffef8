//! Producers: events over HTTP, several connections that are kept open.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join_all;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// To whom events go: a tenant and one of its destinations, and how long they are good for.
#[derive(Clone, Copy)]
pub(crate) struct Addressee {
    pub(crate) tenant: &'static str,
    pub(crate) destination: &'static str,
    pub(crate) deadline: Option<Duration>,
}

/// One connection to `waybill serve`.
pub(crate) struct Producer {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
}

impl Producer {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("serve takes connections");
        stream.set_nodelay(true).expect("an option of every socket");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("serve speaks HTTP/1.1");
        tokio::spawn(connection);
        Self { address, sender }
    }

    /// Publishes one event; answered means recorded.
    pub(crate) async fn publish(&mut self, event_id: &str, to: Addressee) {
        let Addressee { tenant, destination, deadline } = to;
        let mut event = serde_json::json!({
            "event_id": event_id, "tenant": tenant, "type": "lease.payment_recorded", "destination": destination,
            "payload": { "leaseId": "lease_881", "paymentId": event_id, "amountCents": 125_000, "currency": "USD" },
        });
        if let Some(deadline) = deadline {
            event["deadline"] = (jiff::Timestamp::now() + deadline).to_string().into();
        }
        let request = Request::post("/v1/events")
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(event.to_string())))
            .expect("a request");
        self.sender.ready().await.expect("the connection stands");
        let answer = self.sender.send_request(request).await.expect("serve answers");
        let status = answer.status();
        let body = answer.into_body().collect().await.expect("its answer ends").to_bytes();
        assert!(status == 202, "{event_id} was answered {status}: {}", String::from_utf8_lossy(&body));
    }
}

/// Publishes at a steady rate, whatever the answers take; answers when each event was meant to go. An event
/// that goes late because the one before was answered late counts from when it should have gone.
pub(crate) async fn at_rate(
    address: SocketAddr,
    prefix: &str,
    to: Addressee,
    per_s: u32,
    goes_on: impl Fn(Instant) -> bool,
) -> HashMap<String, Instant> {
    const CONNECTIONS: u32 = 16;
    let (begin, goes_on) = (Instant::now(), &goes_on);
    let parts = (0..CONNECTIONS).map(|connection| async move {
        let mut producer = Producer::connect(address).await;
        let mut sent = Vec::new();
        for n in (connection..).step_by(CONNECTIONS as usize) {
            let at = begin + Duration::from_secs_f64(f64::from(n) / f64::from(per_s));
            if !goes_on(at) {
                break;
            }
            tokio::time::sleep_until(at.into()).await;
            let event_id = format!("{prefix}-{n}");
            producer.publish(&event_id, to).await;
            sent.push((event_id, at));
        }
        sent
    });
    join_all(parts).await.into_iter().flatten().collect()
}

/// Publishes as fast as it is answered and `may_go` allows, until `count` events were; answers nothing.
pub(crate) async fn flat_out(
    address: SocketAddr,
    prefix: &str,
    to: Addressee,
    count: u64,
    may_go: impl Fn(u64) -> Go,
) {
    const CONNECTIONS: usize = 64;
    let (next, may_go) = (&AtomicU64::new(0), &may_go);
    let parts = (0..CONNECTIONS).map(|_| async move {
        let mut producer = Producer::connect(address).await;
        loop {
            match may_go(next.load(Ordering::SeqCst)) {
                Go::On => {}
                Go::Later => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    continue;
                }
                Go::Home => return,
            }
            let n = next.fetch_add(1, Ordering::SeqCst);
            if n >= count {
                return;
            }
            producer.publish(&format!("{prefix}-{n}"), to).await;
        }
    });
    join_all(parts).await;
}

/// Whether another event may go.
pub(crate) enum Go {
    On,
    Later,
    Home,
}
