//! A port with a fault point before and after every call.

use std::future::Future;

use bytes::Bytes;
use waybill_domain::address::RecipientUrl;
use waybill_domain::attempt::{Attempt, SendWindow, Sending};
use waybill_domain::budget::Usage;
use waybill_domain::delivery::{Change, Record};
use waybill_domain::identity::{DeliveryKey, DestinationName, MessageId};
use waybill_domain::look_up::Finding;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{
    Applied, Budgets, Burial, Created, Cursor, Inbox, KeptUsage, Ledger, Outgoing, Page, PortError,
    PortResult, Queue, Receipt, Received, Recipient, Request, UsageSet,
};

use super::{Call, Order, Stage};

/// `P` on a stage.
#[derive(Debug, Clone)]
pub struct Staged<P> {
    pub(super) inner: P,
    stage: Stage,
}

impl<P> Staged<P> {
    /// Puts a port on a stage.
    pub fn new(inner: P, stage: &Stage) -> Self {
        Self { inner, stage: stage.clone() }
    }

    pub(super) async fn call<T, F>(
        &self,
        port: &'static str,
        call: Call,
        make: impl Fn() -> F + Send + Sync,
    ) -> PortResult<T>
    where
        F: Future<Output = PortResult<T>> + Send,
    {
        let order = self.stage.before(call).await;
        if order == Order::FailBefore {
            return Err(ask_later(port));
        }
        let mut answer = make().await;
        if order == Order::Twice {
            answer = make().await;
        }
        self.stage.after(call).await;
        match order {
            Order::FailAfter => Err(ask_later(port)),
            _ => answer,
        }
    }
}

fn ask_later(port: &'static str) -> PortError {
    PortError::AskLater { port, cause: "the test says so".into() }
}

pub(super) const LEDGER: &str = "ledger";
pub(super) const QUEUE: &str = "queue";

impl<P: Ledger> Ledger for Staged<P> {
    async fn create(&self, record: &Record, payload: &Bytes) -> PortResult<Created> {
        self.call(LEDGER, Call::Create, || self.inner.create(record, payload)).await
    }

    async fn load(&self, key: &DeliveryKey) -> PortResult<Option<Record>> {
        self.call(LEDGER, Call::Load, || self.inner.load(key)).await
    }

    async fn payload(&self, key: &DeliveryKey) -> PortResult<Option<Bytes>> {
        self.call(LEDGER, Call::Payload, || self.inner.payload(key)).await
    }

    async fn apply(&self, change: &Change) -> PortResult<Applied> {
        self.call(LEDGER, Call::Apply, || self.inner.apply(change)).await
    }

    async fn add_attempt(&self, key: &DeliveryKey, attempt: &Attempt) -> PortResult<()> {
        self.call(LEDGER, Call::AddAttempt, || self.inner.add_attempt(key, attempt)).await
    }

    async fn attempts(&self, key: &DeliveryKey) -> PortResult<Vec<Attempt>> {
        self.call(LEDGER, Call::Attempts, || self.inner.attempts(key)).await
    }

    async fn due_for_look(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.call(LEDGER, Call::DueForLook, || self.inner.due_for_look(now, limit, from)).await
    }

    async fn held_destinations(&self) -> PortResult<Vec<DestinationName>> {
        self.call(LEDGER, Call::HeldDestinations, || self.inner.held_destinations()).await
    }

    async fn held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.call(LEDGER, Call::Held, || self.inner.held(destination, limit, from)).await
    }
}

impl<P: Budgets> Budgets for Staged<P> {
    async fn usage(&self, destination: &DestinationName) -> PortResult<KeptUsage> {
        self.call(LEDGER, Call::Usage, || self.inner.usage(destination)).await
    }

    async fn set_usage(
        &self,
        destination: &DestinationName,
        expected: u64,
        usage: &Usage,
    ) -> PortResult<UsageSet> {
        self.call(LEDGER, Call::SetUsage, || self.inner.set_usage(destination, expected, usage)).await
    }
}

impl<P: Queue> Queue for Staged<P> {
    fn window(&self) -> DurationMs {
        self.inner.window()
    }

    async fn send(&self, message: Outgoing) -> PortResult<MessageId> {
        self.call(QUEUE, Call::Send, || self.inner.send(message.clone())).await
    }

    async fn bury(&self, burial: Burial) -> PortResult<MessageId> {
        self.call(QUEUE, Call::Bury, || self.inner.bury(burial.clone())).await
    }
}

impl<P: Inbox> Inbox for Staged<P> {
    async fn receive(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        self.call(QUEUE, Call::Receive, || self.inner.receive(most, visibility)).await
    }

    async fn acknowledge(&self, receipt: &Receipt) -> PortResult<()> {
        self.call(QUEUE, Call::Acknowledge, || self.inner.acknowledge(receipt)).await
    }

    async fn hide_until(&self, receipt: &Receipt, until: TimeMs) -> PortResult<()> {
        self.call(QUEUE, Call::HideUntil, || self.inner.hide_until(receipt, until)).await
    }

    async fn next_visible_at(&self) -> PortResult<Option<TimeMs>> {
        self.call(QUEUE, Call::NextVisibleAt, || self.inner.next_visible_at()).await
    }
}

impl<P: Recipient> Recipient for Staged<P> {
    /// A recipient has no "ask later": its failures are in the script.
    async fn send(&self, request: Request, window: SendWindow) -> Sending {
        self.stage.before(Call::Request).await;
        let sending = self.inner.send(request, window).await;
        self.stage.after(Call::Request).await;
        sending
    }

    async fn look_up(&self, request: Request, url: RecipientUrl, window: SendWindow) -> Finding {
        self.stage.before(Call::LookUp).await;
        let finding = self.inner.look_up(request, url, window).await;
        self.stage.after(Call::LookUp).await;
        finding
    }
}
