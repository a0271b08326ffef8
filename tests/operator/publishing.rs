//! Deliveries as producers make them, and dead letters as recipients make them.

use waybill_domain::delivery::State;
use waybill_domain::identity::DeliveryKey;
use waybill_domain::time::DurationMs;
use waybill_service::event::Event;
use waybill_service::ports::Clock as _;
use waybill_service::publish::Publisher;
use waybill_testkit::scripted::Reaction;

use crate::world::{World, tenant};

/// Publishes an event of acme's to `books`, or whatever `fields` say.
pub(crate) fn publish(world: &World, event: &str, fields: serde_json::Value) -> DeliveryKey {
    let mut facts = serde_json::json!({
        "event_id": event, "tenant": "acme", "type": "lease.paid", "destination": "books", "payload": 1,
    });
    for (name, value) in fields.as_object().unwrap() {
        facts[name] = value.clone();
    }
    let event = Event::parse(facts.to_string().as_bytes()).unwrap();
    let of = tenant(facts["tenant"].as_str().unwrap());
    let publisher = Publisher { ledger: &world.ports.ledger, queue: &world.ports.queue, clock: &world.clock };
    let published = world.block(publisher.publish(&world.config, event)).unwrap();
    DeliveryKey { tenant: of, delivery_id: published[0].delivery_id.clone() }
}

/// A dead letter that its recipient refused, with its letter in the DLQ.
pub(crate) fn refused(world: &World, event: &str, fields: serde_json::Value) -> DeliveryKey {
    let key = publish(world, event, fields);
    world.ports.recipient.react(&key.delivery_id, [Reaction::answer(401)]);
    work(world, 1);
    assert_eq!(world.record(&key).state, State::DeadLettered);
    key
}

/// Works for so many seconds, without a round.
pub(crate) fn work(world: &World, seconds: u64) {
    world.work_until(world.clock.now().plus(DurationMs::from_secs(seconds)));
}

/// How many requests reached the recipient for a delivery.
pub(crate) fn posts(world: &World, key: &DeliveryKey) -> usize {
    world.ports.recipient.requests().iter().filter(|r| r.delivery_id == key.delivery_id).count()
}
