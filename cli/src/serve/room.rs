//! Room for the bodies of all requests together, so that many large ones at once cost no more memory
//! than there is.
//!
//! Room is taken as bytes arrive and given back when the request ends. It is never waited for: who
//! waits holds what the others wait for.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use waybill_service::refusal::{Code, Refusal};

/// The room that there is, in bytes.
#[derive(Clone)]
pub(super) struct Room(Arc<Semaphore>);

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
