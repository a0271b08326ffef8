//! `on_ambiguous = "query"`: the recipient is asked before anything in doubt is sent again.

use waybill_domain::address::Locality;
use waybill_domain::attempt::Phase;
use waybill_domain::delivery::{Record, State};
use waybill_domain::destination::OnAmbiguous;
use waybill_domain::ending::{DeadLetterReason, Disposition};
use waybill_domain::identity::AttemptNumber;
use waybill_domain::look_up::StatusUrl;
use waybill_domain::outcome::{Applied, FailureClass};
use waybill_service::consume::Verdict;
use waybill_testkit::scripted::{LookUpReaction, Reaction};

use crate::world::{World, event};

fn world() -> World {
    World::new().with("accounting", |d| {
        d.on_ambiguous = OnAmbiguous::Query;
        let url = "https://accounting.example.com/status/{event_id}?id={delivery_id}";
        d.status_url = Some(StatusUrl::parse("status_url", url, Locality::PublicOnly).unwrap());
        d.keep_result = true;
    })
}

fn confirmed_by(record: &Record) -> Option<u32> {
    match record.disposition {
        Some(Disposition::Delivered { attempt, late: false, by_look_up: true }) => Some(attempt.get()),
        _ => None,
    }
}

#[test]
fn what_the_recipient_has_applied_is_confirmed_and_not_sent_again() {
    let world = world();
    let id = world.published(&event("e:1"), [Reaction::silence().applying()]);
    world.work_until_quiet();
    let record = world.record(&id);
    assert_eq!((record.state, confirmed_by(&record)), (State::Succeeded, Some(2)));
    assert_eq!(world.ports.recipient.requests().len(), 1);
    let asked = world.ports.recipient.look_ups();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].1.to_string(), format!("https://accounting.example.com/status/e%3A1?id={id}"));
    let result = record.result.as_ref().unwrap();
    assert_eq!(result.bytes, b"looked up: 200", "the look-up's answer is the result");
}

#[test]
fn what_it_has_not_applied_is_sent_in_the_same_attempt() {
    let world = world();
    let id = world.published(&event("e"), [Reaction::silence()]);
    world.work_until_quiet();
    let record = world.record(&id);
    assert_eq!((record.state, confirmed_by(&record)), (State::Succeeded, None));
    let sent: Vec<u32> = world.ports.recipient.requests().iter().map(|r| r.attempt.get()).collect();
    assert_eq!((sent, world.ports.recipient.look_ups().len()), (vec![1, 2], 1));
    assert_eq!(world.ports.recipient.applications(&id), 1);
}

#[test]
fn an_unclear_look_up_uses_up_an_attempt_leaves_evidence_and_is_made_again() {
    let world = world();
    let id = world.published(&event("e"), [Reaction::silence().applying()]);
    world.ports.recipient.react_to_look_ups(&id, [LookUpReaction::Answer(503), LookUpReaction::Silence]);
    world.work_until_quiet();
    let record = world.record(&id);
    assert_eq!((confirmed_by(&record), record.attempts_made), (Some(4), 4));
    assert_eq!(world.ports.recipient.requests().len(), 1);
    let evidence = world.evidence(&id);
    let classes: Vec<_> = evidence.iter().map(|a| (a.failure.class, a.phase, a.failure.applied)).collect();
    let unknown = Applied::Unknown;
    assert_eq!(
        classes,
        [
            (FailureClass::Timeout, Some(Phase::Request), unknown),
            (FailureClass::Unavailable, Some(Phase::LookUp), unknown),
            (FailureClass::Timeout, Some(Phase::LookUp), unknown),
        ]
    );
}

#[test]
fn look_ups_that_stay_unclear_end_with_the_budget_and_nothing_was_sent_twice() {
    let world = world();
    let id = world.published(&event("e"), [Reaction::silence().applying()]);
    world.ports.recipient.react_to_look_ups(&id, [LookUpReaction::Answer(500); 20]);
    world.work_until_quiet();
    let record = world.record(&id);
    assert_eq!(record.dead_letter_reason(), Some(DeadLetterReason::AttemptsExhausted));
    assert_eq!((record.attempts_made, world.ports.recipient.requests().len()), (7, 1));
    assert_eq!(world.ports.recipient.look_ups().len(), 6);
}

#[test]
fn a_failure_that_is_certain_asks_nobody() {
    let world = world();
    let id =
        world.published(&event("e"), [Reaction::answer(503), Reaction::answer(429), Reaction::lost_before()]);
    world.work_until_quiet();
    assert_eq!(world.record(&id).attempts_made, 4);
    assert!(world.ports.recipient.look_ups().is_empty());
}

#[test]
fn an_event_id_that_would_climb_in_the_path_leaves_the_doubt_to_a_person() {
    let world = world();
    let id = world.published(&event(".."), [Reaction::silence().applying()]);
    world.work_until_quiet();
    assert_eq!(world.record(&id).dead_letter_reason(), Some(DeadLetterReason::AttemptsExhausted));
    assert_eq!(world.ports.recipient.requests().len(), 1);
    assert!(
        world.evidence(&id)[1].note.contains("would change its path"),
        "{:?}",
        world.evidence(&id)[1].note
    );
}

/// C89, with a recipient that can be asked: the worker dies in the middle of the POST.
#[test]
fn c89_a_worker_that_died_in_the_ambiguous_moment_is_followed_by_a_look_up() {
    let world = world();
    let id = world.published(
        &event("e"),
        [Reaction::answer(200).taking(waybill_domain::time::DurationMs::from_secs(5))],
    );
    let message = world.receive().remove(0);
    world.dies_after_sending(&message);
    assert_eq!(world.ports.recipient.requests().len(), 1);
    world.clock.set(world.record(&id).claim.as_ref().unwrap().lease_until);
    assert_eq!(world.consume(&message.message_id, &message.body), Verdict::Acknowledge);
    world.work_until_quiet();
    let record = world.record(&id);
    assert_eq!((confirmed_by(&record), world.ports.recipient.requests().len()), (Some(2), 1));
    let interrupted = &world.evidence(&id)[0];
    assert_eq!(
        (interrupted.number, interrupted.failure.class),
        (AttemptNumber::FIRST, FailureClass::Interrupted)
    );
}
