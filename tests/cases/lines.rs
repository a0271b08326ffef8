//! What the log says of each thing that was done: one line, with its reason.

use std::sync::Arc;

use waybill_domain::identity::{DestinationName, MessageId};
use waybill_domain::time::DurationMs;
use waybill_service::consume::{Consumer, Incoming};
use waybill_service::payload_schema::PayloadSchema;
use waybill_service::ports::Clock as _;
use waybill_testkit::conformance::fixture;
use waybill_testkit::faults::{Call, Stage};
use waybill_testkit::scripted::Reaction;

use crate::logged::{logged, messages};
use crate::world::{World, event, id_of};

/// Works on the newest message, in so much time.
fn work(world: &World, time_left_s: u64) {
    let (message_id, body, _) = world.ports.queue.messages().pop().unwrap();
    consume(world, &message_id, &body, time_left_s);
}

fn consume(world: &World, message_id: &MessageId, body: &str, time_left_s: u64) {
    let consumer = Consumer { ports: &world.ports };
    let time_left = DurationMs::from_secs(time_left_s);
    world.block(consumer.consume(&world.config, Incoming { message_id, body }, time_left));
}

/// A worker that sleeps for a minute right before its claim is written.
pub(crate) fn sleep_over_the_claim(world: &World) {
    let clock = world.clock.clone();
    let stage = Stage::overtaken(Call::Apply, move || clock.advance(DurationMs::from_secs(60)));
    let ports = world.staged(&stage);
    let (message_id, body, _) = world.ports.queue.messages().pop().unwrap();
    let incoming = Incoming { message_id: &message_id, body: &body };
    let consumer = Consumer { ports: &ports };
    world.block(consumer.consume(&world.config, incoming, DurationMs::from_secs(600)));
}

#[test]
fn each_thing_that_is_done_has_its_line_and_its_reason() {
    type Do = fn(&mut World);
    let rows: [(&str, Do, Do, &[&str]); 8] = [
        ("an event is published", |_| {}, |world| drop(world.publish(&event("e"))), &["published"]),
        (
            "a payload is refused",
            |world| {
                let accounting = DestinationName::parse("accounting").unwrap();
                let schema = PayloadSchema::parse("none.json", r#"{ "maxProperties": 0 }"#).unwrap();
                world.config.schemas.insert(accounting, Arc::new(schema));
            },
            |world| drop(world.publish(&event("e"))),
            &["refused: payload_invalid"],
        ),
        (
            "it is delivered",
            |world| drop(world.published(&event("e"), [])),
            |world| work(world, 60),
            &["attempted", "decided"],
        ),
        (
            "it fails for good",
            |world| drop(world.published(&event("e"), [Reaction::answer(400)])),
            |world| work(world, 60),
            &["attempted", "decided: payload_rejected"],
        ),
        (
            "its message comes once more",
            |world| {
                world.published(&event("e"), []);
                let message = world.receive().remove(0);
                world.consume(&message.message_id, &message.body);
            },
            |world| work(world, 60),
            &["suppressed: final"],
        ),
        (
            "its own claim is alive",
            |world| {
                let id = world.published(&event("e"), []);
                let message = world.receive().remove(0);
                let claim = world.record(&id).claim(
                    message.message_id,
                    fixture::token("dead"),
                    world.clock.now(),
                    DurationMs::from_secs(15),
                    world.config.revision.clone(),
                );
                world.ports.ledger.overwrite(claim.unwrap().into_after());
            },
            |world| work(world, 60),
            &["left: own_claim"],
        ),
        (
            "too little time is left",
            |world| drop(world.published(&event("e"), [])),
            |world| work(world, 1),
            &["left: time_short"],
        ),
        (
            "its worker slept too long to send it",
            |world| drop(world.published(&event("e"), [])),
            |world| sleep_over_the_claim(world),
            &["not sent: lease_too_short", "decided"],
        ),
    ];
    for (name, before, then, said) in rows {
        let mut world = World::new();
        before(&mut world);
        let ((), lines) = logged(|| then(&mut world));
        assert_eq!(messages(&lines), said, "{name}");
        let id = id_of("e", "accounting");
        let of_it = |line: &serde_json::Value| line["delivery_id"] == id.as_str();
        assert!(lines.iter().all(|line| line["tenant"] == "acme"), "{name}: {lines:?}");
        assert!(lines.iter().all(|line| of_it(line) || line["message"] == "refused"), "{name}: {lines:?}");
    }
}
