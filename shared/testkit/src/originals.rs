//! What a store with much history is cloned from: one delivery of each kind, made by Waybill's own code. Its
//! clones have delivery IDs that are derived as always.
//!
//! How a store's items are read and written is the store's; what they say is the same everywhere.

use waybill_domain::address::Locality;
use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId};
use waybill_domain::time::DurationMs;
use waybill_service::config::Config;
use waybill_service::config_file;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::event::Event;
use waybill_service::ports::{Inbox, Ledger, Ports, Queue};
use waybill_service::publish::Publisher;

use crate::clock::VirtualClock;
use crate::dice::SeededDice;
use crate::scripted::ScriptedRecipient;

/// Event ID of the delivery that was delivered.
pub const DONE: &str = "done";
/// Event ID of the delivery that was recorded, and whose wake-up is gone.
pub const LOST: &str = "lost";

/// How many deliveries are due for a look, however much history there is: their wake-ups were lost.
pub const DUE: usize = 100;

/// Time that passes until what was lost counts as stale: more than `stale_after`, and not on the hour, at
/// which the DLQ is swept.
pub const LATER: DurationMs = DurationMs::from_secs(600);

const TENANT: &str = "acme";
const DESTINATION: &str = "books";
const WHILE: DurationMs = DurationMs::from_secs(60);

/// The configuration that they stand under.
pub fn config() -> Config {
    let text = format!(
        "[destinations.{DESTINATION}]\ntenants = [\"{TENANT}\"]\nurl = \"https://books.example.com/hooks\"\n\
         secrets = [\"env:S\"]\n"
    );
    config_file::parse(&text, Locality::PublicOnly).expect("the configuration is good")
}

/// Makes both: [`DONE`] and [`LOST`].
///
/// # Panics
/// If anything does not go as it must.
pub async fn make<L: Ledger, Q: Queue + Inbox>(ledger: L, queue: Q, clock: &VirtualClock) {
    let (config, recipient) = (config(), ScriptedRecipient::new(clock));
    let dice = SeededDice::new("seed", 1);
    let ports = Ports { ledger, queue, recipient, clock: clock.clone(), dice, desk: Default::default() };
    for event_id in [DONE, LOST] {
        let event = format!(
            r#"{{"event_id":"{event_id}","tenant":"{TENANT}","type":"lease.payment_recorded",
                "destination":"{DESTINATION}",
                "payload":{{"leaseId":"lease_881","amountCents":125000,"currency":"USD"}}}}"#
        );
        let event = Event::parse(event.as_bytes()).expect("an event");
        let publisher = Publisher { ledger: &ports.ledger, queue: &ports.queue, clock };
        publisher.publish(&config, event).await.expect("it is published");
        for message in ports.queue.receive(1, WHILE).await.expect("its wake-up") {
            if event_id == DONE {
                let incoming = Incoming { message_id: &message.message_id, body: &message.body };
                let verdict = Consumer { ports: &ports }.consume(&config, incoming, WHILE).await;
                assert_eq!(verdict, Verdict::Acknowledge, "it is delivered");
            }
            ports.queue.acknowledge(&message.receipt).await.expect("it is acknowledged");
        }
    }
}

/// What a delivery is called in the texts of its items.
#[derive(Debug, Clone)]
pub struct Named {
    event_id: String,
    delivery_id: String,
}

impl Named {
    /// The delivery of this event.
    pub fn by(event_id: &str) -> Self {
        let tenant = TenantId::parse(TENANT).expect("a tenant");
        let destination = DestinationName::parse(DESTINATION).expect("a destination");
        let event = EventId::parse(event_id).expect("an event ID");
        let delivery_id = DeliveryId::derive(&tenant, &event, &destination).to_string();
        Self { event_id: event_id.to_owned(), delivery_id }
    }

    /// Its delivery ID.
    pub fn delivery_id(&self) -> &str {
        &self.delivery_id
    }

    /// A text about this delivery, as it reads for `other`.
    pub fn renamed(&self, text: &str, other: &Self) -> String {
        let quoted = |text: &str| format!("\"{text}\"");
        let text = text.replace(&self.delivery_id, &other.delivery_id);
        text.replace(&quoted(&self.event_id), &quoted(&other.event_id))
    }
}
