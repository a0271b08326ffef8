//! Kinds G, P and Q: waits, backoff, deadlines, to the second.

use waybill_domain::attempt::Next;
use waybill_domain::delivery::State;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::AttemptNumber;
use waybill_domain::policy::PolicyTerms;
use waybill_domain::time::DurationMs;
use waybill_service::ports::Clock as _;
use waybill_testkit::dice::Lots;
use waybill_testkit::scripted::Reaction;

use crate::world::{World, event, with};

const HOUR: DurationMs = DurationMs::from_secs(3600);

#[test]
fn c19_a_wait_beyond_the_queues_ceiling_is_parked_in_the_ledger() {
    let world = World::new();
    let json = with("e", r#""deadline":"2026-08-12T06:00:00Z""#);
    let start = world.clock.now();
    let id = world.published(&json, [Reaction::answer(503).asking("54524")]);
    let first = world.receive().remove(0);
    world.work(&first);
    assert!(world.ports.queue.messages().is_empty(), "no chain of delayed messages while it waits");
    world.run_for(HOUR.times(16));
    let sent = world.sent_after_ms(&id, start);
    assert_eq!(sent.len(), 2);
    assert!(sent[1] >= 54_524_000, "never before what was asked: {}", sent[1]);
    assert!(sent[1] <= 54_526_000, "to the second: {}", sent[1]);
    assert_eq!(world.record(&id).attempts_made, 2);
}

#[test]
fn not_before_in_three_months_fires_to_the_second_and_costs_nothing_till_then() {
    let world = World::new();
    let start = world.clock.now();
    let id = world.published(&with("e", r#""not_before":"2026-11-08T06:00:00Z""#), []);
    assert!(world.ports.queue.messages().is_empty());
    let record = world.record(&id);
    world.clock.set(record.look_at.unwrap());
    assert_eq!(world.reconcile().woken, 1);
    assert_eq!(world.ports.queue.messages().len(), 1);
    world.work_until_quiet();
    assert_eq!(world.sent_after_ms(&id, start), [HOUR.times(24 * 90).as_ms()]);
}

#[test]
fn c45_what_passed_its_deadline_is_sent_by_no_path() {
    let world = World::new();
    let deadline = with("e", r#""deadline":"2026-08-10T07:00:00Z""#);
    let id = world.published(&deadline, [Reaction::answer(401)]);
    world.work_until_quiet();
    let dead = world.record(&id);
    assert_eq!(dead.state, State::DeadLettered);
    // Released one second after its deadline, as a redrive would.
    world.clock.set(dead.delivery.deadline.unwrap().plus(DurationMs::from_secs(1)));
    let policy = world.config.destinations.values().next().unwrap().policy;
    let (now, look) = (world.clock.now(), world.config.look_rules(DurationMs::from_secs(900)));
    let release = dead.release("rdr_1".into(), &policy, now, now, &look).unwrap();
    world.block(waybill_service::ports::Ledger::apply(&world.ports.ledger, &release)).unwrap();
    world.run_for(HOUR);
    assert_eq!(world.record(&id).state, State::Expired);
    assert_eq!(world.ports.recipient.requests().len(), 1);
}

#[test]
fn c111_the_next_retry_beyond_the_deadline_becomes_one_last_attempt_before_it() {
    let slow = |terms: PolicyTerms| {
        let mut slow = terms;
        slow.backoff.base = DurationMs::from_secs(240);
        waybill_domain::policy::Policy::new(slow).unwrap()
    };
    let world = World::new().with("accounting", |d| d.policy = slow(*d.policy));
    let start = world.clock.now();
    let json = with("e", r#""deadline":"2026-08-10T06:01:40Z""#);
    let id = world.published(&json, [Reaction::answer(503), Reaction::silence()]);
    world.work_until_quiet();
    world.run_for(HOUR);
    // Jitter drew 120 s; the deadline is at 100 s, the window 2 s, a queue counts in whole seconds.
    assert_eq!(world.sent_after_ms(&id, start), [0, 96_000]);
    let record = world.record(&id);
    assert_eq!(record.state, State::Expired);
    let ended = &world.evidence(&id)[1];
    assert!(ended.ended_at <= record.delivery.deadline.unwrap(), "the attempt was cut at the deadline");
    assert_eq!(ended.next, Next::End(waybill_domain::ending::Ending::Expired));
}

#[test]
fn a_retry_after_past_the_deadline_is_a_dead_letter_while_a_person_can_still_act() {
    let world = World::new();
    let json = with("e", r#""deadline":"2026-08-10T07:00:00Z""#);
    let id = world.published(&json, [Reaction::answer(429).asking("7200")]);
    world.work_until_quiet();
    assert_eq!(world.record(&id).dead_letter_reason(), Some(DeadLetterReason::RetryAfterPastDeadline));
    assert!(world.clock.now() < world.record(&id).delivery.deadline.unwrap());
}

#[test]
fn an_open_delivery_without_any_wake_up_expires_within_a_minute_of_its_deadline() {
    let world = World::new();
    let id = world.published(&with("e", r#""deadline":"2026-08-10T07:00:00Z""#), []);
    world.ports.queue.purge();
    // No worker runs; the reconciler alone ticks every minute.
    for _ in 0..61 {
        world.clock.advance(DurationMs::from_secs(60));
        world.reconcile();
    }
    let record = world.record(&id);
    assert_eq!(record.state, State::Expired);
    let deadline = record.delivery.deadline.unwrap();
    assert!(record.ended_at.unwrap().since(deadline) <= DurationMs::from_secs(60));
    assert!(world.ports.recipient.requests().is_empty());
    assert_eq!(world.ports.queue.dead_letters().len(), 1);
}

#[test]
fn c107_jitter_spreads_over_the_whole_ceiling_and_never_passes_it() {
    let backoff = PolicyTerms::default().backoff;
    let attempt = AttemptNumber::after(14);
    let cap = backoff.max.as_ms();
    assert_eq!(backoff.delay(attempt, 0.0), DurationMs::ZERO, "full jitter may draw nothing at all");
    assert!(backoff.delay(attempt, 0.999_999_999).as_ms() < cap);
    let mut lots = Lots::new(107);
    let draws: Vec<u64> = (0..100_000).map(|_| backoff.delay(attempt, lots.unit()).as_ms()).collect();
    let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
    assert!((0.45..0.55).contains(&(mean / cap as f64)), "mean {mean} of {cap}");
    assert!(draws.iter().all(|ms| *ms < cap));
}

#[test]
fn a_wake_up_that_comes_early_waits_once_more_and_claims_nothing() {
    let world = World::new();
    let id = world.published(&event("e"), [Reaction::answer(503).asking("300")]);
    let first = world.receive().remove(0);
    world.work(&first);
    let (message_id, body, _) = world.ports.queue.messages().remove(0);
    let before = world.record(&id);
    world.consume(&message_id, &body);
    assert_eq!(world.record(&id), before, "a wait is no write, no claim and no attempt");
    assert_eq!(world.ports.queue.messages().len(), 2, "a fresh delayed wake-up");
    world.work_until_quiet();
    assert_eq!(world.record(&id).attempts_made, 2);
}

#[test]
fn attempts_are_counted_in_the_ledger_whatever_the_queue_counts() {
    let world = World::new();
    let id = world.published(&event("e"), []);
    // A throttled poll: received again and again, never worked for.
    for _ in 0..20 {
        assert_eq!(world.receive().len(), 1);
        world.clock.advance(DurationMs::from_secs(61));
    }
    world.work_until_quiet();
    assert_eq!((world.record(&id).state, world.record(&id).attempts_made), (State::Succeeded, 1));
}
