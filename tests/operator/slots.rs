//! A slot that came too late for its attempt: what was waited for it is taken off the worker's time.

use std::sync::Arc;

use serde_json::json;
use waybill_domain::admit::SETTLE_MARGIN;
use waybill_domain::budget::Budget;
use waybill_domain::destination::Destination;
use waybill_domain::identity::DestinationName;
use waybill_domain::time::DurationMs;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::ports::{Budgets as _, Clock as _, Ports};
use waybill_testkit::dice::SeededDice;

use crate::dying::{Dying, Life};
use crate::publishing::publish;
use crate::world::World;

#[test]
fn what_was_waited_for_a_slot_is_taken_off_the_time_that_is_left() {
    // The time that is left beyond what the attempt itself may take, and whether it is begun.
    for (beyond_ms, is_begun) in [(500, false), (60_000, true)] {
        let mut world = World::new();
        for destination in world.config.destinations.values_mut() {
            let budget = Budget::of(Some(4), None);
            *destination = Arc::new(Destination { budget, ..Destination::clone(destination) });
        }
        let key = publish(&world, "e", json!({}));
        let (message_id, body, _) = world.ports.queue.messages().pop().unwrap();
        // The budget is read and written: each takes a second.
        let life = Life::slow(&world.clock, DurationMs::from_secs(1));
        let ports = Ports {
            ledger: Dying(&world.ports.ledger, &life),
            queue: world.ports.queue.clone(),
            recipient: world.ports.recipient.clone(),
            clock: world.clock.clone(),
            dice: SeededDice::new("slots", 1),
            desk: Default::default(),
        };
        let books = DestinationName::parse("books").unwrap();
        let timeout = world.config.destinations[&books].timeout;
        // Loading the record takes its second before the time is judged.
        let left = timeout.plus(SETTLE_MARGIN).plus(DurationMs::from_ms(1000 + beyond_ms));
        let incoming = Incoming { message_id: &message_id, body: &body };
        let verdict = world.block(Consumer { ports: &ports }.consume(&world.config, incoming, left));
        let name = format!("{beyond_ms} ms beyond");
        assert_eq!(world.ports.recipient.requests().len(), usize::from(is_begun), "{name}");
        assert_eq!(world.record(&key).attempts_made, u32::from(is_begun), "{name}");
        let expected = match is_begun {
            true => Verdict::Acknowledge,
            false => Verdict::Leave { hidden_until: None },
        };
        assert_eq!(verdict, expected, "{name}");
        let usage = world.block(world.ports.ledger.usage(&books)).unwrap().usage;
        assert_eq!(
            usage.free(&Budget::of(Some(4), None).unwrap(), world.clock.now()),
            4,
            "{name}: the slot is back"
        );
    }
}
