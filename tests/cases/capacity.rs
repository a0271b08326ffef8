//! What `waybill capacity` predicts, beside what the real use cases do on a virtual clock: within 15 %.

use waybill_domain::budget::Budget;
use waybill_domain::capacity::Load;
use waybill_domain::delivery::State;
use waybill_domain::destination::EventPattern;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::Clock as _;
use waybill_service::survey::{Asked, MOST, Survey, survey};
use waybill_testkit::scripted::Reaction;

use crate::crew::Crew;
use crate::world::{World, with};

const BASE: Load = Load {
    arrivals_per_s: 0.5,
    outage: DurationMs::from_secs(600),
    service_time: DurationMs::from_secs(2),
    concurrency: 4,
    safe_concurrency: 4,
    rate_per_s: None,
    duplicates_percent: 0.0,
    deadline: DurationMs::from_secs(3600),
};

fn gap(load: &Load) -> DurationMs {
    DurationMs::from_ms((1000.0 / load.arrivals_per_s) as u64)
}

fn world(load: &Load) -> World {
    World::new().with("accounting", |destination| {
        destination.budget = Budget::of(Some(load.concurrency), None);
    })
}

/// The n-th event, with the deadline that belongs to what waits, and answered after the service time; some
/// are asked for a second request.
fn publish(world: &World, load: &Load, n: usize) {
    let took = |status| Reaction::answer(status).taking(load.service_time);
    let every = 100 / load.duplicates_percent.max(1.0) as usize;
    let repeats = load.duplicates_percent > 0.0 && n.is_multiple_of(every);
    let reactions = if repeats { vec![took(500), took(200)] } else { vec![took(200)] };
    let deadline = world.clock.now().plus(load.outage).plus(load.deadline);
    world.published(&with(&format!("e{n}"), &format!(r#""deadline":"{deadline}""#)), reactions);
}

/// The deliveries of an outage, from number `from` on: all are held, and nothing is sent.
fn hold_for_the_outage(world: &mut World, load: &Load, from: usize) -> usize {
    let waiting = world.ports.recipient.requests().len();
    world.config.holds.push(HoldRule::All);
    let backlog = (load.outage.as_ms() / gap(load).as_ms()) as usize;
    let mut crew = Crew::of(world, 200);
    for n in from..from + backlog {
        publish(world, load, n);
        crew.work_until(world.clock.now().plus(gap(load)));
    }
    drop(crew);
    assert_eq!(world.ports.recipient.requests().len(), waiting, "nothing is sent");
    world.config.holds.clear();
    from + backlog
}

/// Works until nothing is left but what has just come in, while deliveries come in from number `came` on.
fn drained_in_s(world: &World, load: &Load, mut came: usize) -> u64 {
    let back = world.clock.now();
    let mut crew = Crew::of(world, 200);
    loop {
        let next = world.clock.now().plus(gap(load));
        publish(world, load, came);
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

/// What the ledger shows: looked at as `waybill capacity --from-ledger` does.
fn surveyed(world: &World, since: TimeMs) -> Survey {
    let destination = DestinationName::parse("accounting").unwrap();
    let tenants = [TenantId::parse("acme").unwrap()];
    let now = world.clock.now();
    let asked = Asked { destination: &destination, tenants: &tenants, since, now };
    world.block(survey(&world.ports.ledger, asked)).unwrap()
}

fn assert_near(name: &str, predicted: f64, seen: f64) {
    assert!((predicted - seen).abs() <= 0.15 * seen.abs(), "{name}: {predicted} predicted, {seen} seen");
}

#[test]
fn a_drain_takes_as_long_as_was_predicted() {
    let rows = [
        ("four at once", BASE),
        ("two at once", Load { concurrency: 2, ..BASE }),
        ("a slow recipient", Load { service_time: DurationMs::from_secs(5), concurrency: 6, ..BASE }),
        ("a quarter more requests", Load { duplicates_percent: 25.0, ..BASE }),
    ];
    for (name, load) in rows {
        let mut world = world(&load);
        let came = hold_for_the_outage(&mut world, &load, 0);
        let predicted_s = load.outlook().drain_ms.unwrap() / 1000;
        assert_near(name, predicted_s as f64, drained_in_s(&world, &load, came) as f64);
    }
}

/// Traffic, an outage, and at its end a look at the ledger: what that predicts is what comes.
#[test]
fn what_the_ledger_shows_predicts_backlog_drain_and_slack() {
    let rows = [
        ("as it comes", BASE),
        ("two at once", Load { concurrency: 2, safe_concurrency: 2, ..BASE }),
        ("a quarter more requests", Load { duplicates_percent: 25.0, ..BASE }),
    ];
    for (name, load) in rows {
        let mut world = world(&load);
        let begin = world.clock.now();
        let mut crew = Crew::of(&world, 200);
        for n in 0..200 {
            publish(&world, &load, n);
            crew.work_until(world.clock.now().plus(gap(&load)));
        }
        drop(crew);
        let came = hold_for_the_outage(&mut world, &load, 200);

        let survey = surveyed(&world, begin);
        let tally = &survey.tally;
        let (arrivals, service) =
            (tally.arrivals_per_s().unwrap(), tally.service_time(load.concurrency).unwrap());
        let duplicates = tally.duplicates_percent().unwrap();
        assert_eq!((survey.looked_at, survey.from), (500, begin), "{name}");
        assert_eq!((survey.more_held, survey.more_wait), (false, false), "{name}");
        assert_eq!((arrivals.over, service.value.mean), (500, load.service_time), "{name}");
        assert_near("arrivals", arrivals.value, load.arrivals_per_s);
        assert!((duplicates.value - load.duplicates_percent).abs() < 1.0, "{name}: {duplicates:?}");
        let backlog = load.outage.as_ms() / gap(&load).as_ms();
        assert!(tally.open().abs_diff(backlog) <= 2, "{name}: {} wait", tally.open());

        let back = world.clock.now();
        let nearest = tally.nearest_limit().unwrap().at;
        let measured = Load {
            arrivals_per_s: arrivals.value,
            outage: DurationMs::from_ms((tally.open() as f64 / arrivals.value * 1000.0) as u64),
            service_time: service.value.place(),
            duplicates_percent: duplicates.value,
            deadline: nearest.since(back),
            ..load
        };
        let outlook = measured.outlook();
        let took_s = drained_in_s(&world, &load, came);
        let slack_s = nearest.since(back.plus(DurationMs::from_secs(took_s))).as_ms() / 1000;
        assert_near(name, outlook.backlog as f64, backlog as f64);
        assert_near(name, outlook.drain_ms.unwrap() as f64 / 1000.0, took_s as f64);
        assert_near(name, outlook.slack_ms.unwrap() as f64 / 1000.0, slack_s as f64);
    }
}

/// 30 within the time that is looked at, and what is older: two that failed and wait for their next attempts,
/// one whose time has not come, one that is held, one that was delivered, and one to somebody else that waits.
#[test]
fn what_waits_is_counted_however_long_ago_it_came() {
    let mut world = World::new();
    let begin = world.clock.now();
    let in_hours = |hours: u64| begin.plus(DurationMs::from_secs(hours * 3600));
    let due = |hours: u64| format!(r#""deadline":"{}""#, in_hours(hours));
    let refusing = || vec![Reaction::answer(503); 20];
    let types = EventPattern::parse("lease.signed").unwrap();
    world.config.holds.push(HoldRule::Type { types, payload_version: None, tenant: None });
    let failed = ["r1", "r2"].map(|n| world.published(&with(n, &due(5)), refusing()));
    world.published(&with("later", &format!(r#"{},"not_before":"{}""#, due(8), in_hours(7))), vec![]);
    world.published(&with("held", &due(6)).replace("lease.paid", "lease.signed"), vec![]);
    world.published(&with("delivered", &due(4)), vec![]);
    world.published(&with("other", &due(3)).replace("accounting", "crm"), refusing());
    Crew::of(&world, 200).work_until(begin.plus(DurationMs::from_secs(1)));

    assert_eq!(failed.map(|id| world.record(&id).state), [State::Retryable; 2]);

    let since = world.clock.now();
    for n in 0..30 {
        world.published(&with(&format!("e{n}"), &due(10)), vec![]);
    }
    let survey = surveyed(&world, since);
    assert_eq!((survey.looked_at, survey.more_held, survey.more_wait), (30, false, false));
    assert_eq!(survey.tally.arrivals_per_s().unwrap().over, 30);
    assert_eq!(survey.tally.open(), 34, "30, and before them two, one and one");
    assert_eq!(survey.tally.nearest_limit().unwrap().at, in_hours(5));
}

/// As many as are read wait for somebody else; of one more nobody knows whether it is ours.
#[test]
fn where_not_all_that_waits_was_read_that_is_told() {
    let world = World::new();
    for n in 0..MOST {
        world.published(&with(&format!("o{n}"), "").replace("accounting", "crm"), vec![]);
    }
    world.clock.advance(DurationMs::from_secs(1));
    let since = world.clock.now();
    assert!(!surveyed(&world, since).more_wait, "all were read");
    world.published(&with("e", ""), vec![]);
    let survey = surveyed(&world, since);
    assert!(survey.more_wait && !survey.more_held);
}
