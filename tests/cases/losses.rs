//! Kind B: lost messages, acknowledgement order, ordering.

use waybill_domain::delivery::State;
use waybill_domain::identity::MessageId;
use waybill_domain::time::DurationMs;
use waybill_service::consume::Verdict;
use waybill_service::ports::{Burial, Outgoing, PortError, PortResult, Queue};
use waybill_service::publish::PublishError;
use waybill_testkit::memory::MemoryQueue;

use crate::world::{World, event, id_of};

/// A queue that refuses what is sent to it.
pub(crate) struct Refusing<'a>(pub(crate) &'a MemoryQueue);

impl Queue for Refusing<'_> {
    fn window(&self) -> DurationMs {
        self.0.window()
    }

    async fn send(&self, _: Outgoing) -> PortResult<MessageId> {
        Err(PortError::AskLater { port: "queue", cause: "no".into() })
    }

    async fn bury(&self, _: Burial) -> PortResult<MessageId> {
        Err(PortError::AskLater { port: "queue", cause: "no".into() })
    }
}

#[test]
fn c11_what_was_recorded_and_not_sent_is_sent_by_the_producers_repeat() {
    let world = World::new();
    let refused = world.publish_to(&Refusing(&world.ports.queue), &event("e"));
    assert!(matches!(refused, Err(PublishError::Port(_))), "never accepted before both writes: {refused:?}");
    let repeated = world.publish(&event("e")).unwrap();
    assert_eq!((repeated[0].delivery_id.clone(), repeated[0].repeated), (id_of("e", "accounting"), true));
    world.work_until_quiet();
    assert_eq!(world.ports.recipient.requests().len(), 1);
}

#[test]
fn c11_what_was_recorded_and_not_sent_is_sent_by_the_reconciler() {
    let world = World::new();
    world.publish_to(&Refusing(&world.ports.queue), &event("e")).unwrap_err();
    world.run_for(DurationMs::from_secs(4 * 60));
    assert_eq!(world.ports.recipient.requests().len(), 0, "not before the stale limit");
    world.run_for(DurationMs::from_secs(2 * 60));
    assert_eq!(world.ports.recipient.requests().len(), 1);
    assert_eq!(world.record(&id_of("e", "accounting")).state, State::Succeeded);
}

#[test]
fn c13_a_publisher_that_died_in_between_blocks_nobody() {
    // There is no mark "in progress": the record is there or it is not, and a repeat goes on.
    let world = World::new();
    world.publish_to(&Refusing(&world.ports.queue), &event("e")).unwrap_err();
    let repeat = world.publish(&event("e")).unwrap();
    assert!(repeat[0].repeated);
    assert_eq!(world.ports.queue.messages().len(), 1);
}

#[test]
fn c15_a_live_claim_keeps_the_message_a_lapsed_one_is_taken_over_a_final_one_is_acknowledged() {
    let world = World::new();
    let id = world.published(&event("e"), []);
    let message = world.receive().remove(0);
    let claimed = world.record(&id).claim(
        message.message_id.clone(),
        waybill_domain::identity::WriteToken::parse("of-a-dead-worker").unwrap(),
        waybill_service::ports::Clock::now(&world.clock),
        DurationMs::from_secs(15),
        world.config.revision.clone(),
    );
    world.ports.ledger.overwrite(claimed.unwrap().into_after());

    world.clock.advance(DurationMs::from_secs(10));
    let left = world.consume(&message.message_id, &message.body);
    assert!(matches!(left, Verdict::Leave { hidden_until: Some(_) }), "{left:?}");
    assert_eq!(world.ports.recipient.requests().len(), 0);

    world.clock.advance(DurationMs::from_secs(11));
    world.work(&message);
    world.work_until_quiet();
    assert_eq!(world.ports.recipient.requests().len(), 1, "attempt 2: attempt 1 was interrupted");
    assert_eq!(world.record(&id).state, State::Succeeded);

    assert_eq!(world.consume(&message.message_id, &message.body), Verdict::Acknowledge);
    assert_eq!(world.ports.recipient.requests().len(), 1);
}

#[test]
fn c17_a_single_event_after_an_idle_hour_is_delivered_with_no_other_traffic() {
    let world = World::new();
    world.run_for(DurationMs::from_secs(3600));
    let before = waybill_service::ports::Clock::now(&world.clock);
    let id = world.published(&event("e"), []);
    world.run_for(DurationMs::from_secs(60));
    assert_eq!(world.sent_after_ms(&id, before), [0]);
}
