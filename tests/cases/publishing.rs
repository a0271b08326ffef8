//! Bad input at publish, and kind O: what is refused names its field, and nothing is half-written.

use waybill_domain::delivery::State;
use waybill_service::event::Event;
use waybill_service::publish::{PublishError, Publisher};
use waybill_testkit::faults::{Call, Stage, Staged};
use waybill_testkit::scripted::Reaction;

use crate::world::{World, event, with};

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let world = World::new();
    let rows = [
        (with("e", r#""deadline":"2026-08-10T05:59:59Z""#), "deadline: is not in the future"),
        (with("e", r#""deadline":"2026-08-10T06:00:00Z""#), "deadline: is not in the future"),
        (with("e", r#""deadline":"2026-08-10T07:00:00""#), "deadline: has no offset"),
        (
            with("e", r#""not_before":"2026-08-10T08:00:00Z","deadline":"2026-08-10T08:00:00Z""#),
            "not_before: is not before the deadline",
        ),
        (
            event("e").replace("accounting", "nowhere"),
            "destination: \"nowhere\" is no destination of tenant acme",
        ),
        (
            event("e").replace("accounting", "other"),
            "destination: \"other\" is no destination of tenant acme",
        ),
        (event("e").replace("lease.paid", "renewal.due"), "deadline: is missing (renewal.due requires one"),
        (
            event("e").replace("lease.paid", "cart.left").replace("\"destination\":\"accounting\",", ""),
            "type: nobody subscribes to \"cart.left\" of tenant acme",
        ),
        (event("e").replace("acme", "a/b"), "tenant: has '/'"),
        ("{".to_owned(), "event: is not a JSON object"),
    ];
    for (json, start) in rows {
        let refusal = world.publish(&json).unwrap_err().to_string();
        assert!(refusal.starts_with(start), "{json}\n  {refusal:?}\n  and not {start:?}");
        assert!(world.ports.ledger.records().is_empty() && world.ports.queue.messages().is_empty(), "{json}");
    }
}

#[test]
fn a_repeat_of_what_was_accepted_is_answered_alike_even_after_its_deadline() {
    let world = World::new();
    let json = with("e", r#""deadline":"2026-08-10T06:01:00Z""#);
    let first = world.publish(&json).unwrap();
    world.clock.advance(waybill_domain::time::DurationMs::from_secs(120));
    let again = world.publish(&json).unwrap();
    assert_eq!(again[0].delivery_id, first[0].delivery_id);
    assert!(again[0].repeated);
    world.work_until_quiet();
    assert!(world.ports.recipient.requests().is_empty(), "and is not sent for it");
}

#[test]
fn a_repeat_sends_no_wake_up_once_an_attempt_was_made() {
    let world = World::new();
    let id = world.published(&event("e"), [Reaction::answer(503)]);
    world.publish(&event("e")).unwrap();
    assert_eq!(world.ports.queue.messages().len(), 2, "while none was made, it does");
    let message = world.receive().remove(0);
    world.work(&message);
    assert_eq!(world.record(&id).state, State::Retryable);
    let waiting = world.ports.queue.messages();
    world.publish(&event("e")).unwrap();
    assert_eq!(world.ports.queue.messages(), waiting);
    world.work_until_quiet();
    assert_eq!(world.record(&id).attempts_made, 2);
    world.publish(&event("e")).unwrap();
    assert!(world.ports.queue.messages().is_empty());
}

#[test]
fn of_several_deliveries_none_is_recorded_where_one_conflicts_whichever_it_is() {
    for known in ["accounting", "crm"] {
        let world = World::new();
        world.published(&event("e").replace("accounting", known).replace("1.0", "2.0"), []);
        let before = world.ports.ledger.records();
        let to_all = event("e").replace("\"destination\":\"accounting\",", "");
        match world.publish(&to_all) {
            Err(PublishError::Conflict { destination, .. }) => assert_eq!(destination.as_str(), known),
            other => panic!("{known}: {other:?}"),
        }
        assert_eq!(world.ports.ledger.records(), before, "{known}");
    }
}

#[test]
fn one_delivery_is_recorded_without_a_look_beforehand() {
    let world = World::new();
    let stage = Stage::overtaken(Call::Load, || panic!("it is read, and nothing needs it"));
    let ledger = Staged::new(world.ports.ledger.clone(), &stage);
    let publisher = Publisher { ledger: &ledger, queue: &world.ports.queue, clock: &world.clock };
    for repeated in [false, true] {
        let event = Event::parse(event("e").as_bytes()).unwrap();
        let published = world.block(publisher.publish(&world.config, event)).unwrap();
        assert_eq!(published[0].repeated, repeated);
    }
}

#[test]
fn c101_the_payload_arrives_byte_for_byte() {
    let world = World::new();
    let payload = r#"{"a":1.0,"b":-0,"c":1E2,"d":1234567890123456789012345678901234567890,"e":"\u0000"}"#;
    world.published(&event("e").replace("{\"n\":1.0}", payload), []);
    world.work_until_quiet();
    assert_eq!(world.ports.recipient.requests()[0].body, payload);
}

#[test]
fn c23_one_event_that_a_queue_would_refuse_does_not_stop_its_neighbours() {
    let world = World::new();
    for n in 0..9 {
        world.published(&event(&format!("e{n}")), []);
    }
    let odd = "{\"n\":\"\u{ffff}\u{fffe}\u{7f}🎉\"}";
    let json = with("odd", "\"scope\":\"\u{ffff}🎉\"").replace("{\"n\":1.0}", odd);
    let id = world.published(&json, []);
    assert!(world.ports.queue.messages().iter().all(|(_, body, _)| body.is_ascii()));
    world.work_until_quiet();
    let requests = world.ports.recipient.requests();
    assert_eq!(requests.len(), 10);
    assert!(requests.iter().any(|request| request.delivery_id == id && request.body == odd));
}
