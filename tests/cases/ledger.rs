//! Kind M: idempotency, claims and ledger transitions.

use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::attempt::{Next, Witness};
use waybill_domain::delivery::State;
use waybill_domain::destination::OnAmbiguous;
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::identity::{ConfigRevision, TenantId};
use waybill_domain::outcome::{Applied as Effect, FailureClass};
use waybill_domain::time::DurationMs;
use waybill_service::ports::Ledger;
use waybill_service::publish::PublishError;
use waybill_testkit::scripted::Reaction;

use crate::world::{World, event, with};

#[test]
fn c89_after_a_lost_answer_the_destination_decides() {
    let applied_and_silent = || [Reaction::silence().applying()];
    let world = World::new();
    let id = world.published(&event("e"), applied_and_silent());
    world.work_until_quiet();
    assert_eq!(world.record(&id).state, State::Succeeded);
    assert_eq!(world.ports.recipient.requests().len(), 2, "the same ID again");
    assert_eq!((world.ports.recipient.applications(&id), world.ports.recipient.effects(&id)), (2, 1));
    assert_eq!(world.evidence(&id)[0].failure.applied, Effect::Unknown);

    let world = World::new().with("accounting", |d| d.on_ambiguous = OnAmbiguous::Hold);
    let id = world.published(&event("e"), applied_and_silent());
    world.work_until_quiet();
    world.run_for(DurationMs::from_secs(3600));
    assert_eq!(world.ports.recipient.requests().len(), 1, "a person decides");
    assert_eq!(world.record(&id).dead_letter_reason(), Some(DeadLetterReason::AmbiguousOutcome));
    assert_eq!(world.ports.queue.dead_letters().len(), 1);
}

#[test]
fn c91_the_same_event_with_other_bytes_is_a_conflict_and_changes_nothing() {
    let world = World::new();
    let event = |payload: &str| event("e").replace("{\"n\":1.0}", payload);
    let id = world.published(&event(r#"{"a":1,"b":2}"#), []);
    let stored = world.record(&id);
    for other in [r#"{"b":2,"a":1}"#, r#"{"a":1.0,"b":2}"#, r#"{"a":1, "b":2}"#] {
        let conflict = world.publish(&event(other)).unwrap_err();
        let PublishError::Conflict { stored_sha256, given_sha256, .. } = &conflict else {
            panic!("{conflict}")
        };
        assert_eq!(*stored_sha256, stored.delivery.payload.sha256);
        assert_ne!(stored_sha256, given_sha256);
    }
    let same = world.publish(&event(r#"{"a":1,"b":2}"#)).unwrap();
    assert!(same[0].repeated);
    assert_eq!(world.record(&id), stored);
    world.work_until_quiet();
    assert_eq!(world.ports.recipient.requests().len(), 1);
    assert_eq!(world.ports.recipient.requests()[0].body, r#"{"a":1,"b":2}"#);
}

#[test]
fn c91_of_several_deliveries_none_is_recorded_if_one_conflicts() {
    let world = World::new();
    world.published(&event("e"), []);
    let everywhere = event("e").replace("\"destination\":\"accounting\",", "").replace("1.0", "2.0");
    assert!(matches!(world.publish(&everywhere), Err(PublishError::Conflict { .. })));
    assert_eq!(world.ports.ledger.records().len(), 1);
}

#[test]
fn c93_an_event_without_an_id_is_refused_and_two_ids_are_two_deliveries() {
    // Nothing is derived from the payload: its producer must say which event it is.
    let world = World::new();
    let refused = world.publish(&event("e").replace("\"event_id\":\"e\",", "")).unwrap_err();
    assert!(refused.to_string().starts_with("event_id: is missing"), "{refused}");
    let euro = world.published(&event("e1"), []);
    let dollar = world.published(&event("e2"), []);
    assert_ne!(euro, dollar);
    assert_eq!(world.ports.ledger.records().len(), 2);
}

#[test]
fn a_lapsed_claim_is_an_attempt_whose_effect_is_unknown() {
    let world = World::new();
    let id = world.published(&event("e"), []);
    let message = world.receive().remove(0);
    // The worker is frozen while it sends, for longer than its lease, and never comes back.
    world.ports.recipient.react(&id, [Reaction::answer(200).connecting_for(DurationMs::from_secs(14))]);
    world.dies_after_sending(&message);
    world.clock.advance(DurationMs::from_secs(60));
    world.work_until_quiet();
    let evidence = world.evidence(&id);
    assert_eq!(evidence.len(), 1);
    assert_eq!(evidence[0].witness, Witness::Finder);
    assert_eq!(evidence[0].failure.class, FailureClass::Interrupted);
    assert_eq!(evidence[0].failure.applied, Effect::Unknown);
    assert!(matches!(evidence[0].next, Next::Retry { .. }));
    assert_eq!(world.record(&id).attempts_made, 2);
}

#[test]
fn c125_a_removed_destination_gets_no_more() {
    let removed: fn(&mut World) =
        |world| world.config.destinations.retain(|name, _| name.as_str() != "accounting");
    let of_others: fn(&mut World) = |world| {
        world.change("accounting", |d| d.tenants = vec![TenantId::parse("northwind").unwrap()]);
    };
    for remove in [removed, of_others] {
        let mut world = World::new();
        let id = world.published(&event("e"), [Reaction::answer(500)]);
        let first = world.receive().remove(0);
        world.work(&first);
        remove(&mut world);
        world.work_until_quiet();
        assert_eq!(world.ports.recipient.requests().len(), 1);
        let reason = world.record(&id).dead_letter_reason();
        assert_eq!(reason, Some(DeadLetterReason::DestinationRemoved));
        assert_eq!(world.ports.queue.dead_letters().len(), 1);
    }
}

#[test]
fn c125_a_changed_destination_gets_the_next_attempt_under_its_new_terms() {
    let mut world = World::new();
    let id = world.published(&event("e"), [Reaction::answer(500)]);
    let first = world.receive().remove(0);
    world.work(&first);
    let before = world.config.revision.clone();
    world.config.revision = ConfigRevision::parse("r2").unwrap();
    world.change("accounting", |d| {
        d.url = RecipientUrl::parse("url", "https://new.example.com/in", Locality::PublicOnly).unwrap();
    });
    world.work_until_quiet();
    let requests = world.ports.recipient.requests();
    let hosts: Vec<_> = requests.iter().map(|r| r.url.as_url().host_str().unwrap().to_owned()).collect();
    assert_eq!(hosts, ["accounting.example.com", "new.example.com"], "the same delivery, at the new address");
    assert_eq!(world.evidence(&id)[0].config_revision, before, "evidence names the terms it ran under");
    assert_eq!(world.record(&id).config_revision.as_str(), "r2");
}

#[test]
fn a_payload_that_is_gone_ends_as_a_dead_letter_with_nothing_sent() {
    let world = World::new();
    let id = world.published(&event("e"), []);
    world.ports.ledger.drop_payload(&crate::world::key("acme", &id));
    world.work_until_quiet();
    let reason = world.record(&id).dead_letter_reason();
    assert_eq!(reason, Some(DeadLetterReason::Permanent(FailureClass::PayloadMissing)));
    assert!(world.ports.recipient.requests().is_empty());
}

#[test]
fn a_console_redrive_releases_nothing() {
    let world = World::new();
    let id = world.published(&event("e"), [Reaction::answer(422)]);
    world.work_until_quiet();
    let dead = world.record(&id);
    assert_eq!(dead.state, State::DeadLettered);
    assert_eq!(world.ports.queue.dead_letters().len(), 1);
    world.ports.queue.redrive_all_from_console();
    assert!(world.ports.queue.dead_letters().is_empty());
    world.work_until_quiet();
    assert_eq!(world.ports.queue.dead_letters().len(), 1, "put back");
    assert_eq!(world.record(&id), dead);
    assert_eq!(world.ports.recipient.requests().len(), 1);
}

#[test]
fn c41_a_dead_letter_circles_only_on_command_and_under_a_fresh_budget() {
    let world = World::new();
    let always_500 = std::iter::repeat_n(Reaction::answer(500), 100);
    let id = world.published(&event("e"), always_500);
    world.work_until_quiet();
    for cycle in 1..=3_u32 {
        let dead = world.record(&id);
        assert_eq!((dead.attempts_made, dead.redrives), (7 * cycle, cycle - 1), "c109: the count only grows");
        let policy = world.config.destinations.values().next().unwrap().policy;
        let now = waybill_service::ports::Clock::now(&world.clock);
        let look = world.config.look_rules(DurationMs::from_secs(900));
        let release = dead.release(format!("rdr_{cycle}"), &policy, now, now, &look).unwrap();
        world.block(world.ports.ledger.apply(&release)).unwrap();
        world.run_for(DurationMs::from_secs(20 * 60));
    }
    assert_eq!(world.record(&id).attempts_made, 28);
    let numbers: Vec<u32> = world.evidence(&id).iter().map(|attempt| attempt.number.get()).collect();
    assert_eq!(numbers, (1..=28).collect::<Vec<_>>(), "nothing erased, no number twice");
}

#[test]
fn a_person_is_told_of_every_ending_in_the_dead_letter_queue() {
    let world = World::new();
    let rejected = world.published(&event("e1"), [Reaction::answer(401)]);
    let deadline = with("e2", r#""deadline":"2026-08-10T06:00:10Z""#);
    let expired = world.published(&deadline, [Reaction::answer(503)]);
    let first = world.receive();
    first.iter().for_each(|message| {
        world.work(message);
    });
    world.clock.advance(DurationMs::from_secs(60));
    world.work_until_quiet();
    let buried = world.ports.queue.dead_letters();
    let mut reasons: Vec<_> = buried
        .iter()
        .map(|letter| letter.attributes.iter().find(|(name, _)| *name == "reason").unwrap().1.clone())
        .collect();
    reasons.sort();
    assert_eq!(reasons, ["authentication_rejected", "expired"]);
    assert_eq!(
        world.record(&expired).disposition,
        Some(waybill_domain::ending::Disposition::Ended(Ending::Expired))
    );
    assert!([rejected, expired].iter().all(|id| world.record(id).dlq_told));
}
