//! The ports of operators, and of whoever carries their orders out, with a fault point before and after
//! every call.

use waybill_domain::audit::Entry;
use waybill_domain::authority::Book;
use waybill_domain::delivery::Record;
use waybill_domain::identity::{ConfigRevision, DeliveryId, TenantId};
use waybill_domain::order::{Order, OrderChange, OrderId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::office::{Entered, Office, Revision, Revisions};
use waybill_service::ports::{
    Catalogue, Cursor, DeadLetterFilter, DeadLetterGroup, Filter, Page, PortResult, Receipt, Received,
};
use waybill_service::sweep::DeadLetterBox;

use super::Call;
use super::staged::{LEDGER, QUEUE, Staged};

impl<P: Catalogue> Catalogue for Staged<P> {
    async fn list(&self, filter: &Filter, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Record>> {
        self.call(LEDGER, Call::List, || self.inner.list(filter, limit, from)).await
    }

    async fn find(&self, id: &DeliveryId) -> PortResult<Vec<Record>> {
        self.call(LEDGER, Call::Find, || self.inner.find(id)).await
    }

    async fn dead_letter_summary(&self, tenant: Option<&TenantId>) -> PortResult<Vec<DeadLetterGroup>> {
        self.call(LEDGER, Call::DeadLetterSummary, || self.inner.dead_letter_summary(tenant)).await
    }

    async fn oldest_dead_letter(&self) -> PortResult<Option<TimeMs>> {
        self.call(LEDGER, Call::DeadLetters, || self.inner.oldest_dead_letter()).await
    }

    async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Record>> {
        self.call(LEDGER, Call::DeadLetters, || self.inner.dead_letters(filter, limit, from)).await
    }
}

impl<P: DeadLetterBox> DeadLetterBox for Staged<P> {
    async fn take(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        self.call(QUEUE, Call::TakeDeadLetters, || self.inner.take(most, visibility)).await
    }

    async fn remove(&self, receipt: &Receipt) -> PortResult<()> {
        self.call(QUEUE, Call::RemoveDeadLetter, || self.inner.remove(receipt)).await
    }

    async fn show(&self, receipt: &Receipt) -> PortResult<()> {
        self.call(QUEUE, Call::ShowDeadLetter, || self.inner.show(receipt)).await
    }
}

impl<P: Office> Office for Staged<P> {
    async fn head(&self, book: &Book) -> PortResult<Option<Entry>> {
        self.call(LEDGER, Call::Head, || self.inner.head(book)).await
    }

    async fn enter(&self, entry: &Entry, change: Option<&OrderChange>) -> PortResult<Entered> {
        self.call(LEDGER, Call::Enter, || self.inner.enter(entry, change)).await
    }

    async fn progress(&self, change: &OrderChange) -> PortResult<bool> {
        self.call(LEDGER, Call::Progress, || self.inner.progress(change)).await
    }

    async fn order(&self, book: &Book, id: &OrderId) -> PortResult<Option<Order>> {
        self.call(LEDGER, Call::ReadOrder, || self.inner.order(book, id)).await
    }

    async fn open_orders(&self, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Order>> {
        self.call(LEDGER, Call::OpenOrders, || self.inner.open_orders(limit, from)).await
    }

    async fn orders(
        &self,
        book: Option<&Book>,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Order>> {
        self.call(LEDGER, Call::Orders, || self.inner.orders(book, limit, from)).await
    }

    async fn entries(&self, book: &Book, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Entry>> {
        self.call(LEDGER, Call::Entries, || self.inner.entries(book, limit, from)).await
    }

    async fn books(&self) -> PortResult<Vec<Book>> {
        self.call(LEDGER, Call::Books, || self.inner.books()).await
    }
}

impl<P: Revisions> Revisions for Staged<P> {
    async fn in_force(&self) -> PortResult<Option<Revision>> {
        self.call(LEDGER, Call::InForce, || self.inner.in_force()).await
    }

    async fn document(&self, revision: &ConfigRevision) -> PortResult<Option<String>> {
        self.call(LEDGER, Call::Document, || self.inner.document(revision)).await
    }

    async fn install(&self, revision: &Revision, document: &str, entry: &Entry) -> PortResult<Entered> {
        self.call(LEDGER, Call::Install, || self.inner.install(revision, document, entry)).await
    }

    async fn history(&self, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Revision>> {
        self.call(LEDGER, Call::History, || self.inner.history(limit, from)).await
    }
}
