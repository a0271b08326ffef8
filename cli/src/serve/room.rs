//! Room for the bodies of all requests together, so that many large ones at once cost no more memory
//! than there is. Those of strangers, whom only a signature over the whole body makes known, have room
//! of their own: whoever has shown who they are is not kept out by them. Nor are they by one another,
//! as far as they are small: connections are bounded in number, so each has a little room of its own, and only
//! what a body has beyond that is taken from the room that strangers share.
//!
//! Room is taken as bytes arrive and given back when the request ends. It is never waited for: who
//! waits holds what the others wait for.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use waybill_domain::verify::headers::Headers;
use waybill_service::ingest::Inlet;
use waybill_service::refusal::{Code, Refusal};

/// The room that there is, in bytes.
#[derive(Clone)]
pub(super) struct Room {
    shared: Arc<Semaphore>,
    own: usize,
}

/// The rooms of a door.
pub(super) struct Rooms {
    /// For the bodies of callers that are known by the head of their request.
    pub(super) known: Room,
    /// For the bodies of those that are not.
    pub(super) strangers: Room,
}

impl Rooms {
    /// The one for a request.
    pub(super) fn of(&self, inlet: Inlet<'_>, headers: &Headers) -> &Room {
        if inlet.is_told_by_body(headers) { &self.strangers } else { &self.known }
    }
}

/// The room that one request has taken.
pub(super) struct Taken {
    room: Room,
    own: usize,
    held: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// Room for so many bytes, which all requests share.
    pub(super) fn of(bytes: usize) -> Self {
        Self { shared: Arc::new(Semaphore::new(bytes)), own: 0 }
    }

    /// Beside it, so many bytes for each request alone: nobody else's request can keep them from it.
    pub(super) fn and_for_each(self, bytes: usize) -> Self {
        Self { own: bytes, ..self }
    }

    /// Nothing of it, to begin with.
    pub(super) fn none(&self) -> Taken {
        Taken { room: self.clone(), own: self.own, held: None }
    }
}

impl Taken {
    /// Takes room for so many bytes more, if there is any.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Refusal> {
        let own = bytes.min(self.own);
        self.own -= own;
        let shared = || self.room.shared.clone();
        let more = u32::try_from(bytes - own).ok().and_then(|n| shared().try_acquire_many_owned(n).ok());
        match (more, &mut self.held) {
            (None, _) => Err(overloaded()),
            (Some(more), Some(held)) => {
                held.merge(more);
                Ok(())
            }
            (more, held) => {
                *held = more;
                Ok(())
            }
        }
    }
}

/// What is said where too much is under way.
pub(super) fn overloaded() -> Refusal {
    Refusal::new(Code::Overloaded, "too much is under way at once: send the same request again")
}
