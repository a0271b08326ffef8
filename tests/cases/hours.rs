//! Hours of virtual time: a queue that loses and doubles messages, long waits, and clocks that are wrong.

use waybill_domain::delivery::State;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::DeliveryId;
use waybill_domain::policy::{Policy, PolicyTerms};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::Clock as _;
use waybill_testkit::dice::Lots;
use waybill_testkit::scripted::Reaction;

use crate::site::{MINUTE, Mischief, Site};
use crate::world::{event, key, with};

const HOUR: DurationMs = DurationMs::from_secs(3600);

#[test]
fn a_queue_that_loses_and_doubles_every_tenth_message_for_an_hour_loses_no_delivery() {
    let mut site = Site::new(0, 0);
    site.mischief = |n| match n % 10 {
        3 => Mischief::Lost,
        8 => Mischief::Doubled,
        _ => Mischief::None,
    };
    let begin = site.clock().now();
    let mut lots = Lots::new(10);
    let mut published = Vec::new();
    for n in 0..360_u64 {
        let at = begin.plus(DurationMs::from_secs(10 * n));
        site.run_until(at);
        let deadline =
            (n % 3 == 0).then(|| site.clock().now().plus(DurationMs::from_secs(30 + lots.below(3000))));
        let fields = deadline.map_or(String::new(), |at| format!("\"deadline\":\"{at}\""));
        let failures = lots.below(5);
        let reactions: Vec<Reaction> = (0..failures)
            .map(|_| match lots.below(4) {
                0 => Reaction::answer(503),
                1 => Reaction::answer(429).asking("40"),
                2 => Reaction::lost_after().applying(),
                _ => Reaction::lost_before(),
            })
            .collect();
        published.push((site.publish(&with(&format!("e{n}"), &fields), reactions), deadline));
    }
    site.run_until(begin.plus(HOUR));
    let messages_of_the_hour = site.sent;
    assert!(messages_of_the_hour > 700, "{messages_of_the_hour}");
    // The faults go on while the rest ends.
    site.run_until(begin.plus(HOUR.times(26)));

    let mut ended = [0; 3];
    for (id, deadline) in &published {
        let record = site.record(id);
        match record.state {
            State::Succeeded => ended[0] += 1,
            State::Expired => ended[1] += 1,
            State::DeadLettered => ended[2] += 1,
            open => panic!("{id} is still {open}: {record:?}"),
        }
        let requests = site.world.ports.recipient.requests();
        for request in requests.iter().filter(|request| request.delivery_id == *id) {
            assert!(deadline.is_none_or(|deadline| request.at < deadline), "{id}: sent at {}", request.at);
        }
        assert!(record.state == State::Succeeded || record.dlq_told, "{id}");
        assert!(
            deadline.is_some() || record.state == State::Succeeded,
            "{id} had all the time there is: {record:?}"
        );
        let numbers: Vec<u32> =
            requests.iter().filter(|r| r.delivery_id == *id).map(|r| r.attempt.get()).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{id}: no attempt is made twice: {numbers:?}");
        assert!(site.world.ports.recipient.effects(id) <= 1);
    }
    assert!(ended[0] > 300, "{ended:?}");
    assert!(site.worker.queue.messages().is_empty());
}

/// A delivery that the recipient wants to see again in five hours, and when that was asked.
fn five_hours(site: &mut Site) -> (DeliveryId, TimeMs) {
    let id = site.publish(&event("e"), [Reaction::answer(429).asking("18000")]);
    // A worker whose clock is slow waits for what is due by the publisher's.
    site.run_until(site.clock().now().plus(MINUTE.times(3)));
    assert_eq!(site.record(&id).attempts_made, 1);
    (id, site.world.ports.recipient.requests()[0].at)
}

#[test]
fn a_wait_of_five_hours_fires_within_a_minute_through_no_more_wake_ups_than_planned() {
    let mut site = Site::new(0, 0);
    let (id, begin) = five_hours(&mut site);
    site.run_until(begin.plus(HOUR.times(6)));
    let sent = site.sent_after(&id, begin);
    assert_eq!(sent.len(), 2);
    assert!((HOUR.times(5)..=HOUR.times(5).plus(MINUTE)).contains(&sent[1]), "{sent:?}");
    assert_eq!(site.sent, 2, "the publish's, and one when it came within the queue's window");
    assert_eq!((site.record(&id).attempts_made, site.record(&id).state), (2, State::Succeeded));
}

#[test]
fn a_wait_of_five_hours_fires_also_when_the_queue_is_purged_in_between() {
    for (purged_after_minutes, latest) in [
        // Parked: the queue holds nothing of it.
        (120, HOUR.times(5).plus(MINUTE)),
        // Its wake-up is in the queue already, and is lost with it: found past its due time, after the
        // patience of a second look.
        (290, HOUR.times(5).plus(MINUTE.times(11))),
    ] {
        let mut site = Site::new(0, 0);
        let (id, begin) = five_hours(&mut site);
        site.run_until(begin.plus(MINUTE.times(purged_after_minutes)));
        site.worker.queue.purge();
        assert_eq!(site.record(&id).attempts_made, 1, "no wake-up was an attempt");
        site.run_until(begin.plus(HOUR.times(7)));
        let sent = site.sent_after(&id, begin);
        assert_eq!(sent.len(), 2, "purged after {purged_after_minutes} minutes");
        assert!((HOUR.times(5)..=latest).contains(&sent[1]), "{purged_after_minutes}: {}", sent[1]);
        assert!(site.sent <= 3);
        assert_eq!(site.record(&id).attempts_made, 2);
    }
}

const TWO_MINUTES_MS: i64 = 120_000;

#[test]
fn waits_and_deadlines_under_clocks_that_are_two_minutes_off() {
    for (worker_ms, reconciler_ms) in [
        (TWO_MINUTES_MS, 0),
        (-TWO_MINUTES_MS, 0),
        (0, TWO_MINUTES_MS),
        (0, -TWO_MINUTES_MS),
        (TWO_MINUTES_MS, -TWO_MINUTES_MS),
        (-TWO_MINUTES_MS, TWO_MINUTES_MS),
    ] {
        let says = format!("worker {worker_ms} ms, reconciler {reconciler_ms} ms off");
        let mut site = Site::new(worker_ms, reconciler_ms);
        let (id, begin) = five_hours(&mut site);
        let deadline = begin.plus(HOUR);
        let json = with("d", &format!("\"deadline\":\"{deadline}\""));
        let busy: Vec<Reaction> = (0..7).map(|_| Reaction::answer(503).asking("600")).collect();
        let hurried = site.publish(&json, busy);
        site.run_until(begin.plus(HOUR.times(6)));

        let sent = site.sent_after(&id, begin);
        let due = HOUR.times(5);
        // As far off as the two clocks are from each other and from the truth, and no further.
        let off = DurationMs::from_ms(worker_ms.unsigned_abs() + reconciler_ms.unsigned_abs());
        let earliest = DurationMs::from_ms(due.as_ms() - off.as_ms());
        assert_eq!(sent.len(), 2, "{says}");
        assert!((earliest..=due.plus(off).plus(MINUTE)).contains(&sent[1]), "{says}: {}", sent[1]);
        assert_eq!(site.record(&id).attempts_made, 2, "{says}: a wait is no attempt");

        let requests = site.world.ports.recipient.requests();
        for request in requests.iter().filter(|request| request.delivery_id == hurried) {
            assert!(request.at_sender < deadline, "{says}: sent at {} by its own clock", request.at_sender);
        }
        let record = site.record(&hurried);
        assert!(!record.state.is_open() && record.dlq_told, "{says}: {record:?}");
        assert!(record.attempts_made >= 4, "{says}: {}", record.attempts_made);
    }
}

#[test]
fn waits_and_deadlines_under_a_clock_that_jumps() {
    for seed in 0..40 {
        let mut lots = Lots::new(seed);
        let mut site = Site::new(0, 0);
        let (id, begin) = five_hours(&mut site);
        let deadline = begin.plus(HOUR);
        let json = with("d", &format!("\"deadline\":\"{deadline}\""));
        let busy: Vec<Reaction> = (0..7).map(|_| Reaction::answer(503).asking("400")).collect();
        let hurried = site.publish(&json, busy);
        for quarter in 1..=32 {
            site.run_until(begin.plus(MINUTE.times(15 * quarter)));
            site.worker.clock.jump_to(lots.between(-TWO_MINUTES_MS, TWO_MINUTES_MS));
            site.reconciler.jump_to(lots.between(-TWO_MINUTES_MS, TWO_MINUTES_MS));
        }
        let sent = site.sent_after(&id, begin);
        assert_eq!((sent.len(), site.record(&id).attempts_made), (2, 2), "seed {seed}");
        let (earliest, latest) = (MINUTE.times(298), MINUTE.times(303));
        assert!((earliest..=latest).contains(&sent[1]), "seed {seed}: {}", sent[1]);
        let requests = site.world.ports.recipient.requests();
        for request in requests.iter().filter(|request| request.delivery_id == hurried) {
            assert!(request.at_sender < deadline, "seed {seed}: {}", request.at_sender);
        }
        assert!(!site.record(&hurried).state.is_open(), "seed {seed}");
        assert!(site.sent < 40, "seed {seed}: {} wake-ups", site.sent);
    }
}

/// What waits or ends by the clock beside a `Retry-After`: what may not be sent yet, what is given up after
/// its horizon, and what nobody wakes before its deadline.
#[test]
fn parking_horizons_and_lost_wake_ups_under_clocks_that_are_off_or_jump() {
    let steady =
        [(0, 0), (TWO_MINUTES_MS, 0), (-TWO_MINUTES_MS, 0), (0, TWO_MINUTES_MS), (0, -TWO_MINUTES_MS)];
    let steady = steady.into_iter().map(|off| (off, None));
    let jumping = (0..20).map(|seed| ((0, 0), Some(seed)));
    for ((worker_ms, reconciler_ms), jumps) in steady.chain(jumping) {
        let says = format!("worker {worker_ms} ms, reconciler {reconciler_ms} ms off, jumps {jumps:?}");
        let mut site = Site::new(worker_ms, reconciler_ms);
        let terms = PolicyTerms { horizon: HOUR.times(2), max_attempts: 100, ..PolicyTerms::default() };
        site.world.change("accounting", |d| d.policy = Policy::new(terms).unwrap());
        let begin = site.clock().now();
        let parked_until = begin.plus(HOUR.times(5));
        let parked = site.publish(&with("parked", &format!("\"not_before\":\"{parked_until}\"")), []);
        let hopeless =
            site.publish(&event("hopeless"), (0..100).map(|_| Reaction::answer(503).asking("300")));
        let deadline = begin.plus(MINUTE.times(3));
        let lost = site.publish(&with("lost", &format!("\"deadline\":\"{deadline}\"")), []);
        let (newest, ..) = site.worker.queue.messages().pop().unwrap();
        assert!(site.worker.queue.lose(&newest));
        let mut lots = jumps.map(Lots::new);
        for quarter in 1..=24 {
            if let Some(lots) = &mut lots {
                site.worker.clock.jump_to(lots.between(-TWO_MINUTES_MS, TWO_MINUTES_MS));
                site.reconciler.jump_to(lots.between(-TWO_MINUTES_MS, TWO_MINUTES_MS));
            }
            site.run_until(begin.plus(MINUTE.times(15 * quarter)));
        }

        let off = MINUTE.times(2);
        let around = |at: TimeMs| at.minus(off)..=at.plus(off).plus(MINUTE);
        let sent = site.sent_after(&parked, begin);
        assert_eq!(sent.len(), 1, "{says}");
        assert!(around(parked_until).contains(&begin.plus(sent[0])), "{says}: {}", sent[0]);
        assert_eq!((site.record(&parked).state, site.record(&parked).attempts_made), (State::Succeeded, 1));

        let given_up = site.record(&hopeless);
        assert_eq!(given_up.dead_letter_reason(), Some(DeadLetterReason::HorizonReached), "{says}");
        assert!(given_up.ended_at.unwrap() <= *around(given_up.horizon_at).end(), "{says}: {given_up:?}");
        assert!(given_up.attempts_made >= 10, "{says}: {}", given_up.attempts_made);
        let requests = site.world.ports.recipient.requests();
        for request in requests.iter().filter(|request| request.delivery_id == hopeless) {
            assert!(request.at_sender < given_up.horizon_at, "{says}: sent at {}", request.at_sender);
        }

        let expired = site.record(&lost);
        assert_eq!((expired.state, expired.attempts_made), (State::Expired, 0), "{says}");
        assert!(around(deadline).contains(&expired.ended_at.unwrap()), "{says}: {expired:?}");
        assert!(expired.dlq_told && site.sent_after(&lost, begin).is_empty(), "{says}");
    }
}

/// C109: after a release the numbering goes on, and the budget begins anew; `show` counts them all.
#[test]
fn c109_attempts_number_on_over_every_release_and_no_number_comes_twice() {
    let mut site = Site::new(0, 0);
    let id = site.publish(&event("e"), (0..30).map(|_| Reaction::answer(500)));
    let policy = waybill_domain::policy::PolicyTerms { max_attempts: 5, ..Default::default() };
    let policy = waybill_domain::policy::Policy::new(policy).unwrap();
    site.world.change("accounting", |d| d.policy = policy);
    let look = site.world.config.look_rules(DurationMs::from_secs(900));
    // Published before the policy changed: its first budget is that of its publish, seven.
    for cycle in 0..5 {
        site.run_until(site.clock().now().plus(HOUR));
        let dead = site.record(&id);
        assert_eq!(
            (dead.state, dead.attempts_made, dead.redrives),
            (State::DeadLettered, 7 + 5 * cycle, cycle)
        );
        let now = site.clock().now();
        let release = dead.release(format!("rdr_{cycle}"), &policy, now, now, &look).unwrap();
        site.block(waybill_service::ports::Ledger::apply(&site.worker.ledger, &release)).unwrap();
    }
    site.run_until(site.clock().now().plus(HOUR));
    let requests = site.world.ports.recipient.requests();
    let numbers: Vec<u32> = requests.iter().map(|request| request.attempt.get()).collect();
    assert_eq!(numbers, (1..=31).collect::<Vec<u32>>(), "the 31st is taken");
    assert_eq!(site.record(&id).attempts_made, 31);
    let evidence = site.world.ports.ledger.evidence(&key("acme", &id));
    assert_eq!(evidence.len(), 30, "nothing is erased by a release");
}
