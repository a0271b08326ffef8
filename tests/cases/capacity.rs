//! What `waybill capacity` predicts, beside what the real use cases do on a virtual clock: within 15 %.

use waybill_domain::budget::Budget;
use waybill_domain::capacity::Load;
use waybill_domain::hold::HoldRule;
use waybill_domain::time::DurationMs;
use waybill_service::ports::Clock as _;
use waybill_testkit::scripted::Reaction;

use crate::crew::Crew;
use crate::world::{World, event};

/// Holds everything for the outage, then works until nothing is left but what has just come in.
fn drained_in_s(load: &Load) -> u64 {
    let mut world = World::new().with("accounting", |destination| {
        destination.budget = Budget::of(Some(load.concurrency), None);
    });
    let every = 100 / load.duplicates_percent.max(1.0) as usize;
    let publish = |world: &World, n: usize| {
        let took = |status| Reaction::answer(status).taking(load.service_time);
        let repeats = load.duplicates_percent > 0.0 && n.is_multiple_of(every);
        let reactions = if repeats { vec![took(500), took(200)] } else { vec![took(200)] };
        world.published(&event(&format!("e{n}")), reactions);
    };
    let gap = DurationMs::from_ms((1000.0 / load.arrivals_per_s) as u64);
    world.config.holds.push(HoldRule::All);
    let backlog = (load.outage.as_ms() / gap.as_ms()) as usize;
    (0..backlog).for_each(|n| publish(&world, n));
    world.work_until_quiet();
    assert_eq!(world.ports.recipient.requests().len(), 0);

    world.config.holds.clear();
    let back = world.clock.now();
    let mut crew = Crew::of(&world, 200);
    let mut came = backlog;
    loop {
        let next = world.clock.now().plus(gap);
        publish(&world, came);
        came += 1;
        crew.work_until(next);
        let requests = world.ports.recipient.requests();
        let begun = requests.iter().filter(|request| request.attempt.get() == 1).count();
        // What came in this very moment may be under way.
        if came <= begun + 2 {
            return world.clock.now().since(back).as_ms() / 1000;
        }
        assert!(world.clock.now().since(back) < DurationMs::from_secs(36_000), "{begun} of {came}");
    }
}

#[test]
fn a_drain_takes_as_long_as_was_predicted() {
    let base = Load {
        arrivals_per_s: 0.5,
        outage: DurationMs::from_secs(600),
        service_time: DurationMs::from_secs(2),
        concurrency: 4,
        safe_concurrency: 4,
        duplicates_percent: 0.0,
        deadline: DurationMs::from_secs(3600),
    };
    let rows = [
        ("four at once", base),
        ("two at once", Load { concurrency: 2, ..base }),
        ("a slow recipient", Load { service_time: DurationMs::from_secs(5), concurrency: 6, ..base }),
        ("a quarter more requests", Load { duplicates_percent: 25.0, ..base }),
    ];
    for (name, load) in rows {
        let predicted_s = load.outlook().drain_ms.unwrap() / 1000;
        let took_s = drained_in_s(&load);
        let off = took_s.abs_diff(predicted_s) * 100 / predicted_s;
        assert!(off <= 15, "{name}: {predicted_s} s predicted, {took_s} s taken");
    }
}
