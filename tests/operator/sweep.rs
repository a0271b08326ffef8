//! The DLQ shows what the ledger says are dead letters, and nothing else.

use serde_json::json;
use waybill_domain::delivery::State;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::DeliveryKey;
use waybill_domain::order::Decision;
use waybill_domain::redrive::{Reviews, Selection};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::acts::all_open;
use waybill_service::ports::{Burial, Clock as _, Outgoing, Queue as _};
use waybill_service::reconcile::TickLimits;
use waybill_service::sweep::{DeadLetterBox as _, SweepReport, UnknownCopy, sweep, unknown_copies};
use waybill_testkit::scripted::Reaction;

use crate::publishing::{posts, publish, refused, work};
use crate::world::{World, book};

fn swept(world: &World) -> SweepReport {
    let (ledger, queue) = (&world.ports.ledger, &world.ports.queue);
    world.block(sweep(ledger, queue, &world.clock, &world.config_now(), None)).unwrap()
}

fn unknown(world: &World) -> (Vec<UnknownCopy>, bool) {
    world.block(unknown_copies(&world.ports.ledger, &world.ports.queue)).unwrap()
}

/// The deliveries that the DLQ tells of, by the time at which they ended.
fn letters(world: &World) -> Vec<TimeMs> {
    let ended = |body: &str| match waybill_domain::envelope::decode(body) {
        waybill_domain::envelope::Decoded::DeadLetter(letter) => letter.ended_at,
        other => panic!("{other:?}"),
    };
    world.ports.queue.dead_letters().iter().map(|dead| ended(&dead.body)).collect()
}

fn end(world: &World, key: &DeliveryKey, decision: Decision) {
    world.block(world.desk().order_ending(&world.record(key), decision, "maria", "settled")).unwrap();
    carry_out(world);
}

/// Carries out what is ordered, without a look at anything else.
fn carry_out(world: &World) {
    let waybill_service::ports::Ports { ledger, queue, clock, dice, .. } = &world.ports;
    let round = waybill_service::round::Round { ledger, queue, office: &world.office, clock, dice };
    world.block(round.orders(&world.config_now(), TickLimits::default())).unwrap();
}

fn redrive(world: &World) {
    let reviews = Reviews { permanent: Some("credentials corrected".to_owned()), ..Reviews::default() };
    let plan = world.plan(Selection::default(), reviews);
    world.start(&plan, "10/s", None);
    carry_out(world);
}

#[test]
fn a_letter_stays_for_as_long_as_its_delivery_is_that_dead_letter() {
    type Then = fn(&World, &DeliveryKey);
    let kept = SweepReport { looked_at: 1, kept: 1, ..SweepReport::default() };
    let removed = SweepReport { looked_at: 1, removed: 1, ..SweepReport::default() };
    let old_removed = SweepReport { looked_at: 2, kept: 1, removed: 1, ..SweepReport::default() };
    let table: [(&str, Then, SweepReport); 7] = [
        ("it is one still", |_, _| {}, kept),
        ("closed", |world, key| end(world, key, Decision::Close), removed),
        ("resolved", |world, key| end(world, key, Decision::Resolve), removed),
        ("released, not sent yet", |world, _| redrive(world), removed),
        (
            "released and delivered",
            |world, key| {
                redrive(world);
                work(world, 60);
                assert_eq!(world.record(key).state, State::Succeeded);
            },
            removed,
        ),
        (
            "released and refused again: another dead letter",
            |world, key| {
                world.ports.recipient.react(&key.delivery_id, [Reaction::answer(403)]);
                redrive(world);
                work(world, 60);
                assert_eq!(world.record(key).state, State::DeadLettered);
            },
            old_removed,
        ),
        (
            "past its deadline when it was to be released: expired",
            |world, key| {
                world.pass(7200);
                redrive(world);
                assert_eq!(world.record(key).state, State::Expired);
            },
            old_removed,
        ),
    ];
    for (name, then, report) in table {
        let world = World::new();
        let key = refused(&world, "e", json!({ "deadline": "2026-01-01T01:00:00Z" }));
        then(&world, &key);
        assert_eq!(swept(&world), report, "{name}");
        let left = letters(&world);
        assert_eq!(left.len(), report.kept, "{name}");
        assert!(left.iter().all(|ended_at| Some(*ended_at) == world.record(&key).ended_at), "{name}");
        // Whoever sweeps again finds the same, at once: nothing that stays is hidden afterwards.
        let again = SweepReport { looked_at: report.kept, kept: report.kept, ..SweepReport::default() };
        assert_eq!(swept(&world), again, "{name}: again");
    }
}

/// A published delivery whose wake-up the queue has moved into the DLQ by itself.
fn moved_natively(world: &World, event: &str) -> DeliveryKey {
    let key = publish(world, event, json!({ "deadline": "2026-01-03T00:00:00Z" }));
    let (message_id, ..) = world.ports.queue.messages().pop().unwrap();
    assert!(world.ports.queue.move_natively(&message_id));
    key
}

#[test]
fn what_the_queue_moved_by_itself_is_rescued_and_sent_once() {
    let world = World::new();
    let key = moved_natively(&world, "e");
    let before = world.record(&key);
    let report = SweepReport { looked_at: 1, rescued: 1, ..SweepReport::default() };
    assert_eq!(swept(&world), report);
    assert!(world.ports.queue.dead_letters().is_empty());
    assert_eq!(world.ports.queue.messages().len(), 1);
    let after = world.record(&key);
    assert!(after.revision > before.revision, "its look moved before it was woken");
    work(&world, 60);
    assert_eq!((world.record(&key).state, posts(&world, &key)), (State::Succeeded, 1));
}

#[test]
fn a_bad_night_heals_by_itself_within_the_hour() {
    let world = World::new();
    let keys: Vec<DeliveryKey> = (0..30).map(|n| moved_natively(&world, &format!("e{n}"))).collect();
    world.pass(60);
    world.run_for(3600);
    for key in &keys {
        assert_eq!((world.record(key).state, posts(&world, key)), (State::Succeeded, 1));
    }
    world.run_for(3600);
    assert!(world.ports.queue.dead_letters().is_empty());
}

#[test]
fn the_same_wake_up_moved_twice_is_sent_once() {
    let world = World::new();
    let key = moved_natively(&world, "e");
    let body = world.ports.queue.dead_letters()[0].body.clone();
    world.block(world.ports.queue.bury(Burial { body, attributes: Vec::new() })).unwrap();
    assert_eq!(swept(&world).rescued, 2);
    work(&world, 120);
    assert_eq!((world.record(&key).state, posts(&world, &key)), (State::Succeeded, 1));
}

#[test]
fn a_sweeper_that_died_before_it_removed_the_copy_costs_no_second_request() {
    let world = World::new();
    let key = moved_natively(&world, "e");
    let copy = world.ports.queue.dead_letters()[0].body.clone();
    swept(&world);
    // The copy is there again, as it would be had the removal not come about.
    world.block(world.ports.queue.bury(Burial { body: copy, attributes: Vec::new() })).unwrap();
    work(&world, 60);
    let report = SweepReport { looked_at: 1, removed: 1, ..SweepReport::default() };
    assert_eq!(swept(&world), report);
    work(&world, 60);
    assert_eq!(posts(&world, &key), 1);
}

#[test]
fn what_is_held_stays_held_and_its_copy_goes() {
    let world = World::new();
    let key = publish(&world, "e", json!({}));
    world.block(world.desk().place(book("acme"), HoldRule::All, "maria", "bad deployment")).unwrap();
    let body = world.ports.queue.messages()[0].1.clone();
    work(&world, 1);
    assert!(world.record(&key).hold.is_some());
    world.block(world.ports.queue.bury(Burial { body, attributes: Vec::new() })).unwrap();
    swept(&world);
    assert!(world.ports.queue.dead_letters().is_empty());
    assert!(world.ports.queue.messages().is_empty(), "whoever lifts the hold wakes it");
    assert!(world.record(&key).hold.is_some());
}

#[test]
fn what_nobody_knows_stays_and_is_reported() {
    let letter_of_nobody = {
        let elsewhere = World::new();
        refused(&elsewhere, "elsewhere", json!({}));
        elsewhere.ports.queue.dead_letters()[0].body.clone()
    };
    let wakeup_of_nobody = {
        let elsewhere = World::new();
        publish(&elsewhere, "elsewhere", json!({}));
        elsewhere.ports.queue.messages()[0].1.clone()
    };
    let bodies = [
        ("no envelope", "{\"hello\":1}".to_owned(), "undecodable"),
        ("a newer version", r#"{"waybill":99,"kind":"wake_up"}"#.to_owned(), "newer_version"),
        ("a dead letter of an unknown delivery", letter_of_nobody, "unknown"),
        ("a wake-up of an unknown delivery", wakeup_of_nobody, "unknown"),
    ];
    for (name, body, why) in bodies {
        let world = World::new();
        let burial = Burial { body: body.clone(), attributes: vec![("reason", "undecodable".to_owned())] };
        world.block(world.ports.queue.bury(burial)).unwrap();
        let report = SweepReport { looked_at: 1, unknown: 1, ..SweepReport::default() };
        for _ in 0..2 {
            assert_eq!(swept(&world), report, "{name}");
        }
        let (shown, more) = unknown(&world);
        assert_eq!((shown[0].why, shown[0].bytes, shown.len(), more), (why, body.len(), 1, false), "{name}");
        assert_eq!(shown[0].delivery.is_some(), why == "unknown", "{name}: what it names");
        let lying = world.ports.queue.dead_letters();
        assert_eq!((lying.len(), lying[0].body.as_str()), (1, body.as_str()), "{name}");
        assert_eq!(lying[0].attributes, [("reason", "undecodable".to_owned())], "{name}");
        assert!(world.ports.queue.messages().is_empty(), "{name}");
    }
}

#[test]
fn dead_letters_that_the_console_moves_back_are_put_back_and_not_sent() {
    let world = World::new();
    let keys: Vec<DeliveryKey> = (0..3).map(|n| refused(&world, &format!("e{n}"), json!({}))).collect();
    let before: Vec<_> = keys.iter().map(|key| world.record(key)).collect();
    let told: Vec<_> = world.ports.queue.dead_letters().into_iter().map(|dead| dead.body).collect();
    world.ports.queue.redrive_all_from_console();
    assert!(world.ports.queue.dead_letters().is_empty());
    world.run_for(7200);
    let mut again: Vec<_> = world.ports.queue.dead_letters().into_iter().map(|dead| dead.body).collect();
    again.sort_by_key(|body| told.iter().position(|told| told == body));
    assert_eq!(again, told, "as they were");
    assert!(world.ports.queue.messages().is_empty());
    for (key, before) in keys.iter().zip(before) {
        assert_eq!(posts(&world, key), 1, "its first attempt alone");
        assert_eq!(world.record(key), before);
    }
}

#[test]
fn a_letter_that_is_put_back_keeps_what_a_newer_version_wrote_into_it() {
    let world = World::new();
    refused(&world, "e", json!({}));
    let letter = world.ports.queue.dead_letters()[0].body.clone();
    world.ports.queue.redrive_all_from_console();
    world.ports.queue.purge();
    let newer = letter.replacen('{', r#"{"added_later":1,"#, 1);
    let outgoing = Outgoing { body: newer.clone(), delay: DurationMs::ZERO };
    world.block(world.ports.queue.send(outgoing)).unwrap();
    work(&world, 1);
    let lying = world.ports.queue.dead_letters();
    assert_eq!(lying.iter().map(|dead| &dead.body).collect::<Vec<_>>(), [&newer]);
}

/// Puts so many copies into the DLQ that are nobody's.
fn lie_there(world: &World, copies: usize) {
    for n in 0..copies {
        let body = format!("{{\"not\":\"ours {n}\"}}");
        world.block(world.ports.queue.bury(Burial { body, attributes: Vec::new() })).unwrap();
    }
}

#[test]
fn a_sweep_is_bounded_and_says_that_there_is_more() {
    let world = World::new();
    lie_there(&world, 1005);
    let report = swept(&world);
    assert_eq!((report.looked_at, report.unknown, report.more), (1000, 1000, true));
    assert_eq!(world.ports.queue.dead_letters().len(), 1005);
    // Nothing is hidden from a person afterwards.
    let seen = world.block(world.ports.queue.take(2000, DurationMs::from_secs(1))).unwrap();
    assert_eq!(seen.len(), 1005);
}

#[test]
fn a_sweep_takes_nothing_further_once_its_time_is_up() {
    for (left_s, looked_at, more) in [(60, 25, false), (0, 10, true)] {
        let world = World::new();
        lie_there(&world, 25);
        let until = Some(world.clock.now().plus(DurationMs::from_secs(left_s)));
        let (ledger, queue) = (&world.ports.ledger, &world.ports.queue);
        let swept = world.block(sweep(ledger, queue, &world.clock, &world.config, until)).unwrap();
        assert_eq!((swept.looked_at, swept.more), (looked_at, more), "{left_s} s left");
    }
}

#[test]
fn a_look_at_unknown_copies_ends_at_a_thousand_and_says_that_there_may_be_more() {
    for (lying, shown, more) in [(999, 999, false), (1000, 1000, true), (1001, 1000, true)] {
        let world = World::new();
        lie_there(&world, lying);
        let (copies, may_be_more) = unknown(&world);
        assert_eq!((copies.len(), may_be_more), (shown, more), "{lying}");
    }
}

#[test]
fn rounds_sweep_once_an_hour() {
    let world = World::new();
    let key = refused(&world, "e", json!({}));
    end(&world, &key, Decision::Close);
    // A quarter past.
    world.clock.set(TimeMs::from_unix_ms(world.clock.now().as_unix_ms() / 3_600_000 * 3_600_000 + 900_000));
    world.run_for(44 * 60);
    assert_eq!(letters(&world).len(), 1, "not before the hour");
    world.run_for(120);
    assert_eq!(letters(&world).len(), 0, "in the first minute of the hour");
    assert!(world.block(all_open(&world.office)).unwrap().is_empty());
}
