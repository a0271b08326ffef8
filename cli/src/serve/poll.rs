//! The consumer loop: receive, and give each message a task of its own.
//!
//! Polling never waits for a recipient: only for room, for a message, or for the stop. Every message
//! stands alone; a panic leaves that message and no other, and it comes again by itself.

use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use waybill_domain::delivery::Claim;
use waybill_domain::time::DurationMs;
use waybill_service::config::Config;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::instruments;
use waybill_service::ports::{
    Clock, Dice, Inbox, Ledger, PortResult, Ports, Queue, Received, Recipient, in_full,
};
use waybill_service::source::ConfigError;

use super::Source;
use super::patience::{Patience, longest_timeout};
use super::stop::Stop;

/// How many messages are received at once.
const BATCH: usize = 64;

/// The longest sleep: another process may have put a message into the queue.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A message stays hidden for longer than any claim that its worker can take.
const BEYOND_LEASE: DurationMs = DurationMs::from_secs(10);

/// This worker runs for as long as it likes.
const TIME_LEFT: DurationMs = DurationMs::LONGEST;

/// Receives messages and works on them.
pub(super) struct Poller<L, Q, R, C, D> {
    ports: Arc<Ports<L, Q, R, C, D>>,
    source: Arc<Source>,
    patience: Patience,
    concurrency: usize,
    room: Arc<Semaphore>,
}

impl<L, Q, R, C, D> Poller<L, Q, R, C, D>
where
    L: Ledger + 'static,
    Q: Queue + Inbox + 'static,
    R: Recipient + 'static,
    C: Clock + 'static,
    D: Dice + 'static,
{
    pub(super) fn new(
        ports: Arc<Ports<L, Q, R, C, D>>,
        source: Arc<Source>,
        concurrency: NonZeroUsize,
        patience: Patience,
    ) -> Self {
        let concurrency = concurrency.get().min(Semaphore::MAX_PERMITS);
        Self { ports, source, patience, concurrency, room: Arc::new(Semaphore::new(concurrency)) }
    }

    /// Polls until told to stop, then waits for what is under way, as long as there is patience for it.
    /// Answers how many messages were still worked on then. `arrivals` changes when a message was sent.
    pub(super) async fn run(self, mut arrivals: watch::Receiver<u64>, stop: Stop) -> usize {
        loop {
            let room = tokio::select! {
                () = stop.wait() => break,
                room = self.take_room() => room,
            };
            // Marked before receiving: what arrives from here on ends the sleep.
            arrivals.mark_unchanged();
            let (config, received) = match self.receive(room.len()).await {
                Ok(received) => received,
                Err(error) => {
                    tracing::error!(error = in_full(&error), "not received: tried again in a moment");
                    tokio::time::sleep(LONGEST_SLEEP).await;
                    continue;
                }
            };
            if !received.is_empty() {
                let others = self.concurrency - self.room.available_permits() - room.len();
                instruments::saturated(others + received.len(), self.concurrency);
                self.work_on(&config, received, room);
                continue;
            }
            drop(room);
            tokio::select! {
                () = stop.wait() => break,
                _ = arrivals.changed() => {}
                () = self.sleep() => {}
            }
        }
        let all = u32::try_from(self.concurrency).unwrap_or(u32::MAX);
        match tokio::time::timeout(self.patience.span(), self.room.acquire_many(all)).await {
            Ok(_) => 0,
            Err(_) => self.concurrency - self.room.available_permits(),
        }
    }

    /// Room for at least one message, and for as many more as a batch has.
    async fn take_room(&self) -> Vec<OwnedSemaphorePermit> {
        let mut room = Vec::with_capacity(BATCH);
        // The semaphore is never closed.
        room.extend(self.room.clone().acquire_owned().await);
        while room.len() < BATCH
            && let Ok(more) = self.room.clone().try_acquire_owned()
        {
            room.push(more);
        }
        room
    }

    /// Until the next message is visible, as far as this process knows.
    async fn sleep(&self) {
        let next = self.ports.queue.next_visible_at().await.ok().flatten();
        let wait = next.map(|at| at.since(self.ports.clock.now()).as_std());
        tokio::time::sleep(wait.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)).await;
    }

    /// Messages, and the configuration under which they are worked on: hidden for as long as any
    /// destination of this one may take.
    async fn receive(&self, most: usize) -> Result<(Arc<Config>, Vec<Received>), ConfigError> {
        let config = self.source.current().await?;
        self.patience.note(&config);
        let visibility = longest_timeout(&config).plus(Claim::MARGIN).plus(BEYOND_LEASE);
        let received = self.ports.queue.receive(most, visibility).await?;
        Ok((config, received))
    }

    fn work_on(&self, config: &Arc<Config>, messages: Vec<Received>, room: Vec<OwnedSemaphorePermit>) {
        for (message, permit) in messages.into_iter().zip(room) {
            let (ports, config) = (self.ports.clone(), config.clone());
            tokio::spawn(async move {
                let _permit = permit;
                let message_id = message.message_id.clone();
                match AssertUnwindSafe(work(&ports, &config, message)).catch_unwind().await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        tracing::error!(%message_id, error = error.in_full(), "the message comes again");
                    }
                    Err(_) => tracing::error!(%message_id, "its work panicked; the message comes again"),
                }
            });
        }
    }
}

async fn work<L, Q, R, C, D>(
    ports: &Ports<L, Q, R, C, D>,
    config: &Config,
    message: Received,
) -> PortResult<()>
where
    L: Ledger,
    Q: Queue + Inbox,
    R: Recipient,
    C: Clock,
    D: Dice,
{
    let incoming = Incoming { message_id: &message.message_id, body: &message.body };
    match (Consumer { ports }).consume(config, incoming, TIME_LEFT).await {
        Verdict::Acknowledge => ports.queue.acknowledge(&message.receipt).await,
        Verdict::Leave { hidden_until: Some(until) } => ports.queue.hide_until(&message.receipt, until).await,
        Verdict::Leave { hidden_until: None } => Ok(()),
    }
}

#[cfg(test)]
mod tests;
