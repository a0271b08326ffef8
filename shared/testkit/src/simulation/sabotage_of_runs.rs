//! The ports of whoever carries orders out, as a broken build would use them.

use waybill_domain::audit::Entry;
use waybill_domain::authority::Book;
use waybill_domain::delivery::Record;
use waybill_domain::identity::{DeliveryId, TenantId};
use waybill_domain::order::{Order, OrderBody, OrderChange, OrderId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::office::{Entered, Office};
use waybill_service::ports::{
    Catalogue, Cursor, DeadLetterFilter, DeadLetterGroup, Filter, Page, PortResult, Receipt, Received,
};
use waybill_service::sweep::DeadLetterBox;

use crate::faults::Staged;
use crate::memory::{MemoryOffice, MemoryQueue};

use super::sabotage::{Sabotage, Sabotaged, StagedLedger};

impl Catalogue for Sabotaged<StagedLedger> {
    async fn list(&self, filter: &Filter, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Record>> {
        self.inner.staged.list(filter, limit, from).await
    }

    async fn find(&self, id: &DeliveryId) -> PortResult<Vec<Record>> {
        self.inner.staged.find(id).await
    }

    async fn dead_letter_summary(&self, tenant: Option<&TenantId>) -> PortResult<Vec<DeadLetterGroup>> {
        self.inner.staged.dead_letter_summary(tenant).await
    }

    async fn oldest_dead_letter(&self) -> PortResult<Option<TimeMs>> {
        self.inner.staged.oldest_dead_letter().await
    }

    async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Record>> {
        self.inner.staged.dead_letters(filter, limit, from).await
    }
}

impl DeadLetterBox for Sabotaged<Staged<MemoryQueue>> {
    async fn take(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        self.inner.take(most, visibility).await
    }

    async fn remove(&self, receipt: &Receipt) -> PortResult<()> {
        self.inner.remove(receipt).await
    }

    async fn show(&self, receipt: &Receipt) -> PortResult<()> {
        self.inner.show(receipt).await
    }
}

impl Office for Sabotaged<Staged<MemoryOffice>> {
    async fn head(&self, book: &Book) -> PortResult<Option<Entry>> {
        self.inner.head(book).await
    }

    async fn enter(&self, entry: &Entry, change: Option<&OrderChange>) -> PortResult<Entered> {
        self.inner.enter(entry, change).await
    }

    async fn progress(&self, change: &OrderChange) -> PortResult<bool> {
        let takes_in_hand = matches!(&change.after.body, OrderBody::Redrive(run) if !run.in_hand.is_empty());
        if takes_in_hand && self.breaks(Sabotage::ForgetsWhatIsInHand) {
            return Ok(true);
        }
        self.inner.progress(change).await
    }

    async fn order(&self, book: &Book, id: &OrderId) -> PortResult<Option<Order>> {
        self.inner.order(book, id).await
    }

    async fn open_orders(&self, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Order>> {
        self.inner.open_orders(limit, from).await
    }

    async fn orders(
        &self,
        book: Option<&Book>,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Order>> {
        self.inner.orders(book, limit, from).await
    }

    async fn entries(&self, book: &Book, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Entry>> {
        self.inner.entries(book, limit, from).await
    }

    async fn books(&self) -> PortResult<Vec<Book>> {
        self.inner.books().await
    }
}
