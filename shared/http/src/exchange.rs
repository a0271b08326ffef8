//! One request and its answer over one connection, driven in the attempt's own task.
//!
//! Nothing is spawned: dropping the attempt drops the connection. Informational answers (1xx) are
//! skipped, but for 101, which is nobody's answer to a POST and is reported as what it is.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use waybill_domain::attempt::Phase;
use waybill_domain::outcome::Seen;

use crate::budget::{Budget, Elapsed};
use crate::report::Fault;
use crate::wire::{Endless, SentFlag};

/// The longest head of an answer that is read, and about the most memory that an answer can take.
const LONGEST_HEAD: usize = 64 * 1024;

type Http1<IO> = Connection<TokioIo<IO>, Full<Bytes>>;

/// A connection that a request can be sent over, once.
pub(crate) struct Line<IO: AsyncRead + AsyncWrite + Unpin> {
    sender: SendRequest<Full<Bytes>>,
    /// Pinned to the heap; `None` once it has ended.
    connection: Option<Pin<Box<Http1<IO>>>>,
    sent: SentFlag,
    connected: Phase,
}

impl<IO: AsyncRead + AsyncWrite + Send + Unpin> Line<IO> {
    /// Makes ready; nothing is written yet. `connected` is the phase that was reached so far.
    pub(crate) async fn open(stream: IO, sent: SentFlag, connected: Phase) -> Result<Self, Fault> {
        let mut builder = Builder::new();
        // The buffer bounds what is held of a head that does not end; one read may overshoot it.
        builder.max_buf_size(LONGEST_HEAD);
        builder.max_header_size(LONGEST_HEAD);
        // Leniency costs nothing here: only the status is judged, and no second answer follows that
        // a wrongly read first one could hide. Strictness would turn deliveries into doubts.
        builder.ignore_invalid_headers_in_responses(true);
        builder.allow_obsolete_multiline_headers_in_responses(true);
        builder.allow_spaces_after_header_name_in_responses(true);
        let opened = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = opened.map_err(|_| lost_before(connected))?;
        Ok(Self { sender, connection: Some(Box::pin(connection)), sent, connected })
    }

    /// Sends the request and waits for the head of the final answer.
    pub(crate) async fn request(
        &mut self,
        request: http::Request<Full<Bytes>>,
        budget: &Budget,
    ) -> Result<Response<Incoming>, Fault> {
        self.sent.arm();
        let answer = self.sender.send_request(request);
        match budget.within(driven(&mut self.connection, answer)).await {
            Ok(Ok(response)) => Ok(response),
            _ if !self.sent.is_sent() => Err(lost_before(self.connected)),
            Ok(Err(error)) if error.is_parse() || is_endless(&error) => Err(after(
                Seen::AnswerMalformed,
                "what came back is not an HTTP answer, or its head is longer than 64 KiB; \
                 the recipient may have applied the request",
            )),
            Ok(Err(_)) => Err(after(
                Seen::LostAfterRequest,
                "the connection was lost before an answer came; the recipient may have applied the request",
            )),
            Err(Elapsed) => {
                let note =
                    format!("no answer {}; the recipient may have applied the request", budget.in_words());
                Err(after(Seen::AnswerTimedOut, note))
            }
        }
    }

    /// Moves the connection along while `future` (the next piece of the answer) is waited for.
    pub(crate) async fn drive<F: Future>(&mut self, future: F) -> F::Output {
        driven(&mut self.connection, future).await
    }

    /// Lets the connection say goodbye, without waiting for it to be heard.
    pub(crate) async fn hang_up(&mut self) {
        driven(&mut self.connection, std::future::ready(())).await;
    }
}

/// Polls the connection first, so that `future` sees at once what it brought.
async fn driven<C: Future + Unpin, F: Future>(connection: &mut Option<C>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Some(live) = connection
            && let Poll::Ready(_) = Pin::new(live).poll(cx)
        {
            // How it ended reaches `future` through hyper's own channel.
            *connection = None;
        }
        future.as_mut().poll(cx)
    })
    .await
}

/// Whether the wire refused to read on.
fn is_endless(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let io = next.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if io.is_some_and(|inner| inner.is::<Endless>()) {
            return true;
        }
        cause = next.source();
    }
    false
}

fn lost_before(connected: Phase) -> Fault {
    let note = "the recipient ended the connection before the request began; nothing was sent";
    Fault::saw(Seen::LostBeforeRequest, connected, note)
}

fn after(seen: Seen, note: impl Into<String>) -> Fault {
    Fault::saw(seen, Phase::Request, note)
}
