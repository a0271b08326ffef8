//! The recipient of the measurements: takes its time, answers what it is told to, and keeps when.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request that was read in full and answered.
#[derive(Clone)]
pub(crate) struct Taken {
    pub(crate) event_id: String,
    pub(crate) answered: Instant,
}

/// An HTTP server on loopback.
pub(crate) struct Recipient {
    pub(crate) url: String,
    address: SocketAddr,
    log: Arc<Log>,
    accepting: Mutex<JoinHandle<()>>,
}

struct Log {
    service_time: Duration,
    status: AtomicU16,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    taken: Mutex<Vec<Taken>>,
}

impl Recipient {
    /// Starts one that takes `service_time` for each request and answers 204 until told otherwise.
    pub(crate) async fn start(service_time: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (at_once, most_at_once) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let status = AtomicU16::new(204);
        let log = Log { service_time, status, at_once, most_at_once, taken: Mutex::default() };
        let log = Arc::new(log);
        let accepting = Mutex::new(tokio::spawn(accept(listener, log.clone())));
        Self { url: format!("http://{address}/hooks"), address, log, accepting }
    }

    /// From now on its address refuses connections; what it has begun it still answers.
    pub(crate) fn go(&self) {
        self.accepting.lock().unwrap_or_else(PoisonError::into_inner).abort();
    }

    /// Takes connections again, at the same address.
    pub(crate) async fn come_back(&self) {
        let listener = TcpListener::bind(self.address).await.expect("nobody took its port");
        let accepting = tokio::spawn(accept(listener, self.log.clone()));
        *self.accepting.lock().unwrap_or_else(PoisonError::into_inner) = accepting;
    }

    /// What it answers from now on.
    pub(crate) fn answer(&self, status: u16) {
        self.log.status.store(status, Ordering::SeqCst);
    }

    /// How many requests it has answered.
    pub(crate) fn count(&self) -> usize {
        self.log.taken().len()
    }

    /// How many requests it has had to do with at once at most, whether or not their senders waited.
    pub(crate) fn most_at_once(&self) -> usize {
        self.log.most_at_once.load(Ordering::SeqCst)
    }

    /// All that it has answered after the first `seen`, in order.
    pub(crate) fn taken_after(&self, seen: usize) -> Vec<Taken> {
        self.log.taken()[seen..].to_vec()
    }
}

impl Log {
    fn taken(&self) -> MutexGuard<'_, Vec<Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, log: Arc<Log>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, log.clone()));
    }
}

async fn serve(stream: TcpStream, log: Arc<Log>) {
    let service = service_fn(|request| {
        let log = log.clone();
        async move { Ok::<_, Infallible>(take(request, &log).await) }
    });
    // A sender that hangs up early is its own matter: what it sent was not read in full.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn take(request: Request<Incoming>, log: &Arc<Log>) -> Response<Empty<Bytes>> {
    let event_id = request.headers().get("waybill-event-id").and_then(|value| value.to_str().ok());
    let event_id = event_id.unwrap_or_default().to_owned();
    let mut answer = Response::new(Empty::new());
    if request.into_body().collect().await.is_err() {
        *answer.status_mut() = StatusCode::BAD_REQUEST;
        return answer;
    }
    work(log.clone()).await;
    let status = log.status.load(Ordering::SeqCst);
    *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
    log.taken().push(Taken { event_id, answered: Instant::now() });
    answer
}

/// What it does for a request. It goes on to the end, even where the sender has hung up.
async fn work(log: Arc<Log>) {
    let at_once = log.at_once.fetch_add(1, Ordering::SeqCst) + 1;
    log.most_at_once.fetch_max(at_once, Ordering::SeqCst);
    let working = tokio::spawn(async move {
        tokio::time::sleep(log.service_time).await;
        log.at_once.fetch_sub(1, Ordering::SeqCst);
    });
    working.await.expect("to wait cannot fail");
}
