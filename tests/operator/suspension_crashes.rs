//! Suspensions whose workers and reconcilers die at any call.

use waybill_domain::delivery::State;
use waybill_domain::time::DurationMs;
use waybill_service::consume::{Consumer, Incoming};
use waybill_service::ports::{Inbox as _, Ports};
use waybill_service::reconcile::TickLimits;
use waybill_service::round::Round;
use waybill_service::schedule::Learned;
use waybill_testkit::faults::{Stage, Staged};
use waybill_testkit::scripted::Reaction;

use crate::suspended::{LIFTED, SUSPENDED, ruled, to_crm, turns};
use crate::world::{World, book};

/// A worker on a stage of its own works off what is visible. Whether it died.
pub(crate) fn a_worker_dies_after(world: &World, calls: usize) -> bool {
    let stage = Stage::dies_after(calls);
    let ports = Ports {
        ledger: Staged::new(world.ports.ledger.clone(), &stage),
        queue: Staged::new(world.ports.queue.clone(), &stage),
        recipient: world.ports.recipient.clone(),
        clock: world.clock.clone(),
        dice: waybill_testkit::dice::SeededDice::new("mortal", 7),
        desk: Default::default(),
    };
    let config = world.config_now();
    let messages = world.block(world.ports.queue.receive(10, DurationMs::from_secs(60))).unwrap();
    for message in messages {
        let incoming = Incoming { message_id: &message.message_id, body: &message.body };
        let consumer = Consumer { ports: &ports };
        let verdict = world.block(consumer.consume(&config, incoming, DurationMs::from_secs(60)));
        if verdict == waybill_service::consume::Verdict::Acknowledge && !stage.is_over() {
            world.block(world.ports.queue.acknowledge(&message.receipt)).unwrap();
        }
    }
    stage.is_over()
}

pub(crate) fn a_reconciler_dies_after(world: &World, calls: usize) -> bool {
    let stage = Stage::dies_after(calls);
    let Ports { ledger, queue, clock, dice, .. } = &world.ports;
    let (ledger, queue) = (Staged::new(ledger.clone(), &stage), Staged::new(queue.clone(), &stage));
    let office = Staged::new(world.office.clone(), &stage);
    let round = Round { ledger: &ledger, queue: &queue, office: &office, clock, dice };
    let _ = world.block(round.run(&world.config_now(), &Learned::default(), TickLimits::default()));
    stage.is_over()
}

#[test]
fn a_worker_that_dies_anywhere_while_it_counts_or_probes_loses_nothing_and_all_is_entered_once() {
    for budget in [Some(2), None] {
        for during_probe in [false, true] {
            let mut calls = 0;
            loop {
                let world = ruled(Some(2), false, budget);
                turns(&world, Reaction::answer(401));
                let keys: Vec<_> = (0..6).map(|n| to_crm(&world, &format!("e{n}"))).collect();
                let died = if during_probe {
                    world.run_for(60);
                    turns(&world, Reaction::answer(200));
                    world.round();
                    a_worker_dies_after(&world, calls)
                } else {
                    a_worker_dies_after(&world, calls)
                };
                turns(&world, Reaction::answer(401));
                world.run_for(300);
                turns(&world, Reaction::answer(200));
                world.run_for(4 * 3600);
                let name = format!("{budget:?}, during the probe: {during_probe}, dead after {calls} calls");
                let ended = keys.iter().map(|key| world.record(key).state);
                let (done, dead) = ended.fold((0, 0), |(done, dead), state| match state {
                    State::Succeeded => (done + 1, dead),
                    State::DeadLettered => (done, dead + 1),
                    other => panic!("{name}: {other}"),
                });
                // A death may cost the count of what was settled and not told: never more than the worker
                // had at hand.
                assert!(dead >= 2 && done + dead == 6, "{name}: {done} done, {dead} dead");
                let acts = world.acts(&book("acme"));
                let begun = acts.iter().filter(|act| *act == SUSPENDED).count();
                let ended = acts.iter().filter(|act| *act == LIFTED).count();
                assert_eq!((begun, begun + ended), (ended, acts.len()), "{name}: {acts:?}");
                if !died {
                    assert!(calls > 5, "{name}: the test saw nothing");
                    break;
                }
                calls += 1;
            }
        }
    }
}

#[test]
fn a_reconciler_that_dies_anywhere_enters_each_act_once_and_keeps_nothing_back() {
    for budget in [Some(2), None] {
        // Where it enters the beginning, where it chooses the probe, and where it enters the end.
        for moment in 0..3 {
            let mut calls = 0;
            loop {
                let world = ruled(Some(1), false, budget);
                turns(&world, Reaction::answer(401));
                to_crm(&world, "first");
                crate::publishing::work(&world, 0);
                let keys: Vec<_> = (0..4).map(|n| to_crm(&world, &format!("e{n}"))).collect();
                crate::publishing::work(&world, 5);
                if moment >= 1 {
                    world.round();
                    turns(&world, Reaction::answer(200));
                    world.pass(10);
                }
                if moment == 2 {
                    world.round();
                    crate::publishing::work(&world, 60);
                }
                let died = a_reconciler_dies_after(&world, calls);
                turns(&world, Reaction::answer(200));
                world.run_for(900);
                let name = format!("{budget:?}, moment {moment}, dead after {calls} calls");
                for key in &keys {
                    assert_eq!(world.record(key).state, State::Succeeded, "{name}");
                }
                assert_eq!(world.acts(&book("acme")), [SUSPENDED, LIFTED], "{name}");
                assert_eq!(world.ports.recipient.requests().len(), 5, "{name}");
                if !died {
                    assert!(calls > 3, "{name}: the test saw nothing");
                    break;
                }
                calls += 1;
            }
        }
    }
}

#[test]
fn two_reconcilers_at_once_enter_one_act() {
    let world = ruled(Some(1), false, None);
    turns(&world, Reaction::answer(401));
    to_crm(&world, "first");
    crate::publishing::work(&world, 0);
    // The first enters it and dies before it reads on; the second had read before.
    for calls in 0..30 {
        a_reconciler_dies_after(&world, calls);
    }
    assert_eq!(world.acts(&book("acme")), [SUSPENDED]);
}
