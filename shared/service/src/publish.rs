//! Publish: payload stored → record created if absent → wake-up sent → answer.
//!
//! The same event again: the same bytes get the same answer, and the wake-up again while no
//! attempt was made; other bytes are a conflict, and nothing is changed. An event without a
//! destination goes to every destination of its tenant that subscribes to its type.

use std::sync::Arc;

use thiserror::Error;
use waybill_domain::delivery::{Delivery, PayloadFacts, Record, State};
use waybill_domain::destination::Destination;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::{DeliveryId, DestinationName};
use waybill_domain::time::TimeMs;

use crate::config::Config;
use crate::digest::sha256_hex;
use crate::event::Event;
use crate::payload_schema::PayloadFault;
use crate::ports::{Clock, Created, Ledger, PortError, Queue};
use crate::steps::hand_over;
use crate::{instruments, notes};

/// The ports that publishing needs.
#[derive(Debug, Clone, Copy)]
pub struct Publisher<'a, L, Q, C> {
    /// The truth.
    pub ledger: &'a L,
    /// The wake-ups.
    pub queue: &'a Q,
    /// The time.
    pub clock: &'a C,
}

/// One delivery of an accepted event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its waybill number.
    pub delivery_id: DeliveryId,
    /// To whom.
    pub destination: DestinationName,
    /// Where it stands: `pending`, unless the event was published before.
    pub state: State,
    /// Whether it was there already.
    pub repeated: bool,
}

/// Why an event was not accepted, by what its producer does next.
#[derive(Debug, Error)]
pub enum PublishError {
    /// Mend the event.
    #[error("{0}")]
    Invalid(InvalidField),
    /// The event was published with other bytes: use another event ID, or send the same bytes.
    #[error(
        "event_id: was published to {destination} with other bytes (stored {stored_sha256}, given \
         {given_sha256}); nothing was changed"
    )]
    Conflict {
        /// To whom.
        destination: DestinationName,
        /// SHA-256 of the bytes that are stored.
        stored_sha256: String,
        /// SHA-256 of the bytes that were given.
        given_sha256: String,
    },
    /// The destination's schema refuses the payload: mend the payload. Nothing was recorded.
    #[error("payload: {fault}; it cannot go to {destination}")]
    PayloadInvalid {
        /// To whom.
        destination: DestinationName,
        /// Where in the payload, and which rule.
        fault: PayloadFault,
    },
    /// Nobody knows how far it came: publish the same event again.
    #[error("not accepted, publish the same event again: {0}")]
    Port(#[source] PortError),
}

impl From<PortError> for PublishError {
    fn from(error: PortError) -> Self {
        PublishError::Port(error)
    }
}

impl<L: Ledger, Q: Queue, C: Clock> Publisher<'_, L, Q, C> {
    /// Accepts an event, durably, or says why not.
    pub async fn publish(&self, config: &Config, event: Event) -> Result<Vec<Published>, PublishError> {
        self.accept(config, event, Attended::ByProducer).await
    }

    /// The same where nobody is there to be answered: what a schema refuses is recorded as the dead
    /// letter `payload_invalid`, without an attempt, for a person to find.
    pub async fn publish_unattended(
        &self,
        config: &Config,
        event: Event,
    ) -> Result<Vec<Published>, PublishError> {
        self.accept(config, event, Attended::ByNobody).await
    }

    async fn accept(
        &self,
        config: &Config,
        event: Event,
        attended: Attended,
    ) -> Result<Vec<Published>, PublishError> {
        let now = self.clock.now();
        let destinations = destinations_of(config, &event)?;
        check_deadline(config, &event)?;
        let look = config.look_rules(self.queue.window());
        let payload = facts_of(&event);
        let mut refused = None;
        let mut records = Vec::with_capacity(destinations.len());
        for to in destinations {
            let fault = config.schemas.get(&to.name).and_then(|schema| schema.check(&event.payload).err());
            let new = match (&fault, attended) {
                (Some(_), Attended::ByNobody) => Record::refused,
                _ => Record::new,
            };
            let delivery = delivery_of(&event, &payload, to, now);
            let policy = config.destination_of(&delivery).map_or(to.policy, |to| to.policy);
            records.push(new(delivery, &policy, config.revision.clone(), &look));
            if let Some(fault) = fault {
                notes::payload_refused(&event, &to.name, &fault);
                refused = refused.or(Some((to.name.clone(), fault)));
            }
        }
        let refused = refused.filter(|_| attended == Attended::ByProducer);

        // Of several deliveries none may be recorded if one of them conflicts, and what was accepted
        // before its deadline, or by an earlier schema, is answered as accepted later too: all need a
        // look beforehand.
        let is_late = event.deadline.is_some_and(|deadline| deadline <= now);
        if is_late || refused.is_some() || records.len() > 1 {
            let mut is_known = true;
            for record in &records {
                match self.ledger.load(&record.delivery.key()).await? {
                    Some(stored) => compare(record, &stored)?,
                    None => is_known = false,
                }
            }
            if let Some((destination, fault)) = refused.filter(|_| !is_known) {
                return Err(PublishError::PayloadInvalid { destination, fault });
            }
            if is_late && !is_known {
                return Err(PublishError::Invalid(InvalidField::new(
                    "deadline",
                    "is not in the future",
                    format!("after {now}"),
                )));
            }
        }

        let mut published = Vec::with_capacity(records.len());
        for record in records {
            published.push(self.record(config, record, &event).await?);
        }
        Ok(published)
    }

    async fn record(
        &self,
        config: &Config,
        record: Record,
        event: &Event,
    ) -> Result<Published, PublishError> {
        let (record, repeated) = match self.ledger.create(&record, &event.payload).await? {
            Created::New => {
                // What its schema refuses ends as it begins.
                instruments::ended(config, &record);
                (record, false)
            }
            Created::Exists(stored) => {
                compare(&record, &stored)?;
                (*stored, true)
            }
        };
        // A repeat sends the wake-up again: the first publisher may have died before it did. What ended
        // as it began owes its letter to the DLQ, and so does its repeat until that is told.
        let is_untold =
            record.dead_letter_reason() == Some(DeadLetterReason::PayloadInvalid) && !record.dlq_told;
        if record.state == State::Pending || is_untold {
            hand_over(self.ledger, self.queue, self.clock, &record).await?;
        }
        let delivery = &record.delivery;
        tracing::info!(
            delivery_id = %delivery.id, tenant = %delivery.tenant, destination = %delivery.destination,
            scope = delivery.scope.as_ref().map(tracing::field::display), trace_id = delivery.trace_id(),
            repeated, state = %record.state,
            "published"
        );
        Ok(Published {
            delivery_id: delivery.id.clone(),
            destination: delivery.destination.clone(),
            state: record.state,
            repeated,
        })
    }
}

/// Who hears what becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attended {
    ByProducer,
    ByNobody,
}

fn destinations_of<'c>(config: &'c Config, event: &Event) -> Result<Vec<&'c Arc<Destination>>, PublishError> {
    let invalid = |field: &str, fault: String, rule: &str| {
        Err(PublishError::Invalid(InvalidField::new(field, fault, rule)))
    };
    if let Some(name) = &event.destination {
        // One answer for "not configured" and "somebody else's": a name is nothing to probe for.
        return match config.destination(name, &event.tenant) {
            Some(destination) => Ok(vec![destination]),
            None => invalid(
                "destination",
                format!("{:?} is no destination of tenant {}", name.as_str(), event.tenant),
                "a destination that is configured for the tenant",
            ),
        };
    }
    let subscribers = config.subscribers(&event.tenant, &event.event_type);
    if subscribers.is_empty() {
        return invalid(
            "type",
            format!("nobody subscribes to {:?} of tenant {}", event.event_type.as_str(), event.tenant),
            "a type that a destination of the tenant lists in event_types, or name a destination",
        );
    }
    Ok(subscribers)
}

fn check_deadline(config: &Config, event: &Event) -> Result<(), PublishError> {
    let invalid = |field: &str, fault: &str, rule: String| {
        Err(PublishError::Invalid(InvalidField::new(field, fault, rule)))
    };
    match (event.deadline, event.not_before) {
        (None, _) if config.rules_for(&event.event_type).require_deadline => {
            let rule = format!("{} requires one: no deadline, no send", event.event_type);
            invalid("deadline", "is missing", rule)
        }
        (Some(deadline), Some(not_before)) if not_before >= deadline => {
            invalid("not_before", "is not before the deadline", format!("before {deadline}"))
        }
        _ => Ok(()),
    }
}

fn facts_of(event: &Event) -> PayloadFacts {
    PayloadFacts {
        sha256: sha256_hex(&event.payload),
        length: event.payload.len() as u64,
        content_type: event.content_type.clone(),
        version: event.payload_version,
    }
}

fn delivery_of(event: &Event, payload: &PayloadFacts, destination: &Destination, now: TimeMs) -> Delivery {
    Delivery {
        id: DeliveryId::derive(&event.tenant, &event.event_id, &destination.name),
        tenant: event.tenant.clone(),
        event_id: event.event_id.clone(),
        event_type: event.event_type.clone(),
        destination: destination.name.clone(),
        scope: event.scope.clone(),
        payload: payload.clone(),
        first_queued_at: now,
        not_before: event.not_before,
        deadline: event.deadline,
        trace: event.trace.clone(),
        policy: event.policy.clone(),
        newer: Default::default(),
    }
}

fn compare(given: &Record, stored: &Record) -> Result<(), PublishError> {
    let (given, stored) = (&given.delivery, &stored.delivery);
    if given.payload.sha256 == stored.payload.sha256 {
        return Ok(());
    }
    Err(PublishError::Conflict {
        destination: given.destination.clone(),
        stored_sha256: stored.payload.sha256.clone(),
        given_sha256: given.payload.sha256.clone(),
    })
}
