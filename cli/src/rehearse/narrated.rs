//! A ledger that tells every transition as it is made: what happened, and the record in short.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use waybill_domain::attempt::{Attempt, Next};
use waybill_domain::budget::Usage;
use waybill_domain::delivery::{Change, Record, State};
use waybill_domain::ending::Disposition;
use waybill_domain::identity::{DeliveryId, DeliveryKey, DestinationName, TenantId};
use waybill_domain::outcome::Applied as Effect;
use waybill_domain::time::TimeMs;
use waybill_service::ports::{
    Applied, Budgets, Catalogue, Clock, Created, Cursor, DeadLetterFilter, DeadLetterGroup, Filter,
    KeptUsage, Ledger, Page, PortResult, UsageSet,
};

use super::clock::StoryClock;
use super::voice::Voice;
use crate::show::outlook::why_expired;

/// Tells what lands in the ledger behind it.
pub(crate) struct Narrated<L> {
    ledger: L,
    clock: StoryClock,
    voice: Voice,
    known: Mutex<HashMap<DeliveryKey, Told>>,
}

struct Told {
    record: Record,
    next: Option<Next>,
}

impl<L> Narrated<L> {
    pub(crate) fn new(ledger: L, clock: StoryClock, voice: Voice) -> Self {
        Self { ledger, clock, voice, known: Mutex::default() }
    }

    fn tell(&self, after: &Record) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let told = known.remove(&after.delivery.key());
        let event = what_happened(told.as_ref(), after);
        let (attempts, limit) = (after.attempts_made, after.attempt_limit);
        let state = after.state.as_str();
        self.voice
            .tell(format_args!("  {}  {state:<13} {attempts}/{limit}  {event}", of_day(self.clock.now())));
        known.insert(after.delivery.key(), Told { record: after.clone(), next: None });
    }
}

/// The time of day, to the millisecond.
pub(crate) fn of_day(at: TimeMs) -> String {
    at.to_string().get(11..23).unwrap_or_default().to_owned()
}

fn what_happened(told: Option<&Told>, after: &Record) -> String {
    let Some(Told { record: before, next }) = told else {
        let delivery = &after.delivery;
        return format!("{} to {}: recorded as {}", delivery.event_id, delivery.destination, delivery.id);
    };
    if let Some(claim) = after.claim.as_ref().filter(|_| before.claim.is_none()) {
        return format!("attempt {} claimed until {}", claim.attempt, of_day(claim.lease_until));
    }
    match (after.disposition, &after.last_failure) {
        (Some(Disposition::Delivered { attempt, late, by_look_up }), _) if after.state != before.state => {
            let late = if late { ", late" } else { "" };
            match by_look_up {
                true => {
                    format!("attempt {attempt}: the status look-up says it was applied{late}; nothing sent")
                }
                false => format!("attempt {attempt} acknowledged by the recipient{late}"),
            }
        }
        (_, Some(failure)) if after.attempts_made > before.attempts_made => {
            let status = failure.status.map(|status| format!(" ({status})")).unwrap_or_default();
            let effect = match failure.failure.applied {
                Effect::No => "not applied",
                Effect::Unknown => "perhaps applied",
            };
            let class = failure.failure.class;
            format!(
                "attempt {} failed: {class}{status}, {effect}{}",
                failure.attempt,
                what_follows(next, after)
            )
        }
        _ if after.dlq_told && !before.dlq_told => "the dead-letter queue was told".to_owned(),
        _ if after.redrives > before.redrives => {
            format!("released, due {}", of_day(after.due_at))
        }
        _ if after.state != before.state => format!("nothing more is sent: {}", ending(after)),
        _ if after.hold.is_some() && before.hold.is_none() => {
            let reason = after.hold.as_ref().map_or("", |held| held.reason.as_str());
            format!("held: {reason}")
        }
        _ if before.hold.is_some() && after.hold.is_none() => "lifted".to_owned(),
        _ if after.looks > before.looks => "the reconciler looked at it".to_owned(),
        _ if before.claim.is_some() => "not sent; the attempt does not count".to_owned(),
        (Some(Disposition::Closed(_)), _) if before.disposition != after.disposition => {
            "closed by a person: nothing more is done about it".to_owned()
        }
        _ => "changed".to_owned(),
    }
}

fn what_follows(next: &Option<Next>, after: &Record) -> String {
    match next {
        _ if !after.state.is_open() => format!("; {}", ending(after)),
        Some(Next::Retry { delay, .. }) => format!("; next in {delay}"),
        _ => format!("; due {}", of_day(after.due_at)),
    }
}

fn ending(record: &Record) -> String {
    match (record.state, record.dead_letter_reason()) {
        (State::Expired, _) => why_expired(record, ""),
        (_, Some(reason)) => reason.to_string(),
        (state, None) => state.to_string(),
    }
}

impl<L: Ledger> Ledger for Narrated<L> {
    async fn create(&self, record: &Record, payload: &Bytes) -> PortResult<Created> {
        let created = self.ledger.create(record, payload).await?;
        if created == Created::New {
            self.tell(record);
        }
        Ok(created)
    }

    async fn apply(&self, change: &Change) -> PortResult<Applied> {
        let applied = self.ledger.apply(change).await?;
        if applied == Applied::Landed {
            self.tell(change.after());
        }
        Ok(applied)
    }

    async fn add_attempt(&self, key: &DeliveryKey, attempt: &Attempt) -> PortResult<()> {
        self.ledger.add_attempt(key, attempt).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = known.get_mut(key) {
            told.next = Some(attempt.next.clone());
        }
        Ok(())
    }

    async fn load(&self, key: &DeliveryKey) -> PortResult<Option<Record>> {
        self.ledger.load(key).await
    }

    async fn payload(&self, key: &DeliveryKey) -> PortResult<Option<Bytes>> {
        self.ledger.payload(key).await
    }

    async fn attempts(&self, key: &DeliveryKey) -> PortResult<Vec<Attempt>> {
        self.ledger.attempts(key).await
    }

    async fn due_for_look(
        &self,
        now: TimeMs,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.ledger.due_for_look(now, limit, from).await
    }

    async fn held_destinations(&self) -> PortResult<Vec<DestinationName>> {
        self.ledger.held_destinations().await
    }

    async fn held(
        &self,
        destination: &DestinationName,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<DeliveryKey>> {
        self.ledger.held(destination, limit, from).await
    }
}

impl<L: Budgets> Budgets for Narrated<L> {
    async fn usage(&self, destination: &DestinationName) -> PortResult<KeptUsage> {
        self.ledger.usage(destination).await
    }

    async fn set_usage(
        &self,
        destination: &DestinationName,
        expected: u64,
        usage: &Usage,
    ) -> PortResult<UsageSet> {
        self.ledger.set_usage(destination, expected, usage).await
    }
}

impl<L: Catalogue> Catalogue for Narrated<L> {
    async fn list(&self, filter: &Filter, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Record>> {
        self.ledger.list(filter, limit, from).await
    }

    async fn find(&self, id: &DeliveryId) -> PortResult<Vec<Record>> {
        self.ledger.find(id).await
    }

    async fn dead_letter_summary(&self, tenant: Option<&TenantId>) -> PortResult<Vec<DeadLetterGroup>> {
        self.ledger.dead_letter_summary(tenant).await
    }

    async fn oldest_dead_letter(&self) -> PortResult<Option<TimeMs>> {
        self.ledger.oldest_dead_letter().await
    }

    async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        limit: usize,
        from: Option<&Cursor>,
    ) -> PortResult<Page<Record>> {
        self.ledger.dead_letters(filter, limit, from).await
    }
}
