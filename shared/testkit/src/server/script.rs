//! What a scripted recipient is to do: how much of a request it reads, and what follows.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::log::Received;

/// How much of a request is read before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// Head and body.
    #[default]
    Everything,
    /// The head alone.
    Head,
    /// So many bytes from its beginning, counted over head and body.
    Bytes(usize),
    /// Nothing at all.
    Nothing,
}

/// What is done once a request was read, one act after the other, and whether its effect is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Whether the recipient's database shows the effect.
    pub applied: bool,
    pub(crate) acts: Vec<Act>,
}

/// One thing that is done to a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Wait(Duration),
    Write(Bytes),
    /// Some bytes at a time, a pause after each.
    Drip {
        bytes: Bytes,
        at_a_time: usize,
        every: Duration,
    },
    /// The same bytes until the other side has had enough.
    Repeat {
        bytes: Bytes,
        every: Duration,
    },
    /// Nothing more, ever, with the connection left open until the other side ends it.
    Hang,
    /// End it in order.
    Close,
    /// End it with an RST.
    Reset,
}

impl Answer {
    /// A status without a body. A 2xx is applied, everything else is not.
    pub fn status(status: u16) -> Self {
        Self::with_body(status, &[], "")
    }

    /// A status with header fields and a body.
    pub fn with_body(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut text = format!("HTTP/1.1 {status} Scripted\r\n").into_bytes();
        for (name, value) in headers {
            text.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        if status != 204 {
            text.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
        }
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(body);
        Self { applied: (200..300).contains(&status), acts: vec![Act::Write(text.into())] }
    }

    /// These very bytes. Not applied unless it is said.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self::silence().then_raw(bytes)
    }

    /// Nothing: the beginning of an answer that is put together act by act.
    pub fn silence() -> Self {
        Self { applied: false, acts: Vec::new() }
    }

    /// No answer; the connection stays open.
    pub fn hang() -> Self {
        Self::silence().then_hang()
    }

    /// No answer; the connection is ended in order.
    pub fn close() -> Self {
        Self::silence().then_close()
    }

    /// No answer; the connection is ended with an RST.
    pub fn reset() -> Self {
        Self::silence().then_reset()
    }

    /// The same answer, with the effect applied.
    pub fn applied(self) -> Self {
        Self { applied: true, ..self }
    }

    /// The same answer, with the effect not applied.
    pub fn not_applied(self) -> Self {
        Self { applied: false, ..self }
    }

    /// The same answer, so much later.
    pub fn after(mut self, delay: Duration) -> Self {
        self.acts.insert(0, Act::Wait(delay));
        self
    }

    /// The same answer with every write cut into pieces of `at_a_time` bytes, a pause after each.
    pub fn dripping(mut self, at_a_time: usize, every: Duration) -> Self {
        for act in &mut self.acts {
            if let Act::Write(bytes) = act {
                *act = Act::Drip { bytes: std::mem::take(bytes), at_a_time: at_a_time.max(1), every };
            }
        }
        self
    }

    /// A status, and then a chunked body of `chunk` over and over, without end.
    pub fn endless(status: u16, chunk: impl AsRef<[u8]>, every: Duration) -> Self {
        let head = format!("HTTP/1.1 {status} Scripted\r\ntransfer-encoding: chunked\r\n\r\n");
        let chunk = chunk.as_ref();
        let mut framed = format!("{:x}\r\n", chunk.len()).into_bytes();
        framed.extend_from_slice(chunk);
        framed.extend_from_slice(b"\r\n");
        let repeat = Act::Repeat { bytes: framed.into(), every };
        Self { applied: (200..300).contains(&status), acts: vec![Act::Write(head.into()), repeat] }
    }

    /// Then a pause.
    pub fn then_wait(self, delay: Duration) -> Self {
        self.then(Act::Wait(delay))
    }

    /// Then these very bytes.
    pub fn then_raw(self, bytes: impl AsRef<[u8]>) -> Self {
        self.then(Act::Write(Bytes::copy_from_slice(bytes.as_ref())))
    }

    /// Then these bytes over and over, without end.
    pub fn then_repeat(self, bytes: impl AsRef<[u8]>, every: Duration) -> Self {
        self.then(Act::Repeat { bytes: Bytes::copy_from_slice(bytes.as_ref()), every })
    }

    /// Then nothing, with the connection left open.
    pub fn then_hang(self) -> Self {
        self.then(Act::Hang)
    }

    /// Then the connection is ended in order.
    pub fn then_close(self) -> Self {
        self.then(Act::Close)
    }

    /// Then the connection is ended with an RST.
    pub fn then_reset(self) -> Self {
        self.then(Act::Reset)
    }

    fn then(mut self, act: Act) -> Self {
        self.acts.push(act);
        self
    }
}

type Deciding = dyn Fn(&Received) -> Answer + Send + Sync;

/// What a server does, request by request. Cheap to clone; clones share their place in a queue.
#[derive(Clone)]
pub struct Script {
    pub(crate) reading: Reading,
    pub(crate) decide: Arc<Deciding>,
}

impl Script {
    /// The same answer every time.
    pub fn always(answer: Answer) -> Self {
        Self::decided_by(move |_| answer.clone())
    }

    /// One answer after the other; the last one for all that follows. Without any: 204.
    pub fn in_turn(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers: Vec<Answer> = answers.into_iter().collect();
        let turn = AtomicUsize::new(0);
        Self::decided_by(move |_| {
            let at = turn.fetch_add(1, Ordering::Relaxed).min(answers.len().saturating_sub(1));
            answers.get(at).cloned().unwrap_or_else(|| Answer::status(204))
        })
    }

    /// Whatever the closure says of the request (or of the part of it that was read).
    pub fn decided_by(decide: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        Self { reading: Reading::Everything, decide: Arc::new(decide) }
    }

    /// The same, on reading only so much of each request.
    pub fn on_reading(self, reading: Reading) -> Self {
        Self { reading, ..self }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("reading", &self.reading).finish_non_exhaustive()
    }
}
