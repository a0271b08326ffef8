//! Reading requests byte by byte, with nothing assumed of who sends them.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::log::{Log, Received};
use super::script::Reading;

/// The longest head that is read.
const LONGEST_HEAD: usize = 64 * 1024;

/// A connection, encrypted or not.
pub(crate) enum Socket {
    /// Plain TCP.
    Plain(TcpStream),
    /// TLS, and the name that was asked for.
    #[cfg(feature = "tls")]
    Encrypted(Box<tokio_rustls::server::TlsStream<TcpStream>>, Option<String>),
}

impl Socket {
    pub(crate) fn server_name(&self) -> Option<String> {
        match self {
            Socket::Plain(_) => None,
            #[cfg(feature = "tls")]
            Socket::Encrypted(_, name) => name.clone(),
        }
    }

    async fn read(&mut self, into: &mut BytesMut) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.read_buf(into).await,
            #[cfg(feature = "tls")]
            Socket::Encrypted(stream, _) => stream.read_buf(into).await,
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Socket::Plain(stream) => stream.write_all(bytes).await,
            #[cfg(feature = "tls")]
            Socket::Encrypted(stream, _) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Waits until the other side has ended the connection.
    pub(crate) async fn ended(&mut self) {
        let mut rest = BytesMut::new();
        while matches!(self.read(&mut rest).await, Ok(1..)) {
            rest.clear();
        }
    }

    /// Ends the connection in order.
    pub(crate) async fn close(mut self) {
        let shut = match &mut self {
            Socket::Plain(stream) => stream.shutdown().await,
            #[cfg(feature = "tls")]
            Socket::Encrypted(stream, _) => stream.shutdown().await,
        };
        // What is still unread would turn the end into an RST; it is read away first.
        if shut.is_ok() {
            self.ended().await;
        }
    }

    /// Ends the connection with an RST.
    pub(crate) fn reset(self) {
        let _ = match self {
            Socket::Plain(stream) => stream.set_zero_linger(),
            #[cfg(feature = "tls")]
            Socket::Encrypted(stream, _) => stream.into_inner().0.set_zero_linger(),
        };
    }
}

/// What has arrived on a connection and was not asked for yet.
pub(crate) struct Inbox {
    pub(crate) socket: Socket,
    buffer: BytesMut,
}

impl Inbox {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, buffer: BytesMut::new() }
    }

    /// The next request, or the part of it that `reading` asks for. `None` once there is no other.
    pub(crate) async fn next(&mut self, reading: Reading, connection: usize, log: &Log) -> Option<Received> {
        let mut request = Received {
            connection,
            at: log.now(),
            server_name: self.socket.server_name(),
            request_line: String::new(),
            headers: Vec::new(),
            body: Bytes::new(),
            complete: false,
            applied: false,
        };
        if reading == Reading::Nothing {
            return Some(request);
        }
        let most = if let Reading::Bytes(most) = reading { most } else { usize::MAX };
        let head_length = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if self.buffer.len() >= most {
                return Some(request);
            }
            if self.buffer.len() > LONGEST_HEAD || !self.more(log).await {
                return (!self.buffer.is_empty()).then_some(request);
            }
        };
        request.at = log.now();
        let head = self.buffer.split_to(head_length);
        (request.request_line, request.headers) = parse_head(&head);
        let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let wanted = match reading {
            Reading::Head => 0,
            _ => length.min(most.saturating_sub(head_length)),
        };
        while self.buffer.len() < wanted && self.more(log).await {}
        request.body = self.buffer.split_to(wanted.min(self.buffer.len())).freeze();
        request.complete = request.body.len() == length;
        Some(request)
    }

    async fn more(&mut self, log: &Log) -> bool {
        match self.socket.read(&mut self.buffer).await {
            Ok(0) | Err(_) => false,
            Ok(bytes) => {
                log.counted(bytes);
                true
            }
        }
    }
}

fn parse_head(head: &[u8]) -> (String, Vec<(String, String)>) {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
    let request_line = lines.next().unwrap_or_default().to_owned();
    let headers = lines.filter_map(|line| line.split_once(':'));
    (request_line, headers.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}
