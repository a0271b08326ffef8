//! Who gets the slots of a full budget: the nearest deadline, live traffic beside redrives, others beside a
//! tar-pit; and what a dead worker held.

use std::pin::pin;
use std::task::{Context, Waker};

use waybill_domain::budget::{Budget, Rate};
use waybill_domain::delivery::State;
use waybill_domain::identity::DeliveryId;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::consume::{Consumer, Incoming};
use waybill_service::ports::Clock as _;
use waybill_testkit::dice::Lots;
use waybill_testkit::scripted::Reaction;

use crate::crew::{
    Crew, MINUTE, accounting, messages_sent, published, secs, slots, starts_ms, wake, work_on_batch,
};
use crate::world::{Message, World, event, with};

/// A tar-pit, and 50,000 deliveries that come while it is one; then a recipient that answers at once.
#[test]
fn a_backlog_behind_a_slow_recipient_polls_nothing_and_drains_at_once_when_it_is_fast() {
    const BACKLOG: usize = 50_000;
    const SLOW: usize = 500;
    let world = World::new().with("accounting", slots(8));
    let start = world.clock.now();
    let mut crew = Crew::of(&world, 64);
    let mut sent = 0;
    for n in 0..SLOW {
        // Theirs is the nearest deadline: they go first.
        let json = with(&format!("e{n}"), r#""deadline":"2026-08-10T18:00:00Z""#);
        world.published(&json, [Reaction::answer(200).taking(secs(14))]);
    }
    for chunk in 0..(BACKLOG - SLOW) / 500 {
        crew.work_until(start.plus(secs(8 * chunk as u64 + 4)));
        published(&world, SLOW + 500 * chunk, 500, DurationMs::from_ms(5));
        sent += messages_sent(&world);
        world.ports.ledger.take_journal();
    }
    let begun = world.ports.recipient.requests().len();
    assert!((440..470).contains(&begun), "{begun} of {BACKLOG} while the recipient is slow");
    let arrived = BACKLOG + begun;
    assert!(sent < arrived + 100, "{sent} messages while the recipient is slow");
    crew.work_until(start.plus(secs(1000)));
    sent += messages_sent(&world);
    assert_eq!(world.ports.recipient.requests().len(), BACKLOG, "within minutes");
    assert!(sent <= 2 * BACKLOG + 100, "{sent} messages: more than one extra for each, and a few");
}

/// All workers die now and then; what they had in hand comes again when its visibility ends.
#[test]
fn a_tar_pit_keeps_nobody_else_waiting_and_never_gets_more_than_its_budget() {
    let mut world = World::new().with("accounting", slots(8));
    let start = world.clock.now();
    for n in 0..50_000 {
        let slowly = Reaction::answer(200).taking(secs(14));
        world.published(&event(&format!("e{n}")), vec![slowly; 5]);
    }
    let mut waits = Vec::new();
    for round in 0..10 {
        let mut crew = Crew::of(&world, 64);
        for n in 0..10 {
            let json = event(&format!("fast-{round}-{n}")).replace("accounting", "crm");
            let id = world.published(&json, [Reaction::answer(200).taking(DurationMs::from_ms(5))]);
            let now = world.clock.now();
            crew.work_until(now.plus(secs(3)));
            waits.push(world.sent_after_ms(&id, now));
        }
        drop(crew);
        world.ports.desk = waybill_service::desk::Desk::default();
    }
    assert!(waits.iter().all(|sent| sent.first() == Some(&0)), "{waits:?}");
    let requests = world.ports.recipient.requests();
    let slow = |at: TimeMs| {
        // A request whose sender died may be with the recipient for as long as the attempt could take.
        let is_there = |r: &&waybill_testkit::scripted::Received| {
            r.url.to_string().contains("accounting") && r.at <= at && at < r.at.plus(secs(14))
        };
        requests.iter().filter(is_there).count()
    };
    let most = (0..300).map(|second| slow(start.plus(secs(second)))).max();
    assert_eq!(most, Some(8));
}

#[test]
fn what_is_released_goes_earliest_deadline_first() {
    let world = World::new().with("accounting", slots(1));
    published(&world, 0, 1, secs(1));
    let deadlines = ["12", "09", "none", "11", "10"];
    let of = |hour: &str| match hour {
        "none" => event("e-none"),
        hour => with(&format!("e-{hour}"), &format!(r#""deadline":"2026-08-10T{hour}:00:00Z""#)),
    };
    let ids: Vec<_> = deadlines
        .iter()
        .map(|hour| (world.published(&of(hour), [Reaction::answer(200).taking(secs(1))]), *hour))
        .collect();
    work_on_batch(&world, &world.receive());
    while let batch = world.receive()
        && !batch.is_empty()
    {
        work_on_batch(&world, &batch);
    }
    let hour_of = |id: &DeliveryId| ids.iter().find(|(of, _)| of == id).map(|(_, hour)| *hour);
    let order: Vec<&str> =
        world.ports.recipient.requests().iter().filter_map(|request| hour_of(&request.delivery_id)).collect();
    assert_eq!(order, ["09", "10", "11", "12", "none"]);
}

#[test]
fn a_rate_is_kept_without_a_reconciler_to_help() {
    let mut world = World::new();
    world.change("accounting", |destination| {
        destination.budget = Budget::of(Some(4), Rate::parse("rate", "6/m").ok());
    });
    let start = world.clock.now();
    published(&world, 0, 12, DurationMs::from_ms(50));
    work_on_batch(&world, &world.receive());
    world.work_until_quiet();
    let starts = starts_ms(&world, start);
    assert_eq!(starts.len(), 12, "none was left to the reconciler");
    for (n, at) in starts.iter().enumerate() {
        let earliest = (n as u64).saturating_sub(5) * 10_000;
        assert!((earliest..earliest + 2_500).contains(at), "start {n} at {at} ms: {starts:?}");
    }
}

#[test]
fn redrives_leave_half_of_the_slots_to_live_traffic() {
    let world = World::new().with("accounting", slots(4));
    let ids: Vec<_> =
        (0..6).map(|n| world.published(&event(&format!("r{n}")), [Reaction::answer(401)])).collect();
    world.work_until_quiet();
    let policy = world.config.destinations[&accounting()].policy;
    let (now, look) = (world.clock.now(), world.config.look_rules(secs(900)));
    for id in &ids {
        let release = world.record(id).release("rdr_1".into(), &policy, now, now, &look).unwrap();
        world.block(waybill_service::ports::Ledger::apply(&world.ports.ledger, &release)).unwrap();
        world.ports.recipient.react(id, [Reaction::answer(200).taking(secs(5))]);
        wake(&world, id);
    }
    let batch = world.receive();
    let from = world.ports.recipient.requests().len();
    work_on_batch(&world, &batch);
    let requests = world.ports.recipient.requests();
    let together = requests[from..].iter().filter(|request| request.at == now).count();
    assert_eq!(together, 2, "the other two slots are free for live traffic");
    world.work_until_quiet();
    assert!(ids.iter().all(|id| world.record(id).state == State::Succeeded));
}

/// A worker dies at any step of its batch; what it held comes back by itself, and all is sent.
#[test]
fn whatever_a_dead_worker_held_comes_back_with_its_lease() {
    for polls in 1..40 {
        let world = World::new().with("accounting", slots(2));
        let mut lots = Lots::new(polls);
        let ids = published(&world, 0, 5, DurationMs::from_ms(lots.below(14_000)));
        let batch = world.receive();
        {
            let consumer = Consumer { ports: &world.ports };
            let one = |message: &Message| {
                let (id, body) = (message.message_id.clone(), message.body.clone());
                let (consumer, config) = (&consumer, &world.config);
                async move {
                    let incoming = Incoming { message_id: &id, body: &body };
                    consumer.consume(config, incoming, MINUTE).await
                }
            };
            let mut working = pin!(futures::future::join_all(batch.iter().map(one)));
            for _ in 0..polls {
                let _ = working.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                world.clock.advance(DurationMs::from_ms(lots.below(500)));
            }
        }
        // It is dead, and so is what its process knew.
        let mut world = world;
        world.ports.desk = waybill_service::desk::Desk::default();
        Crew::of(&world, 5).work_until(world.clock.now().plus(secs(600)));
        assert!(ids.iter().all(|id| world.record(id).state == State::Succeeded), "after {polls} polls");
        assert_eq!(world.ports.ledger.peek_usage(&accounting()).usage.leased(), 0);
    }
}
