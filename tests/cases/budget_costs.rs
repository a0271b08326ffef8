//! What a budget costs the ledger, and what becomes of slots whose workers were cut off.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};

use waybill_domain::destination::Destination;
use waybill_domain::hold::HoldRule;
use waybill_domain::suspension::SuspendRules;
use waybill_domain::time::DurationMs;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_testkit::faults::{Call, Stage};
use waybill_testkit::scripted::Reaction;

use crate::crew::{accounting, secs, slots};
use crate::world::{Message, World, event, poll_while_moving};

fn suspended_after_failures(destination: &mut Destination) {
    destination.suspension = Some(SuspendRules { after: Some(20), on_gone: true });
}

#[test]
fn a_process_reads_what_it_knows_of_a_destination_only_once_it_is_old() {
    type Setting = fn(&mut Destination);
    // How long after the one before it a delivery comes, and how often what is used is read and written for it.
    type Deliveries = &'static [(u64, usize, usize)];
    let rows: [(&str, Setting, Deliveries); 3] = [
        ("neither budget nor rules", |_| {}, &[(0, 0, 0), (0, 0, 0)]),
        // Every slot is a write, and whoever goes by what is past loses its write.
        ("a budget", |destination| slots(10)(destination), &[(0, 1, 2), (0, 0, 2), (3_600_000, 0, 2)]),
        // Others may have seen it fail meanwhile.
        (
            "rules of its suspension",
            suspended_after_failures,
            &[(0, 1, 0), (0, 0, 0), (4_999, 0, 0), (1, 1, 0), (0, 0, 0)],
        ),
    ];
    for (name, setting, deliveries) in rows {
        let world = World::new().with("accounting", setting);
        let stage = Stage::slow(&world.clock, DurationMs::ZERO);
        let ports = world.staged(&stage);
        let consumer = Consumer { ports: &ports };
        for (n, (later_ms, reads, writes)) in deliveries.iter().enumerate() {
            world.clock.advance(DurationMs::from_ms(*later_ms));
            world.published(&event(&format!("e{n}")), []);
            let message = world.receive().remove(0);
            let before = [Call::Usage, Call::SetUsage].map(|call| stage.calls(call));
            let incoming = Incoming { message_id: &message.message_id, body: &message.body };
            let verdict = world.block(consumer.consume(&world.config, incoming, secs(60)));
            assert_eq!(verdict, Verdict::Acknowledge, "{name}: {n}");
            let made = [Call::Usage, Call::SetUsage].map(|call| stage.calls(call));
            assert_eq!([made[0] - before[0], made[1] - before[1]], [*reads, *writes], "{name}: {n}");
            assert_eq!(stage.calls(Call::Held), 0, "{name}: {n}: nobody waits");
            let queue = &world.ports.queue;
            world.block(waybill_service::ports::Inbox::acknowledge(queue, &message.receipt)).unwrap();
        }
    }
}

/// A pause keeps it back, and no slot was reserved for it.
#[test]
fn what_is_held_without_a_reservation_costs_one_read_of_the_budget() {
    let mut world = World::new().with("accounting", slots(10));
    let message = received(&world, 1).remove(0);
    world.config.holds.push(HoldRule::All);
    let stage = Stage::slow(&world.clock, DurationMs::ZERO);
    let ports = world.staged(&stage);
    let consumer = Consumer { ports: &ports };
    let incoming = Incoming { message_id: &message.message_id, body: &message.body };
    let verdict = world.block(consumer.consume(&world.config, incoming, secs(60)));
    assert_eq!(verdict, Verdict::Acknowledge);
    assert_eq!([Call::Usage, Call::SetUsage, Call::Held].map(|call| stage.calls(call)), [1, 0, 0]);
}

fn received(world: &World, events: usize) -> Vec<Message> {
    for n in 0..events {
        world.published(&event(&format!("e{n}")), [Reaction::answer(200).taking(secs(1))]);
    }
    world.receive()
}

fn leased(world: &World) -> usize {
    world.ports.ledger.peek_usage(&accounting()).usage.leased()
}

#[test]
fn a_slot_comes_back_at_once_though_others_of_its_process_were_cut_off() {
    let world = World::new().with("accounting", slots(10));
    let messages = received(&world, 4);
    let (last, cut_off) = messages.split_last().unwrap();
    let consumer = Consumer { ports: &world.ports };
    for Message { message_id, body, .. } in cut_off {
        let mut working = pin!(consumer.consume(&world.config, Incoming { message_id, body }, secs(60)));
        assert!(poll_while_moving(working.as_mut()).is_none(), "it waits for its recipient");
    }
    assert_eq!(leased(&world), 3, "theirs lapse, for their requests may be with the recipient");
    assert_eq!(world.work(last), Verdict::Acknowledge);
    assert_eq!(leased(&world), 3);
}

#[test]
fn who_is_cut_off_while_it_waits_for_a_slot_takes_none() {
    let world = World::new().with("accounting", slots(10));
    let messages = received(&world, 2);
    let consumer = Consumer { ports: &world.ports };
    let incoming = |n: usize| Incoming { message_id: &messages[n].message_id, body: &messages[n].body };
    let mut other = pin!(consumer.consume(&world.config, incoming(1), secs(60)));
    {
        let mut cut_off = pin!(consumer.consume(&world.config, incoming(0), secs(60)));
        let mut context = Context::from_waker(Waker::noop());
        // Both set out, and the first has come and waits for the second.
        assert!(cut_off.as_mut().poll(&mut context).is_pending());
        assert!(other.as_mut().poll(&mut context).is_pending());
        assert!(cut_off.as_mut().poll(&mut context).is_pending());
    }
    assert!(poll_while_moving(other.as_mut()).is_none(), "it waits for its recipient");
    assert_eq!(leased(&world), 1);
    world.clock.advance(secs(1));
    assert_eq!(world.block(other), Verdict::Acknowledge);
    assert_eq!(leased(&world), 0);
}
