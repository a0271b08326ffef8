//! What a tick of the reconciler does about what is held: turns of the destinations, and the room of a budget.

use std::sync::Arc;

use waybill_domain::budget::Budget;
use waybill_domain::destination::Destination;
use waybill_domain::hold::HoldRule;
use waybill_domain::time::DurationMs;
use waybill_service::ports::{Clock as _, Ports};
use waybill_service::reconcile::{Reconciler, TickLimits, TickReport};
use waybill_testkit::dice::FixedDice;
use waybill_testkit::faults::{Stage, Staged};

use crate::losses::Refusing;
use crate::ticks::{MINUTE, NOTHING, counts, held, tick};
use crate::world::{World, id_of, with};

#[test]
fn within_a_budget_as_many_go_as_it_has_room_for_while_there_is_time() {
    for (left_s, refuses, lifted, failed) in [(60, false, 4, 0), (60, true, 0, 4), (2, false, 0, 0)] {
        let mut world = World::new();
        held(&mut world, 12, "");
        world.config.holds.clear();
        let world = world.with("accounting", |destination| destination.budget = Budget::of(Some(4), None));
        let until = Some(world.clock.now().plus(DurationMs::from_secs(left_s)));
        let limits = TickLimits { until, ..TickLimits::default() };
        // What is due is listed, the destinations are, and then the time may be up: a second each.
        let pace = DurationMs::from_secs(u64::from(left_s == 2));
        let ledger = Staged::new(world.ports.ledger.clone(), &Stage::slow(&world.clock, pace));
        world.ports.queue.purge();
        let report = match refuses {
            true => tick(&world, &ledger, &Refusing(&world.ports.queue), limits),
            false => tick(&world, &ledger, &world.ports.queue, limits),
        };
        let name = format!("{left_s} s left, the queue refuses: {refuses}");
        assert_eq!((report.lifted, report.failed), (lifted, failed), "{name}");
        assert_eq!(world.ports.queue.messages().len(), lifted, "{name}");
    }
}

#[test]
fn within_a_budget_all_of_the_front_is_seen_whatever_keeps_it_back() {
    let mut world = World::new();
    held(&mut world, 12, "");
    let budget = Budget::of(Some(4), None);
    for destination in world.config.destinations.values_mut() {
        let changed = Destination { budget, ..(**destination).clone() };
        *destination = Arc::new(changed);
    }
    let report = tick(&world, &world.ports.ledger, &world.ports.queue, TickLimits::default());
    assert_eq!((report.looked_at, report.held, report.lifted), (10, 10, 0));
}

/// Where the time does not suffice for all, chance says who comes first.
#[test]
fn each_destination_with_something_held_may_be_the_first() {
    for (shown, first) in [(0.0, "accounting"), (0.4, "accounting"), (0.5, "crm"), (0.99, "crm")] {
        let mut world = World::new();
        world.config.holds = vec![HoldRule::All];
        let to_all = with("e", "").replace("\"destination\":\"accounting\",", "");
        assert_eq!(world.publish(&to_all).unwrap().len(), 2);
        world.work_until_quiet();
        world.config.holds.clear();

        // What is due is listed, the destinations are, and the first has its turn: a minute each.
        let ledger = Staged::new(world.ports.ledger.clone(), &Stage::slow(&world.clock, MINUTE));
        let Ports { queue, clock, .. } = &world.ports;
        let dice = FixedDice::showing(shown);
        let reconciler = Reconciler { ledger: &ledger, queue, clock, dice: &dice };
        let until = Some(clock.now().plus(MINUTE.times(4)));
        let limits = TickLimits { until, ..TickLimits::default() };
        let report = world.block(reconciler.tick(&world.config, limits)).unwrap();
        assert_eq!((report.lifted, report.more), (1, true), "{shown}");
        assert!(world.record(&id_of("e", first)).hold.is_none(), "{shown}");
    }
}

#[test]
fn a_destination_that_cannot_be_looked_at_is_counted_as_failed() {
    let mut world = World::new();
    held(&mut world, 1, "");
    // What is due is listed, and the destinations are; nothing further is answered.
    let ledger = Staged::new(world.ports.ledger.clone(), &Stage::dies_after(2));
    let report = tick(&world, &ledger, &world.ports.queue, TickLimits::default());
    assert_eq!(counts(report), TickReport { failed: 1, ..NOTHING });
}
