//! The listening socket: connections, bounded in number and in the time that a head may take.
//!
//! Whoever holds a connection and sends nothing, or a head byte by byte, is hung up on; so is one
//! that is kept alive and not used, or that does not read its answers. Where all connections are taken, the next one is told so.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use waybill_service::ingest::Answer;

use super::ingest::Ingest;
use super::room::overloaded;
use super::stop::Stop;

/// How many connections are open at once. Below the 1024 files that a process has where nobody asks for
/// more, with those of the deliveries under way beside them.
const MOST_CONNECTIONS: usize = 512;

/// How many more are told that there are too many, and for how long they get to read it.
const MOST_TURNED_AWAY: usize = 64;
const TURNING_AWAY: Duration = Duration::from_secs(1);

/// How long a connection has for the head of its next request.
const HEAD: Duration = Duration::from_secs(10);

/// How long nothing of an answer may be taken while there is more of it to send.
const STALLED: Duration = HEAD;

/// The largest head.
const MOST_HEAD_BYTES: usize = 64 * 1024;

/// How long nothing is accepted after the system refused to.
const BREATH: Duration = Duration::from_millis(100);

/// Serves until told to stop, then ends what was begun.
pub(super) async fn serve(door: Ingest, listener: TcpListener, stop: Stop) {
    let door = Arc::new(door);
    let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let aside = Arc::new(Semaphore::new(MOST_TURNED_AWAY));
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.wait() => break,
        };
        while open.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_the_callers(&error) => continue,
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted");
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        if let Ok(slot) = slots.clone().try_acquire_owned() {
            let (door, stop) = (door.clone(), stop.clone());
            open.spawn(async move {
                converse(stream, peer, door, stop, STALLED).await;
                drop(slot);
            });
        } else if let Ok(slot) = aside.clone().try_acquire_owned() {
            open.spawn(async move {
                let _ = tokio::time::timeout(TURNING_AWAY, turn_away(stream)).await;
                drop(slot);
            });
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

/// Answers the requests of one connection, until a write has waited for the caller as long as
/// `stalled`.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    door: Arc<Ingest>,
    stop: Stop,
    stalled: Duration,
) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(stalled));
    let answer = service_fn(move |request| {
        let door = door.clone();
        async move { Ok::<_, Infallible>(door.answer(peer, request).await) }
    });
    let mut conversation = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(MOST_HEAD_BYTES)
            .half_close(true)
            .serve_connection(TokioIo::new(Box::pin(stream)), answer)
    );
    // What a caller does to its connection is its own affair.
    tokio::select! {
        _ = conversation.as_mut() => return,
        () = stop.wait() => conversation.as_mut().graceful_shutdown(),
    }
    let _ = conversation.await;
}

/// Says that there are too many, whatever was asked, and reads past it: a caller that is still
/// writing would otherwise see its connection break instead of the answer.
async fn turn_away(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let answer = Answer::refusing(&overloaded());
    let (name, value) = answer.header.unwrap_or(("retry-after", "1"));
    let text = format!(
        "HTTP/1.1 {} Service Unavailable\r\ncontent-type: application/json\r\n{name}: {value}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{}",
        answer.status,
        answer.body.len(),
        answer.body,
    );
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await?;
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

/// Whether a connection ended before it was accepted.
fn is_the_callers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests;
