//! Single moments that earlier builds got wrong, or that are easily got wrong, step by step.

use std::sync::Arc;

use waybill_domain::budget::Budget;
use waybill_domain::delivery::State;
use waybill_domain::destination::Destination;
use waybill_domain::ending::Disposition;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::EventId;
use waybill_domain::time::DurationMs;
use waybill_service::event::Event;
use waybill_service::reconcile::TickLimits;
use waybill_testkit::clock::SkewedClock;
use waybill_testkit::faults::{Actor, Call, Order, Place, Progress, Side};
use waybill_testkit::scripted::Reaction;
use waybill_testkit::simulation::actors::WorkerTerms;

use crate::scene::{BOOKS, MINUTE, SECOND, Scene};

#[test]
fn a_success_that_arrives_after_its_claim_was_lost_overrules_the_interruption() {
    let scene = Scene::new(1);
    let m1 = scene.publish();
    scene.react([Reaction::answer(200).taking(SECOND)]);
    let mut w0 = scene.worker("w0");
    w0.run_to_wait();
    // w0 sleeps past its lease; its copy brings w1, which finds the claim lapsed.
    scene.pass(MINUTE);
    scene.world.queue.hurry(&m1);
    scene.worker("w1").run();
    assert_eq!(scene.record().state, State::DeadLettered);

    w0.run();
    scene.work_until_empty();
    assert_eq!(scene.record().state, State::Succeeded);
    assert!(matches!(scene.record().disposition, Some(Disposition::Delivered { late: true, .. })));
}

#[test]
fn a_worker_that_slept_between_claim_and_first_byte_sends_nothing() {
    let scene = Scene::new(7);
    scene.publish();
    let mut w0 = scene.worker("w0");
    w0.run_to(Call::Request, Side::Before);
    scene.pass(SECOND.times(16));
    w0.run();
    assert_eq!((scene.requests(), scene.record().attempts_made), (0, 0), "what was not sent is no attempt");
    scene.work_until_empty();
    scene.assert_ended(State::Succeeded);
    assert_eq!((scene.requests(), scene.record().attempts_made), (1, 1));
}

#[test]
fn a_store_that_repeats_our_own_write_is_no_lost_race() {
    let scene = Scene::new(7);
    scene.publish();
    let mut w0 = scene.worker("w0");
    for _ in 0..200 {
        let is_write = w0.place() == Some(Place { call: Call::Apply, side: Side::Before });
        if w0.step(if is_write { Order::Twice } else { Order::Go }) == Progress::Done {
            break;
        }
    }
    scene.assert_ended(State::Succeeded);
    assert_eq!((scene.requests(), scene.record().attempts_made), (1, 1));
}

#[test]
fn a_store_that_repeats_the_reconcilers_own_write_is_no_lost_race() {
    let scene = Scene::new(7);
    let deadline = scene.now().plus(MINUTE);
    scene.publish_as(Event { deadline: Some(deadline), ..scene.event() });
    scene.world.queue.purge();
    scene.world.clock.set(deadline);
    let clock = scene.world.right_clock();
    let (mut reconciler, report) = scene.world.reconciler("reconciler", &clock, 2, TickLimits::default());
    for _ in 0..200 {
        let is_write = reconciler.place() == Some(Place { call: Call::Apply, side: Side::Before });
        if reconciler.step(if is_write { Order::Twice } else { Order::Go }) == Progress::Done {
            break;
        }
    }
    let report = report.lock().unwrap().take().unwrap().unwrap();
    assert_eq!((report.ended, report.raced), (1, 0));
    scene.assert_ended(State::Expired);
}

#[test]
fn a_tick_that_stops_at_its_limit_of_due_deliveries_still_sees_every_held_one() {
    let scene = Scene::new(7);
    scene.publish();
    scene.world.hold(vec![HoldRule::All]);
    scene.worker("w0").run();
    scene.world.hold(Vec::new());
    for event_id in ["e2", "e3"] {
        let event_id = EventId::parse(event_id).unwrap();
        scene.publish_as(Event { event_id, ..scene.event() });
    }
    scene.world.queue.purge();
    scene.pass(DurationMs::from_secs(600));

    let clock = scene.world.right_clock();
    let limits = TickLimits { pages: 1, page_size: 1, ..TickLimits::default() };
    let (reconciler, report) = scene.world.reconciler("reconciler", &clock, 1, limits);
    reconciler.run();
    let report = report.lock().unwrap().take().unwrap().unwrap();
    assert_eq!((report.woken, report.lifted, report.more), (1, 1, true));
}

/// A skewed worker meets a wake-up at the edge of the queue's window. The reconciler has moved the
/// look behind the due time already: to park the delivery now would leave it to a rescue.
#[test]
fn a_clock_that_runs_behind_parks_nothing_that_was_woken() {
    let scene = Scene::new(7);
    scene.publish();
    scene.react([Reaction::answer(503).asking("1200")]);
    scene.worker("w0").run();
    let due_at = scene.record().due_at;
    scene.world.clock.set(due_at.minus(SECOND.times(900)));
    assert_eq!(scene.tick().woken, 1);

    let wake_up = scene.newest_message();
    scene.world.queue.duplicate(&wake_up);
    let behind = SkewedClock::of(&scene.world.clock, -2_000);
    scene.world.worker("w1", &behind, 1, WorkerTerms::default()).run();
    assert!(!scene.world.queue.messages().is_empty(), "w1 deleted the wake-up and sent none");
    scene.work_until_empty();
    scene.assert_ended(State::Succeeded);
    let late_by = scene.world.recipient.requests()[1].at.since(due_at);
    assert!(late_by <= SECOND, "sent {late_by} after it was due");
}

#[test]
fn a_release_sends_nothing_before_not_before() {
    let scene = Scene::new(7);
    let not_before = scene.now().plus(MINUTE.times(10));
    scene.publish_as(Event { not_before: Some(not_before), ..scene.event() });
    let books = scene.world.config().destinations.keys().next().cloned().unwrap();
    let before = scene.world.config();
    scene.world.change_config(|config| drop(config.destinations.remove(&books)));
    let wake_up = scene.newest_message();
    scene.world.queue.hurry(&wake_up);
    scene.worker("w0").run();
    assert_eq!(scene.record().state, State::DeadLettered, "{BOOKS} is gone");

    scene.world.change_config(|config| config.destinations = before.destinations.clone());
    scene.world.operator_releasing("operator", &scene.key, "rdr_1").run();
    scene.work_until_empty();
    assert_eq!(scene.record().state, State::Succeeded);
    assert!(scene.world.recipient.requests()[0].at >= not_before);
}

/// Two hands hold one message. The one whose view is older finds it early, sends another wake-up and
/// deletes the message that the other's claim works for; that one dies, and the new wake-up meets the
/// live claim. No message was lost, and yet only the reconciler helps: a deletion cannot be made
/// conditional on what the ledger says by now.
#[test]
fn a_message_deleted_on_an_older_view_is_made_good_by_the_reconciler() {
    let scene = Scene::new(7);
    let due_at = scene.now().plus(SECOND.times(5));
    scene.publish_as(Event { not_before: Some(due_at), ..scene.event() });
    let m1 = scene.newest_message();
    scene.world.queue.hurry(&m1);
    let mut w0 = scene.worker_with("w0", &m1);
    w0.run_to(Call::Send, Side::Before);

    scene.world.clock.set(due_at);
    scene.world.queue.duplicate(&m1);
    let mut w1 = scene.worker_with("w1", &m1);
    w1.run_to(Call::Apply, Side::After);
    w0.run();
    assert!(!scene.world.queue.holds(&m1), "w0 deleted what w1's claim works for");
    w1.crash();
    scene.pass(SECOND.times(5));
    scene.worker("w2").run();
    assert_eq!(scene.world.queue.messages(), [], "the wake-up that w0 sent met the live claim");

    scene.pass(MINUTE.times(6));
    assert_eq!(scene.tick().woken, 1);
    scene.work_until_empty();
    scene.assert_ended(State::Succeeded);
}

#[test]
fn a_payload_that_is_gone_ends_the_delivery_and_sends_nothing() {
    let scene = Scene::new(7);
    scene.publish();
    scene.world.ledger.drop_payload(&scene.key);
    scene.worker("w0").run();
    scene.assert_ended(State::DeadLettered);
    assert_eq!((scene.requests(), scene.record().attempts_made), (0, 1));
    assert_eq!(scene.world.ledger.evidence(&scene.key).len(), 1);
}

/// A worker about to send another delivery, under the only slot of its destination.
fn with_the_only_slot(scene: &Scene) -> Actor {
    scene.world.change_config(|config| {
        for destination in config.destinations.values_mut() {
            let budget = Budget::of(Some(1), None);
            *destination = Arc::new(Destination { budget, ..Destination::clone(destination) });
        }
    });
    scene.publish_as(Event { event_id: EventId::parse("e0").unwrap(), ..scene.event() });
    let mut other = scene.worker("other");
    other.run_to(Call::Request, Side::Before);
    other
}

/// Whoever freed the slot looked before the hold was written, and has not seen it.
#[test]
fn what_is_held_for_a_slot_that_was_just_freed_goes_without_the_reconciler() {
    let scene = Scene::new(7);
    let other = with_the_only_slot(&scene);
    let m1 = scene.publish();
    let mut w0 = scene.worker_with("w0", &m1);
    w0.run_to(Call::Apply, Side::Before);
    other.run();
    w0.run();
    scene.work_until_empty();
    scene.assert_ended(State::Succeeded);
}

/// Whoever is about to hold a delivery is overtaken by one who claims it for the same message: the copy is the
/// claim's by then, and owes its hand-off.
#[test]
fn a_hold_that_came_too_late_acknowledges_nothing() {
    let by_a_person = |scene: &Scene| {
        scene.world.hold(vec![HoldRule::All]);
        None
    };
    let by_a_full_budget = |scene: &Scene| Some(with_the_only_slot(scene));
    type KeepBack<'a> = &'a dyn Fn(&Scene) -> Option<Actor>;
    let rows: [(&str, KeepBack<'_>); 2] =
        [("by a person", &by_a_person), ("by a full budget", &by_a_full_budget)];
    for (name, keep_back) in rows {
        let scene = Scene::new(7);
        let other = keep_back(&scene);
        let m1 = scene.publish();
        let mut w0 = scene.worker_with("w0", &m1);
        w0.run_to(Call::Apply, Side::Before);

        scene.world.hold(Vec::new());
        if let Some(other) = other {
            other.run();
        }
        scene.world.queue.duplicate(&m1);
        let mut w1 = scene.worker_with("w1", &m1);
        w1.run_to(Call::Request, Side::Before);
        w0.run();
        assert!(scene.world.queue.holds(&m1), "held {name}: w0 deleted what w1's claim works for");
    }
}
