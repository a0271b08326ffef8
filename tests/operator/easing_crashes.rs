//! Eased holds whose operators, workers and reconcilers die at any call.

use std::num::NonZeroU32;

use serde_json::json;
use waybill_domain::authority::Book;
use waybill_domain::delivery::State;
use waybill_service::acts::Desk;
use waybill_testkit::faults::{Stage, Staged};

use crate::easing::{ease, gated, in_use, lift};
use crate::publishing::{publish, work};
use crate::suspension_crashes::{a_reconciler_dies_after, a_worker_dies_after};

const LIMIT: usize = 2;

/// Who dies, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    Easing,
    FirstRound,
    Work,
    RoundAfterTheLift,
}

#[test]
fn whoever_dies_at_any_call_loses_nothing_exceeds_no_limit_and_enters_each_act_once() {
    for moment in [Moment::Easing, Moment::FirstRound, Moment::Work, Moment::RoundAfterTheLift] {
        let mut calls = 0;
        loop {
            let (world, gate, mut keys) = gated(6);
            let name = format!("{moment:?}, dead after {calls} calls");
            let mut died = false;
            if moment == Moment::Easing {
                let stage = Stage::dies_after(calls);
                let office = Staged::new(world.office.clone(), &stage);
                let desk = Desk { office: &office, clock: &world.clock, dice: &world.ports.dice };
                let to = NonZeroU32::new(LIMIT as u32).unwrap();
                let books = [Book::Across];
                let _ = world.block(desk.ease(&gate, &books, to, &world.config, "maria", "a few first"));
                died = stage.is_over();
                // The operator gives the command again: it is done now, or was before.
                let desk = world.desk();
                world.block(desk.ease(&gate, &books, to, &world.config, "maria", "a few first")).unwrap();
            } else {
                ease(&world, &gate, LIMIT as u32);
            }
            if moment == Moment::FirstRound {
                died = a_reconciler_dies_after(&world, calls);
            }
            world.round();
            assert!(in_use(&world, "books") <= LIMIT, "{name}");
            if moment == Moment::Work {
                died = a_worker_dies_after(&world, calls);
                assert!(in_use(&world, "books") <= LIMIT, "{name}");
            }
            if moment == Moment::RoundAfterTheLift {
                keys.push(publish(&world, "new", json!({})));
                lift(&world, &gate);
                died = a_reconciler_dies_after(&world, calls);
                work(&world, 1);
            }
            for _ in 0..30 {
                world.run_for(60);
                assert!(in_use(&world, "books") <= LIMIT, "{name}");
            }
            assert!(keys.iter().all(|key| world.record(key).state == State::Succeeded), "{name}");
            let sent = world.ports.recipient.requests().len();
            let twice = usize::from(moment == Moment::Work);
            assert!((keys.len()..=keys.len() + twice).contains(&sent), "{name}: {sent} requests");
            if moment != Moment::RoundAfterTheLift {
                lift(&world, &gate);
            }
            let acts = world.acts(&Book::Across);
            assert_eq!(
                acts,
                ["hold_added by maria", "hold_lifted by maria", "hold_lifted by maria"],
                "{name}"
            );
            if !died {
                assert!(calls > 2, "{name}: the test saw nothing");
                break;
            }
            calls += 1;
        }
    }
}
