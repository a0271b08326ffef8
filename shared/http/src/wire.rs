//! The socket, with a mark that says whether a byte of the request has left.
//!
//! It stands below TLS, because what TLS has taken is not what the network has: only bytes that the
//! socket accepted can reach the recipient, and only they leave a doubt.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Not armed is 0: what is written then belongs to the handshake.
const ARMED: u8 = 1;
const SENT: u8 = 2;

/// Whether a byte has left since the request began.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentFlag(Arc<AtomicU8>);

impl SentFlag {
    /// From here on every byte may be the request's.
    pub(crate) fn arm(&self) {
        self.0.store(ARMED, Ordering::Relaxed);
    }

    /// Whether one has left since.
    pub(crate) fn is_sent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == SENT
    }

    fn is_armed(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= ARMED
    }

    fn count(&self, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(n)) if *n > 0) {
            let _ = self.0.compare_exchange(ARMED, SENT, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// A TCP connection that counts.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    sent: SentFlag,
    read: usize,
}

/// The most bytes that are read of an answer, with everything around it. What is wanted of one fits
/// in half of it; what does not end (interim answers without end, a chunk size of a million zeros)
/// would otherwise be parsed for as long as the other side can send.
const MOST_READ: usize = 256 * 1024;

/// The answer was longer than [`MOST_READ`].
#[derive(Debug, thiserror::Error)]
#[error("the answer does not end")]
pub(crate) struct Endless;

impl Wire {
    /// Counts on `sent` what is written to `stream`.
    pub(crate) fn new(stream: TcpStream, sent: SentFlag) -> Self {
        Self { stream, sent, read: 0 }
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.read > MOST_READ {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, Endless)));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buf);
        if this.sent.is_armed() {
            this.read += buf.filled().len() - before;
        }
        polled
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.sent.count(&written);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.sent.count(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_that_the_socket_took_after_the_request_began_count() {
        let failed = || Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        for (armed, written, is_sent) in [
            (true, Poll::Ready(Ok(1)), true),
            (true, Poll::Ready(Ok(0)), false),
            (true, Poll::Pending, false),
            (true, failed(), false),
            (false, Poll::Ready(Ok(1)), false),
        ] {
            let flag = SentFlag::default();
            if armed {
                flag.arm();
            }
            flag.count(&written);
            assert_eq!(flag.is_sent(), is_sent, "{armed} {written:?}");
            flag.count(&failed());
            assert_eq!(flag.is_sent(), is_sent, "what has left stays so");
        }
    }
}
