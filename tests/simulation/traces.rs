//! The traces that broke earlier drafts of the protocol, step by step through the real code.
//!
//! w0 and w1 are workers. m1 is a message, and its duplicate is the same message: acknowledging
//! one deletes both. Where no reconciler ticks, none is needed.

use waybill_domain::delivery::State;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::MessageId;
use waybill_domain::outcome::FailureClass;
use waybill_testkit::faults::{Call, Side};
use waybill_testkit::scripted::Reaction;

use crate::scene::{MINUTE, SECOND, Scene};

/// w0 has received m1 and sent, and was answered so.
fn w0_dies_before(call: Call, answer: u16) -> (Scene, MessageId) {
    let scene = Scene::new(7);
    let m1 = scene.publish();
    scene.react([Reaction::answer(answer)]);
    let mut w0 = scene.worker("w0");
    w0.run_to(call, Side::Before);
    w0.crash();
    (scene, m1)
}

#[test]
fn trace_01_a_duplicate_never_deletes_the_message_of_a_live_claim() {
    let scene = Scene::new(7);
    let m1 = scene.publish();
    let mut w0 = scene.worker("w0");
    w0.run_to(Call::Receive, Side::After);
    w0.run_to(Call::Apply, Side::After);

    scene.world.queue.duplicate(&m1);
    scene.worker("w1").run();
    assert!(scene.world.queue.holds(&m1), "w1 deleted the message that w0's claim works for");

    w0.crash();
    scene.work_until_empty();
    scene.assert_ended(State::Succeeded);
    assert_eq!(scene.record().attempts_made, 2, "the interrupted attempt counts");
}

#[test]
fn trace_02_the_copy_that_the_record_keeps_repeats_the_hand_off_of_a_retry() {
    let (scene, m1) = w0_dies_before(Call::Send, 500);
    assert_eq!(scene.record().state, State::Retryable);

    scene.world.queue.duplicate(&m1);
    let mut w1 = scene.worker("w1");
    w1.run_to(Call::Send, Side::After);
    w1.run();
    assert!(!scene.world.queue.holds(&m1));
    scene.work_until_empty();
    scene.assert_ended(State::Succeeded);
    assert_eq!(scene.requests(), 2);
}

#[test]
fn trace_02_the_copy_that_the_record_keeps_tells_the_dlq_of_a_dead_letter() {
    let (scene, m1) = w0_dies_before(Call::Bury, 400);
    assert_eq!((scene.record().state, scene.told()), (State::DeadLettered, 0));

    scene.world.queue.duplicate(&m1);
    scene.worker("w1").run();
    scene.assert_ended(State::DeadLettered);
}

#[test]
fn trace_03_a_wake_up_for_an_older_attempt_never_claims() {
    let scene = Scene::new(7);
    let m1 = scene.publish();
    scene.react([Reaction::answer(500)]);
    // w1 has the duplicate in hand before w0 settles attempt 1.
    let mut w0 = scene.worker_with("w0", &m1);
    scene.world.queue.duplicate(&m1);
    let mut w1 = scene.worker_with("w1", &m1);
    w0.run_to(Call::Send, Side::Before);

    w1.run_to(Call::Load, Side::After);
    assert!(scene.record().claim.is_none());
    // As m1's copy it owes the hand-off, and nothing more: it is for attempt 1.
    w1.run_to(Call::Send, Side::After);
    assert!(scene.record().claim.is_none(), "the duplicate of m1 claimed attempt 2");
    w0.run_to(Call::Acknowledge, Side::After);
    assert!(!scene.world.queue.holds(&m1));
    w1.crash();
    w0.run();

    scene.work_until_empty();
    scene.assert_ended(State::Succeeded);
    assert_eq!(scene.requests(), 2, "two wake-ups for attempt 2 make one request");
}

#[test]
fn trace_04_who_settles_an_interrupted_attempt_owes_the_hand_off() {
    let scene = Scene::new(1);
    let m1 = scene.publish();
    let mut w0 = scene.worker("w0");
    w0.run_to(Call::Apply, Side::After);
    w0.crash();
    assert!(scene.world.queue.lose(&m1));

    scene.pass_the_lease();
    scene.pass(MINUTE.times(5));
    assert_eq!(scene.tick().woken, 1);
    scene.worker("w1").run();
    assert_eq!(scene.record().dead_letter_reason(), Some(DeadLetterReason::AttemptsExhausted));
    assert_eq!(
        scene.record().last_failure.as_ref().map(|last| last.failure.class),
        Some(FailureClass::Interrupted)
    );
    scene.assert_ended(State::DeadLettered);
}

#[test]
fn trace_05_the_reconciler_releases_a_hold_that_was_lifted_while_it_was_written() {
    let scene = Scene::new(7);
    scene.publish();
    scene.world.hold(vec![HoldRule::All]);
    let mut w0 = scene.worker("w0");
    w0.run_to(Call::Apply, Side::Before);
    // The operator lifts, and finds nothing held.
    scene.world.hold(Vec::new());
    assert_eq!(scene.tick().lifted, 0);
    w0.run();
    assert!(scene.record().hold.is_some());
    assert_eq!(scene.world.queue.messages(), [], "a held delivery has no message");

    assert_eq!(scene.tick().lifted, 1);
    scene.work_until_empty();
    scene.assert_ended(State::Succeeded);
}

#[test]
fn trace_06_a_hold_keeps_the_due_time_that_the_recipient_asked_for() {
    let scene = Scene::new(7);
    scene.publish();
    scene.react([Reaction::answer(429).asking("300")]);
    scene.worker("w0").run();
    let due_at = scene.record().due_at;
    assert_eq!(due_at, scene.now().plus(SECOND.times(300)));

    scene.world.hold(vec![HoldRule::All]);
    let wake_up = scene.newest_message();
    scene.world.queue.hurry(&wake_up);
    scene.worker("w1").run();
    assert!(scene.record().hold.is_some());
    scene.world.hold(Vec::new());
    assert_eq!(scene.tick().lifted, 1);
    scene.work_until_empty();

    scene.assert_ended(State::Succeeded);
    let requests = scene.world.recipient.requests();
    assert!(requests[1].at >= due_at, "sent at {}, and asked to wait until {due_at}", requests[1].at);
}

#[test]
fn trace_07_a_settle_whose_claim_is_still_ours_is_made_again() {
    let scene = Scene::new(7);
    scene.publish();
    scene.react([Reaction::answer(200).taking(SECOND)]);
    let mut w0 = scene.worker("w0");
    w0.run_to_wait();
    scene.pass(SECOND);
    w0.run_to(Call::Apply, Side::Before);

    // The lease lapses, the look comes, and the reconciler moves the revision.
    scene.pass(MINUTE.times(6));
    let before = scene.record().revision;
    assert_eq!(scene.tick().woken, 1);
    assert!(scene.record().revision > before && scene.record().claim.is_some());
    w0.run();

    assert_eq!(scene.record().state, State::Succeeded, "the success was taken for landed and lost");
    scene.work_until_empty();
    scene.assert_ended(State::Succeeded);
    assert_eq!(scene.requests(), 1);
}

#[test]
fn trace_08_a_parked_delivery_inside_the_window_is_woken_once() {
    let scene = Scene::new(7);
    scene.publish();
    scene.react([Reaction::answer(503).asking("1200")]);
    scene.worker("w0").run();
    assert_eq!(scene.world.queue.messages(), [], "1,200 s is beyond the queue's window: parked");

    let mut woken = 0;
    for _ in 0..20 {
        scene.pass(MINUTE);
        woken += scene.tick().woken;
    }
    assert_eq!(woken, 1);
    scene.work_until_empty();
    scene.assert_ended(State::Succeeded);
}

#[test]
fn trace_08_two_reconcilers_at_once_wake_a_delivery_once() {
    let scene = Scene::new(7);
    let m1 = scene.publish();
    scene.world.queue.lose(&m1);
    scene.pass(MINUTE.times(6));
    let clock = scene.world.right_clock();
    let (mut r0, _) = scene.world.reconciler("r0", &clock, 1, Default::default());
    let (mut r1, report) = scene.world.reconciler("r1", &clock, 2, Default::default());
    r0.run_to(Call::Load, Side::After);
    r1.run_to(Call::Load, Side::After);
    r0.run();
    r1.run();
    assert_eq!(report.lock().unwrap().as_ref().unwrap().as_ref().unwrap().raced, 1);
    assert_eq!(scene.world.queue.messages().len(), 1);
}

#[test]
fn trace_09_only_copies_for_the_attempt_that_is_due_wait() {
    let scene = Scene::new(7);
    for _ in 0..3 {
        scene.publish();
    }
    assert_eq!(scene.world.queue.messages().len(), 3);
    scene.react([Reaction::answer(503).asking("60")]);
    scene.worker("w0").run();
    // Two early copies are left, and the wake-up of attempt 2.
    scene.worker("w1").run();
    scene.worker("w2").run();
    assert_eq!(scene.world.queue.messages().len(), 1, "a copy for attempt 1 waited for attempt 2");
    scene.work_until_empty();
    scene.assert_ended(State::Succeeded);
    assert_eq!(scene.requests(), 2);
}

#[test]
fn trace_10_a_dead_letter_whose_copy_was_lost_is_told_by_the_reconciler() {
    let (scene, m1) = w0_dies_before(Call::Bury, 400);
    scene.world.queue.lose(&m1);
    assert!(!scene.record().dlq_told);

    scene.pass(MINUTE.times(6));
    assert_eq!(scene.tick().told, 1);
    scene.assert_ended(State::DeadLettered);
    assert_eq!(scene.tick().looked_at, 0, "nothing is left to be looked after");
}

#[test]
fn trace_10_a_dead_letter_whose_copy_took_the_console_s_way_is_told_by_the_reconciler() {
    let (scene, m1) = w0_dies_before(Call::Bury, 400);
    assert!(scene.world.queue.move_natively(&m1));
    scene.world.queue.redrive_all_from_console();
    scene.worker("w1").run();
    assert_eq!((scene.world.queue.messages().len(), scene.told()), (0, 0));

    scene.pass(MINUTE.times(6));
    assert_eq!(scene.tick().told, 1);
    scene.assert_ended(State::DeadLettered);
}
