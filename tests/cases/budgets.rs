//! Kind S, and what C29, C45 and C49 say of budgets: a full one holds, whoever frees a slot releases
//! the next, and what waits costs nothing.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use waybill_domain::budget::{Budget, Rate};
use waybill_domain::delivery::State;
use waybill_domain::destination::Destination;
use waybill_domain::hold::{HoldReason, HoldRule};
use waybill_domain::identity::{DeliveryId, DestinationName};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::ports::{Clock as _, Inbox as _};
use waybill_service::reconcile::TickReport;
use waybill_testkit::dice::Lots;
use waybill_testkit::memory::QueueEvent;
use waybill_testkit::scripted::Reaction;

use crate::world::{Message, World, event, poll_while_moving, with};

const MINUTE: DurationMs = DurationMs::from_secs(60);

fn secs(seconds: u64) -> DurationMs {
    DurationMs::from_secs(seconds)
}

fn slots(concurrency: u32) -> impl FnOnce(&mut Destination) {
    move |destination| destination.budget = Budget::of(Some(concurrency), None)
}

fn accounting() -> DestinationName {
    DestinationName::parse("accounting").unwrap()
}

/// Publishes so many events, each answered 200 after `taking`.
fn published(world: &World, from: usize, events: usize, taking: DurationMs) -> Vec<DeliveryId> {
    let reaction = || [Reaction::answer(200).taking(taking)];
    (from..from + events).map(|n| world.published(&event(&format!("e{n}")), reaction())).collect()
}

/// A batch, all of its records at once, as the consumer function works on it. The clock moves only
/// when nobody can.
fn work_on_batch(world: &World, batch: &[Message]) -> Vec<Verdict> {
    let consumer = Consumer { ports: &world.ports };
    let one = |message: &Message| {
        let (id, body) = (message.message_id.clone(), message.body.clone());
        let (consumer, config) = (&consumer, &world.config);
        async move { consumer.consume(config, Incoming { message_id: &id, body: &body }, secs(30)).await }
    };
    let mut working = pin!(futures::future::join_all(batch.iter().map(one)));
    let verdicts = loop {
        match poll_while_moving(working.as_mut()) {
            Some(verdicts) => break verdicts,
            None => world.clock.set(world.clock.next_wait().unwrap()),
        }
    };
    for (message, _) in batch.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Verdict::Acknowledge) {
        world.block(world.ports.queue.acknowledge(&message.receipt)).unwrap();
    }
    verdicts
}

/// So many workers and a reconciler, until the time comes or nothing is left to do.
pub(crate) struct Crew<'w> {
    world: &'w World,
    workers: usize,
    next_tick: TimeMs,
    ticks: Vec<TickReport>,
    at_work: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + 'w>>>,
}

impl<'w> Crew<'w> {
    pub(crate) fn of(world: &'w World, workers: usize) -> Self {
        let at_work = FuturesUnordered::new();
        Self { world, workers, next_tick: world.clock.now(), ticks: Vec::new(), at_work }
    }

    pub(crate) fn work_until(&mut self, end: TimeMs) {
        let world = self.world;
        loop {
            if self.next_tick <= world.clock.now() {
                self.ticks.push(world.reconcile());
                self.next_tick = world.clock.now().plus(MINUTE);
            }
            let room = self.workers - self.at_work.len();
            let received = world.block(world.ports.queue.receive(room, MINUTE)).unwrap();
            for message in received {
                self.at_work.push(Box::pin(async move {
                    let consumer = Consumer { ports: &world.ports };
                    let incoming = Incoming { message_id: &message.message_id, body: &message.body };
                    let verdict = consumer.consume(&world.config, incoming, MINUTE).await;
                    match verdict {
                        Verdict::Acknowledge => world.ports.queue.acknowledge(&message.receipt).await,
                        Verdict::Leave { hidden_until } => {
                            let until = hidden_until.unwrap_or(world.clock.now().plus(MINUTE));
                            world.ports.queue.hide_until(&message.receipt, until).await
                        }
                    }
                    .unwrap();
                }));
            }
            while let Some(Some(())) = poll_while_moving(pin!(self.at_work.next())) {}
            let more = world.ports.queue.next_at().filter(|_| self.at_work.len() < self.workers);
            let next = [world.clock.next_wait(), more, Some(self.next_tick)].into_iter().flatten().min();
            match next {
                Some(at) if at < end => world.clock.set(at.max(world.clock.now())),
                _ => break,
            }
        }
        world.clock.set(end);
    }
}

/// The most requests that were with the recipient at once, each for as long as it took.
fn most_at_once(world: &World, taking: DurationMs) -> usize {
    let mut changes: BTreeMap<TimeMs, i64> = BTreeMap::new();
    for request in world.ports.recipient.requests() {
        *changes.entry(request.at).or_default() += 1;
        *changes.entry(request.at.plus(taking)).or_default() -= 1;
    }
    let mut at_once = 0;
    let counted = changes.values().map(|change| {
        at_once += change;
        at_once
    });
    usize::try_from(counted.max().unwrap_or(0)).unwrap()
}

fn starts_ms(world: &World, from: TimeMs) -> Vec<u64> {
    world.ports.recipient.requests().iter().map(|request| request.at.since(from).as_ms()).collect()
}

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

/// A wake-up for the record as it stands.
fn wake(world: &World, id: &DeliveryId) -> waybill_domain::identity::MessageId {
    let body = waybill_domain::envelope::WakeUp::for_next_attempt(&world.record(id)).encode();
    let outgoing = waybill_service::ports::Outgoing { body, delay: DurationMs::ZERO };
    world.block(waybill_service::ports::Queue::send(&world.ports.queue, outgoing)).unwrap()
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

fn messages_sent(world: &World) -> usize {
    world.ports.queue.take_journal().iter().filter(|event| matches!(event, QueueEvent::Sent { .. })).count()
}

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
