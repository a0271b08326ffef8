//! A recipient that does exactly what a script says, on a real loopback socket.
//!
//! It speaks HTTP/1.1 by itself, byte by byte, so that it can also break it: answer slowly, never,
//! in the middle, with rubbish, or hang up at any point. Every request is logged as it arrived,
//! with whether its effect was *applied*, which is what a real recipient's database would show.
//!
//! Order of reading: [`script`] (what is to happen), [`ScriptedServer`] (where it happens),
//! [`log`] (what happened), [`dedup`] (one effect per idempotency key), and `tls` behind the
//! feature of that name.

pub mod script;
pub mod log;
mod line;
mod perform;
pub mod dedup;
#[cfg(feature = "tls")]
pub mod tls;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use waybill_domain::time::TimeMs;

pub use dedup::DeduplicatingRecipient;
pub use log::Received;
pub use script::{Answer, Reading, Script};

use line::Socket;
use log::Log;

/// Reads the time at which a request arrives.
pub type ArrivalClock = Arc<dyn Fn() -> TimeMs + Send + Sync>;

/// A scripted recipient. It listens from [`ScriptedServer::start`] until it is dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    log: Arc<Log>,
    accepting: JoinHandle<()>,
}

/// How a server is set up, before it starts.
pub struct Setting {
    script: Script,
    address: SocketAddr,
    clock: Option<ArrivalClock>,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Setting {
    /// Plain HTTP on 127.0.0.1, on a port that the system chooses.
    pub fn new(script: Script) -> Self {
        Self {
            script,
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            clock: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// The same at another address.
    pub fn at(self, address: SocketAddr) -> Self {
        Self { address, ..self }
    }

    /// The same, with the arrival of every request noted.
    pub fn with_clock(self, clock: impl Fn() -> TimeMs + Send + Sync + 'static) -> Self {
        Self { clock: Some(Arc::new(clock)), ..self }
    }

    /// The same over TLS.
    #[cfg(feature = "tls")]
    pub fn with_tls(self, identity: &tls::Identity) -> Self {
        Self { tls: Some(identity.acceptor()), ..self }
    }

    /// Listens.
    pub async fn start(self) -> io::Result<ScriptedServer> {
        let listener = TcpListener::bind(self.address).await?;
        let address = listener.local_addr()?;
        let log = Arc::new(Log::new(self.clock.clone()));
        let accepting = tokio::spawn(self.accept(listener, Arc::clone(&log)));
        Ok(ScriptedServer { address, log, accepting })
    }

    async fn accept(self, listener: TcpListener, log: Arc<Log>) {
        // Dropped with this task, and all connections with it.
        let mut connections = JoinSet::new();
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            while connections.try_join_next().is_some() {}
            let number = log.opened();
            let (script, log) = (self.script.clone(), Arc::clone(&log));
            #[cfg(feature = "tls")]
            let acceptor = self.tls.clone();
            connections.spawn(async move {
                #[cfg(feature = "tls")]
                let socket = match acceptor {
                    Some(acceptor) => tls::accept(acceptor, stream).await,
                    None => plain(stream),
                };
                #[cfg(not(feature = "tls"))]
                let socket = plain(stream);
                if let Some(socket) = socket {
                    perform::connection(socket, number, &script, &log).await;
                }
                log.closed();
            });
        }
    }
}

fn plain(stream: TcpStream) -> Option<Socket> {
    let _ = stream.set_nodelay(true);
    Some(Socket::Plain(stream))
}

impl ScriptedServer {
    /// Listens on 127.0.0.1 over plain HTTP.
    pub async fn start(script: Script) -> io::Result<Self> {
        Setting::new(script).start().await
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT` and `path`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Every request so far, in the order of arrival; also those of which only a part came.
    pub fn requests(&self) -> Vec<Received> {
        self.log.requests()
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.log.connections()
    }

    /// How many connections were dealt with to their end.
    pub fn closed(&self) -> usize {
        self.log.connections_closed()
    }

    /// How many bytes of requests arrived in all.
    pub fn bytes_received(&self) -> usize {
        self.log.bytes_received()
    }

    /// Waits until `count` requests have arrived (and the last of them was logged).
    pub async fn arrived(&self, count: usize) {
        self.log.wait_until(|state| state.requests.len() >= count).await;
    }

    /// Waits until `count` connections have been dealt with to their end.
    pub async fn finished(&self, count: usize) {
        self.log.wait_until(|state| state.closed >= count).await;
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
