//! The next version of Waybill, as far as two versions can misunderstand each other: it writes envelopes of the
//! next version number, with one more field, and reads both. It is this version behind a translator.

use waybill_domain::envelope::VERSION;
use waybill_domain::identity::MessageId;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Burial, Inbox, Outgoing, PortResult, Queue, Receipt, Received};
use waybill_service::sweep::DeadLetterBox;

/// How a body begins that this version wrote.
fn ours() -> String {
    format!("{{\"waybill\":{VERSION},")
}

/// How a body begins that the next version wrote.
fn its() -> String {
    format!("{{\"waybill\":{},\"since_next\":true,", VERSION + 1)
}

/// A body of this version as the next one writes it. What is no envelope of ours stays as it is.
pub fn written(body: &str) -> String {
    exchanged(body, &ours(), &its())
}

/// A body of the next version as this one would have written it. Anything else stays as it is.
pub fn read(body: &str) -> String {
    exchanged(body, &its(), &ours())
}

/// Whether the next version wrote this body.
pub fn is_its(body: &str) -> bool {
    body.starts_with(&its())
}

fn exchanged(body: &str, from: &str, to: &str) -> String {
    body.strip_prefix(from).map_or_else(|| body.to_owned(), |rest| format!("{to}{rest}"))
}

/// A queue as one version uses it: this one, or the next.
#[derive(Debug, Clone)]
pub struct Versioned<Q> {
    queue: Q,
    is_next: bool,
}

impl<Q> Versioned<Q> {
    /// The queue, used by the next version where `is_next`.
    pub fn new(queue: Q, is_next: bool) -> Self {
        Self { queue, is_next }
    }

    fn out(&self, body: String) -> String {
        if self.is_next { written(&body) } else { body }
    }

    fn all_in(&self, mut messages: Vec<Received>) -> Vec<Received> {
        if self.is_next {
            messages.iter_mut().for_each(|message| message.body = read(&message.body));
        }
        messages
    }
}

impl<Q: Queue> Queue for Versioned<Q> {
    fn window(&self) -> DurationMs {
        self.queue.window()
    }

    async fn send(&self, message: Outgoing) -> PortResult<MessageId> {
        self.queue.send(Outgoing { body: self.out(message.body), ..message }).await
    }

    async fn send_all(&self, messages: Vec<Outgoing>) -> Vec<PortResult<MessageId>> {
        let written =
            messages.into_iter().map(|message| Outgoing { body: self.out(message.body), ..message });
        self.queue.send_all(written.collect()).await
    }

    async fn bury(&self, burial: Burial) -> PortResult<MessageId> {
        self.queue.bury(Burial { body: self.out(burial.body), ..burial }).await
    }
}

impl<Q: Inbox> Inbox for Versioned<Q> {
    async fn receive(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        Ok(self.all_in(self.queue.receive(most, visibility).await?))
    }

    async fn acknowledge(&self, receipt: &Receipt) -> PortResult<()> {
        self.queue.acknowledge(receipt).await
    }

    async fn hide_until(&self, receipt: &Receipt, until: TimeMs) -> PortResult<()> {
        self.queue.hide_until(receipt, until).await
    }

    async fn next_visible_at(&self) -> PortResult<Option<TimeMs>> {
        self.queue.next_visible_at().await
    }
}

impl<Q: DeadLetterBox> DeadLetterBox for Versioned<Q> {
    async fn take(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        Ok(self.all_in(self.queue.take(most, visibility).await?))
    }

    async fn remove(&self, receipt: &Receipt) -> PortResult<()> {
        self.queue.remove(receipt).await
    }

    async fn show(&self, receipt: &Receipt) -> PortResult<()> {
        self.queue.show(receipt).await
    }
}
