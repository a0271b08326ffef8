//! Room for the bodies of all requests together, so that many large ones at once cost no more memory
//! than there is. Those of strangers, whom only a signature over the whole body makes known, have room
//! of their own: whoever has shown who they are is not kept out by them.
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
pub(super) struct Room(Arc<Semaphore>);

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
    held: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// Room for so many bytes.
    pub(super) fn of(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes)))
    }

    /// Nothing of it, to begin with.
    pub(super) fn none(&self) -> Taken {
        Taken { room: self.clone(), held: None }
    }
}

impl Taken {
    /// Takes room for so many bytes more, if there is any.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Refusal> {
        let more = u32::try_from(bytes).ok().and_then(|n| self.room.0.clone().try_acquire_many_owned(n).ok());
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
