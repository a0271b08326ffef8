//! A rehearsal on AWS: the DynamoDB ledger and the SQS queue, on a table and queues of its own.
//!
//! Everything is asked of AWS but one thing. SQS keeps its delays and hides its messages by its own
//! clock, which nobody can move forward; a story with a wait of minutes would take these minutes. So
//! a message is sent to SQS without its delay, and it is the story's clock that says when it may be
//! seen: the delay (whole seconds, rounded up, within the queue's window) and how long a received
//! message is hidden are kept here, in [`StoryQueue`]. Envelope, record and evidence keep the true
//! times. That SQS keeps its delays is for its exam and for the deployed functions to show
//! (`make test-aws`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waybill_aws::clients::{Clients, Limits};
use waybill_aws::polling::End;
pub(crate) use waybill_aws::trial::Trial;
use waybill_aws::{AwsOffice, DynamoLedger, SqsQueue};
use waybill_domain::identity::MessageId;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{
    Burial, Clock as _, Dice as _, Inbox, Outgoing, PortError, PortResult, Queue, Receipt, Received,
};
use waybill_system::SystemDice;

use super::clock::StoryClock;
use crate::exit::Failure;

/// How long SQS hides what was fetched: longer than any rehearsal lasts.
const FETCHED_FOR: DurationMs = DurationMs::from_secs(3600);
/// How many polls may go by until everything that was sent is there.
const MOST_POLLS: u32 = 30;

/// Makes a table and queues for one rehearsal, under a name that nobody else has.
pub(super) async fn make() -> Result<Trial, Failure> {
    let clients = Clients::load(Limits::default()).await;
    let own: String =
        SystemDice.token().as_str().chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    Ok(Trial::make(clients, &format!("waybill-rehearsal-{own}")).await?)
}

/// Ledger and queue of a rehearsal on AWS.
#[derive(Debug, Clone)]
pub(crate) struct AwsStore {
    pub(super) ledger: Arc<DynamoLedger>,
    pub(super) queue: Arc<StoryQueue>,
    pub(super) office: AwsOffice,
}

impl AwsStore {
    /// On what was made, in the story's time.
    pub(super) fn of(trial: &Trial, clock: &StoryClock) -> Self {
        let queue = StoryQueue { sqs: trial.queue(), clock: clock.clone(), seen: Mutex::default() };
        Self { ledger: Arc::new(trial.ledger()), queue: Arc::new(queue), office: trial.office() }
    }
}

/// An SQS queue whose delays and visibility timeouts are the story's.
#[derive(Debug)]
pub(crate) struct StoryQueue {
    sqs: SqsQueue,
    clock: StoryClock,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Every message that was sent and not deleted: when it may be seen.
    visible_at: HashMap<MessageId, TimeMs>,
    /// Those of them that SQS handed over.
    fetched: HashMap<MessageId, Received>,
    /// Every dead letter, with its body once SQS handed it over.
    buried: HashMap<MessageId, Option<String>>,
}

impl Seen {
    fn named(&self, receipt: &Receipt) -> Option<MessageId> {
        let mut fetched = self.fetched.values();
        fetched.find(|message| message.receipt == *receipt).map(|message| message.message_id.clone())
    }
}

impl StoryQueue {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls until everything that was sent to one of the queues was handed over.
    async fn fetch(&self, end: End) -> PortResult<()> {
        for _ in 0..MOST_POLLS {
            if self.missing(end) == 0 {
                return Ok(());
            }
            for message in self.sqs.poll(end, FETCHED_FOR).await? {
                let mut seen = self.seen();
                match end {
                    End::Work => drop(seen.fetched.insert(message.message_id.clone(), message)),
                    End::Dead => drop(seen.buried.insert(message.message_id, Some(message.body))),
                }
            }
        }
        let cause = format!("SQS keeps back {} of the messages that it took", self.missing(end));
        Err(PortError::AskLater { port: "queue", cause: cause.into() })
    }

    fn missing(&self, end: End) -> usize {
        let seen = self.seen();
        match end {
            End::Work => seen.visible_at.keys().filter(|id| !seen.fetched.contains_key(id)).count(),
            End::Dead => seen.buried.values().filter(|body| body.is_none()).count(),
        }
    }

    /// The bodies of what was buried, up to so many.
    pub(super) async fn dead_letter_bodies(&self, most: usize) -> PortResult<Vec<String>> {
        self.fetch(End::Dead).await?;
        Ok(self.seen().buried.values().flatten().take(most).cloned().collect())
    }
}

impl Queue for StoryQueue {
    fn window(&self) -> DurationMs {
        self.sqs.window()
    }

    async fn send(&self, message: Outgoing) -> PortResult<MessageId> {
        let delay = DurationMs::from_secs(message.delay.whole_secs_up());
        if delay > self.window() {
            // Refused by SQS's own adapter, in its own words.
            return self.sqs.send(message).await;
        }
        let id = self.sqs.send(Outgoing { delay: DurationMs::ZERO, ..message }).await?;
        self.seen().visible_at.insert(id.clone(), self.clock.now().plus(delay));
        Ok(id)
    }

    async fn bury(&self, burial: Burial) -> PortResult<MessageId> {
        let id = self.sqs.bury(burial).await?;
        self.seen().buried.insert(id.clone(), None);
        Ok(id)
    }
}

impl Inbox for StoryQueue {
    async fn receive(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        self.fetch(End::Work).await?;
        let now = self.clock.now();
        let mut seen = self.seen();
        let mut visible: Vec<(TimeMs, MessageId)> =
            seen.visible_at.iter().filter(|(_, at)| **at <= now).map(|(id, at)| (*at, id.clone())).collect();
        visible.sort();
        visible.truncate(most);
        for (_, id) in &visible {
            seen.visible_at.insert(id.clone(), now.plus(visibility));
        }
        Ok(visible.iter().filter_map(|(_, id)| seen.fetched.get(id).cloned()).collect())
    }

    async fn acknowledge(&self, receipt: &Receipt) -> PortResult<()> {
        let Some(id) = self.seen().named(receipt) else { return Ok(()) };
        self.sqs.delete(End::Work, receipt).await?;
        let mut seen = self.seen();
        seen.visible_at.remove(&id);
        seen.fetched.remove(&id);
        Ok(())
    }

    async fn hide_until(&self, receipt: &Receipt, until: TimeMs) -> PortResult<()> {
        let mut seen = self.seen();
        if let Some(id) = seen.named(receipt) {
            seen.visible_at.insert(id, until);
        }
        Ok(())
    }

    async fn next_visible_at(&self) -> PortResult<Option<TimeMs>> {
        Ok(self.seen().visible_at.values().min().copied())
    }
}
