//! Kind A: duplicates and delivery identity.

use std::collections::BTreeSet;

use waybill_domain::delivery::State;
use waybill_service::consume::Verdict;
use waybill_testkit::scripted::Reaction;

use crate::world::{World, event, id_of};

#[test]
fn c01_every_attempt_carries_one_id_and_the_same_bytes() {
    let world = World::new();
    let id = world.published(&event("e"), [500, 500, 200].map(Reaction::answer));
    world.work_until_quiet();
    let requests = world.ports.recipient.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.delivery_id == id && request.body == "{\"n\":1.0}"));
    assert_eq!(world.record(&id).state, State::Succeeded);
}

#[test]
fn c03_a_rescue_of_work_that_only_waits_sends_once() {
    let world = World::new();
    let id = world.published(&event("e"), []);
    // The queue is long: the wake-up lies there for twice the stale limit, and is rescued twice.
    for _ in 0..2 {
        let look_at = world.record(&id).look_at.unwrap();
        world.clock.set(look_at);
        assert_eq!(world.reconcile().woken, 1);
    }
    let messages = world.receive();
    assert_eq!(messages.len(), 3);
    let verdicts: Vec<Verdict> = messages.iter().map(|message| world.work(message)).collect();
    assert_eq!(verdicts, [Verdict::Acknowledge; 3]);
    assert_eq!(world.ports.recipient.requests().len(), 1);
    assert_eq!(world.record(&id).attempts_made, 1);
    assert!(world.ports.queue.dead_letters().is_empty() && world.ports.queue.messages().is_empty());
}

#[test]
fn c05_four_workers_on_one_record_send_once() {
    let world = World::new();
    let id = world.published(
        &event("e"),
        [Reaction::answer(200).taking(waybill_domain::time::DurationMs::from_secs(5))],
    );
    let message = world.receive().remove(0);
    // Four of them at once, over one and the same message.
    let consumer = waybill_service::consume::Consumer { ports: &world.ports };
    let one = || {
        let incoming =
            waybill_service::consume::Incoming { message_id: &message.message_id, body: &message.body };
        consumer.consume(&world.config, incoming, waybill_domain::time::DurationMs::from_secs(60))
    };
    let (a, b, c, d) = world.block(async { futures::join!(one(), one(), one(), one()) });
    let acknowledged = [a, b, c, d].iter().filter(|verdict| **verdict == Verdict::Acknowledge).count();
    assert_eq!(acknowledged, 1, "the others leave the claim's own copy: {:?}", [a, b, c, d]);
    assert_eq!(world.ports.recipient.requests().len(), 1);
    assert_eq!(world.record(&id).state, State::Succeeded);
}

#[test]
fn c07_a_redelivered_message_is_judged_by_the_ledger_alone() {
    let world = World::new();
    let id = world.published(&event("e"), [Reaction::answer(500)]);
    let m1 = world.receive().remove(0);
    world.consume(&m1.message_id, &m1.body);
    let m2 = loop {
        match world.receive().into_iter().find(|message| message.message_id != m1.message_id) {
            Some(message) => break message,
            None => world.clock.set(world.ports.queue.next_at().unwrap()),
        }
    };
    // The same message ID as before, now for what is due: nothing in the process remembers it.
    assert_eq!(world.consume(&m1.message_id, &m2.body), Verdict::Acknowledge);
    assert_eq!(world.record(&id).state, State::Succeeded);
    assert_eq!(world.ports.recipient.requests().len(), 2);
}

#[test]
fn c09_c121_an_event_goes_to_every_subscriber_of_its_tenant_and_to_nobody_else() {
    let world = World::new();
    let json = event("e").replace("\"destination\":\"accounting\",", "");
    let published = world.publish(&json).unwrap();
    let ids: BTreeSet<_> = published.iter().map(|one| one.delivery_id.clone()).collect();
    assert_eq!(ids, BTreeSet::from([id_of("e", "accounting"), id_of("e", "crm")]));
    world.work_until_quiet();
    let sent: Vec<_> =
        world.ports.recipient.requests().into_iter().map(|request| request.delivery_id).collect();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent.into_iter().collect::<BTreeSet<_>>(), ids);
}
