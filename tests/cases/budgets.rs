//! Kind S, and what C29, C45 and C49 say of budgets: a full one holds, whoever frees a slot releases
//! the next, and what waits costs nothing.

use std::pin::pin;

use waybill_domain::delivery::State;
use waybill_domain::hold::{HoldReason, HoldRule};
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::ports::Clock as _;
use waybill_testkit::scripted::Reaction;

use crate::crew::{
    Crew, MINUTE, accounting, messages_sent, most_at_once, published, secs, slots, starts_ms, wake,
    work_on_batch,
};
use crate::world::{World, event, poll_while_moving, with};

/// The row leaves seven of ten in the queue, to be received again. Here a full budget holds: nine are
/// held and acknowledged, and each is woken by the one before it. What it is about stays: whatever is
/// begun can be ended, one at a time, at 0, 8, 16 s…, and each is sent exactly once.
#[test]
fn c29_a_full_budget_holds_and_each_release_wakes_the_next() {
    let mut world = World::new().with("accounting", slots(1));
    world.change("accounting", |destination| destination.timeout = secs(10));
    let start = world.clock.now();
    let ids = published(&world, 0, 10, secs(8));
    assert_eq!(work_on_batch(&world, &world.receive()), [Verdict::Acknowledge; 10]);
    assert_eq!(starts_ms(&world, start), [0]);
    assert_eq!(world.clock.now().since(start), secs(8), "nobody waited for a slot");
    let held = ids.iter().filter(|id| world.record(id).hold.is_some());
    assert_eq!(held.count(), 8, "one was done, and woke the next");
    for _ in 0..9 {
        assert_eq!(work_on_batch(&world, &world.receive()), [Verdict::Acknowledge]);
    }
    assert_eq!(starts_ms(&world, start), (0..10).map(|n| n * 8000).collect::<Vec<_>>());
    let records = ids.iter().map(|id| world.record(id));
    assert!(records.into_iter().all(|r| (r.state, r.attempts_made) == (State::Succeeded, 1)));
}

#[test]
fn c45_a_redrive_that_waits_for_a_slot_past_its_deadline_is_never_sent() {
    let mut world = World::new().with("accounting", slots(1));
    world.change("accounting", |destination| destination.timeout = secs(20));
    let start = world.clock.now();
    let late =
        world.published(&with("late", r#""deadline":"2026-08-10T07:00:00Z""#), [Reaction::answer(401)]);
    world.work_until_quiet();
    // Ten seconds before its deadline it is redriven, while the slot is busy until five past it.
    world.clock.set(start.plus(secs(3585)));
    world.published(&event("slow"), [Reaction::answer(200).taking(secs(20))]);
    let mut batch = world.receive();
    let slow = batch.remove(0);
    let consumer = Consumer { ports: &world.ports };
    let incoming = Incoming { message_id: &slow.message_id, body: &slow.body };
    let mut sending = pin!(consumer.consume(&world.config, incoming, MINUTE));
    assert!(poll_while_moving(sending.as_mut()).is_none());
    world.clock.set(start.plus(secs(3590)));
    let policy = world.config.destinations[&accounting()].policy;
    let (now, look) = (world.clock.now(), world.config.look_rules(secs(900)));
    let release = world.record(&late).release("rdr_1".into(), &policy, now, now, &look).unwrap();
    world.block(waybill_service::ports::Ledger::apply(&world.ports.ledger, &release)).unwrap();
    world.clock.set(start.plus(secs(3591)));
    world.ports.queue.hurry(&wake(&world, &late));
    assert_eq!(work_on_batch(&world, &world.receive()), [Verdict::Acknowledge]);
    assert_eq!(world.record(&late).hold.clone().map(|held| held.reason), Some(HoldReason::Budget));
    world.clock.set(start.plus(secs(3605)));
    assert_eq!(poll_while_moving(sending.as_mut()), Some(Verdict::Acknowledge));
    // Whoever freed the slot found it past its deadline.
    assert_eq!(world.record(&late).state, State::Expired);
    world.run_for(MINUTE);
    assert_eq!(world.sent_after_ms(&late, start).len(), 1, "only the attempt before the redrive");
}

#[test]
fn c49_what_comes_back_after_retry_after_is_let_in_one_by_one() {
    let mut world = World::new().with("accounting", slots(300));
    world.ports.dice = waybill_testkit::dice::FixedDice::showing(0.5);
    let asked = || [Reaction::answer(429).asking("300")];
    let ids: Vec<_> = (0..300).map(|n| world.published(&event(&format!("e{n}")), asked())).collect();
    let start = world.clock.now();
    let mut crew = Crew::of(&world, 400);
    crew.work_until(start.plus(secs(10)));
    assert_eq!(world.ports.recipient.requests().len(), 300);
    let World { clock, .. } = &world;
    assert_eq!(clock.now().since(start), secs(10));
    drop(crew);
    world.change("accounting", slots(5));
    Crew::of(&world, 400).work_until(start.plus(secs(400)));
    for id in &ids {
        let sent = world.sent_after_ms(id, start);
        assert_eq!((sent.len(), sent[1] >= 300_000), (2, true), "{sent:?}");
    }
}

#[test]
fn c123_a_pause_outlives_restarts_costs_no_attempt_and_ends_within_the_budget() {
    let mut world = World::new().with("accounting", slots(8));
    let start = world.clock.now();
    world.config.holds = vec![HoldRule::Destination(accounting())];
    let ids = published(&world, 0, 100, secs(2));
    let doomed = world.published(&with("doomed", r#""deadline":"2026-08-10T06:30:00Z""#), []);
    // Longer than every receive of a message could last.
    let mut crew = Crew::of(&world, 50);
    crew.work_until(start.plus(secs(3600)));
    let looked_at: usize = crew.ticks.iter().map(|tick| tick.looked_at).sum();
    assert!(looked_at < 200, "{looked_at} reads in an hour for what a pause surely keeps");
    assert!(world.ports.recipient.requests().is_empty() && world.ports.queue.messages().is_empty());
    assert_eq!(world.record(&doomed).state, State::Expired);
    assert_eq!(world.ports.queue.dead_letters().len(), 1, "the expired one");
    assert!(ids.iter().all(|id| world.record(id).attempts_made == 0));
    drop(crew);
    // A cold start under a configuration without the pause.
    world.config.holds.clear();
    world.ports.queue.take_journal();
    Crew::of(&world, 50).work_until(start.plus(secs(3700)));
    assert_eq!(world.ports.recipient.requests().len(), 100);
    assert_eq!(most_at_once(&world, secs(2)), 8);
    let records = ids.iter().map(|id| world.record(id));
    assert!(records.into_iter().all(|r| (r.state, r.attempts_made) == (State::Succeeded, 1)));
    assert_eq!(messages_sent(&world), 100, "one each");
}

#[test]
fn a_batch_takes_its_slots_in_one_write_and_gives_them_back_in_four() {
    let world = World::new().with("accounting", slots(10));
    for n in 0..10 {
        // Each is answered at another time, so that nobody comes back together by chance.
        world.published(&event(&format!("e{n}")), [Reaction::answer(200).taking(secs(1 + n))]);
    }
    assert_eq!(work_on_batch(&world, &world.receive()), [Verdict::Acknowledge; 10]);
    let kept = world.ports.ledger.peek_usage(&accounting());
    assert_eq!((kept.revision, kept.usage.leased()), (5, 0));
}

#[test]
fn a_destination_without_a_budget_costs_nothing() {
    let world = World::new();
    published(&world, 0, 10, secs(1));
    work_on_batch(&world, &world.receive());
    assert_eq!(world.ports.ledger.peek_usage(&accounting()).revision, 0);
}
