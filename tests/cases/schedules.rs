//! Schedules at work over the ledger: late, twice and never, each window once.

use waybill_domain::address::Locality;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId};
use waybill_domain::schedule::Window;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::Config;
use waybill_service::config_file::{self, bundle};
use waybill_service::ports::Clock as _;
use waybill_service::schedule::standing::standing;
use waybill_service::schedule::{Learned, ScheduleLimits, ScheduleReport, Scheduler};
use waybill_testkit::faults::{Call, Stage, Staged};
use waybill_testkit::scripted::Reaction;

use crate::logged::{logged, messages};
use crate::world::{World, key};

const CONFIG: &str = r#"
[destinations.settlement]
tenants = ["acme", "northwind"]
url = "https://settlement.example.com/reconcile"
secrets = ["env:S"]
schema = "s.json"
keep_result = true

[schedules.nightly]
cron = "30 2 * * *"
timezone = "America/New_York"
tenants = ["acme", "northwind"]
destination = "settlement"
type = "payment.reconciliation_requested"
event_id = "{tenant}:{window}"
catch_up = "7d"
payload = { tenant = "{tenant}", business_date = "{window}", by = ["{schedule}", 7, 1.5, true] }
"#;

const HOUR: DurationMs = DurationMs::from_secs(3600);
const DAY: DurationMs = DurationMs::from_secs(86_400);

fn t(text: &str) -> TimeMs {
    TimeMs::parse("t", text).unwrap()
}

fn config(schema: &str) -> Config {
    let text = bundle(CONFIG, |_| Ok(schema.to_owned())).unwrap();
    config_file::parse(&text, Locality::PublicOnly).unwrap()
}

/// A system whose configuration was applied at the beginning, on 2026-08-10 at 06:00 UTC: half an hour
/// before the schedule fires for the 9th.
fn world() -> World {
    let mut world = World::new();
    world.config = config("{}");
    world.config.applied_at = Some(world.clock.now());
    world
}

fn tick_with(world: &World, learned: &Learned, limits: ScheduleLimits) -> ScheduleReport {
    let ports = &world.ports;
    let scheduler = Scheduler { ledger: &ports.ledger, queue: &ports.queue, clock: &world.clock };
    let (report, lines) = logged(|| world.block(scheduler.tick(&world.config, learned, limits)));
    let has_done_nothing = report == ScheduleReport { windows: report.windows, ..ScheduleReport::default() };
    assert_eq!(messages(&lines).contains(&"scheduled".to_owned()), !has_done_nothing, "{report:?}");
    report
}

/// A tick of a process that has just been started.
fn tick(world: &World) -> ScheduleReport {
    tick_with(world, &Learned::default(), ScheduleLimits::default())
}

fn id(tenant: &str, day: &str) -> DeliveryId {
    DeliveryId::derive(
        &TenantId::parse(tenant).unwrap(),
        &EventId::parse(format!("{tenant}:{day}")).unwrap(),
        &DestinationName::parse("settlement").unwrap(),
    )
}

/// The business days that have a delivery, of the days from the 1st to the 31st of August.
fn published(world: &World, tenant: &str) -> Vec<u32> {
    let has = |day: &u32| {
        let id = id(tenant, &format!("2026-08-{day:02}"));
        world.ports.ledger.peek(&key(tenant, &id)).is_some()
    };
    (1..=31).filter(has).collect()
}

#[test]
fn a_new_schedule_starts_with_its_first_window_after_it_was_applied() {
    let world = world();
    assert_eq!(tick(&world), ScheduleReport { windows: 14, ..ScheduleReport::default() });
    world.clock.set(t("2026-08-10T06:29:59.999Z"));
    assert_eq!(tick(&world).published, 0);
    world.clock.set(t("2026-08-10T06:30:00Z"));
    assert_eq!(tick(&world).published, 2);
    assert_eq!((published(&world, "acme"), published(&world, "northwind")), (vec![9], vec![9]));
    let record = world.ports.ledger.peek(&key("acme", &id("acme", "2026-08-09"))).unwrap();
    assert_eq!(record.delivery.event_type.as_str(), "payment.reconciliation_requested");
    assert_eq!(record.delivery.payload.content_type, "application/json");
    world.work_until_quiet();
    let requests = world.ports.recipient.requests();
    let sent = requests.iter().find(|request| request.delivery_id == id("acme", "2026-08-09")).unwrap();
    assert_eq!(&*sent.body, br#"{"business_date":"2026-08-09","by":["nightly",7,1.5,true],"tenant":"acme"}"#);
}

#[test]
fn what_cannot_be_published_or_asked_for_is_counted_as_failed_and_tried_again() {
    let mut world = world();
    world.clock.set(t("2026-08-10T06:30:00Z"));
    let ledger = Staged::new(world.ports.ledger.clone(), &Stage::dies_after(0));
    let scheduler = Scheduler { ledger: &ledger, queue: &world.ports.queue, clock: &world.clock };
    let tick_of = world.block(scheduler.tick(&world.config, &Learned::default(), ScheduleLimits::default()));
    assert_eq!((tick_of.failed, tick_of.published), (2, 0), "each tenant's");

    let destinations = std::mem::take(&mut world.config.destinations);
    let report = tick(&world);
    assert_eq!((report.failed, report.published), (2, 0), "nobody takes it");
    world.config.destinations = destinations;
    let report = tick(&world);
    assert_eq!((report.failed, report.published), (0, 2));
}

#[test]
fn a_tick_asks_no_more_than_it_may_and_the_next_goes_on_where_it_stopped() {
    let world = world();
    world.clock.set(t("2026-08-10T06:30:00Z"));
    let limits = ScheduleLimits { questions: 3, ..ScheduleLimits::default() };
    let stage = Stage::slow(&world.clock, DurationMs::ZERO);
    let ledger = Staged::new(world.ports.ledger.clone(), &stage);
    let scheduler = Scheduler { ledger: &ledger, queue: &world.ports.queue, clock: &world.clock };
    let learned = Learned::default();
    let mut published = 0;
    for nth in 1..=5 {
        let report = world.block(scheduler.tick(&world.config, &learned, limits));
        published += report.published;
        assert_eq!(stage.calls(Call::Load), (3 * nth).min(14), "tick {nth}");
        assert_eq!(report.more, nth < 5, "tick {nth}");
    }
    assert_eq!(published, 2);
}

#[test]
fn a_trigger_that_comes_twice_or_late_changes_nothing() {
    let world = world();
    world.clock.set(t("2026-08-10T19:00:00Z"));
    let learned = Learned::default();
    let reports: Vec<usize> =
        (0..3).map(|_| tick_with(&world, &learned, ScheduleLimits::default()).published).collect();
    assert_eq!(reports, [2, 0, 0]);
    assert_eq!(tick(&world).published, 0, "another process asks the ledger");
    world.work_until_quiet();
    assert_eq!(world.ports.recipient.requests().len(), 2);
}

/// C115: three nights without a scheduler make three runs, each once; one made by hand adds no second.
#[test]
fn c115_missed_nights_are_made_up_for_once_each() {
    let mut world = world();
    world.clock.set(t("2026-08-10T07:00:00Z"));
    tick(&world);
    assert_eq!(published(&world, "acme"), [9]);
    world.work_until_quiet();
    // Off for three nights; somebody published the second of them by hand, and the restart applied the
    // configuration anew.
    world.clock.set(t("2026-08-13T12:00:00Z"));
    let by_hand = r#"{"event_id":"acme:2026-08-11","tenant":"acme","type":"payment.reconciliation_requested",
        "destination":"settlement","payload":{"tenant":"acme","by_hand":true}}"#;
    world.published(by_hand, []);
    world.config.applied_at = Some(world.clock.now());
    let report = tick(&world);
    assert_eq!((report.published, report.failed), (5, 0));
    assert_eq!(
        (published(&world, "acme"), published(&world, "northwind")),
        (vec![9, 10, 11, 12], vec![9, 10, 11, 12])
    );
    world.work_until_quiet();
    let requests = world.ports.recipient.requests();
    let of_the_11th = requests.iter().filter(|r| r.delivery_id == id("acme", "2026-08-11")).count();
    assert_eq!((of_the_11th, requests.len()), (1, 8));
    assert_eq!(tick(&world).published, 0);
}

#[test]
fn nothing_is_made_up_for_beyond_catch_up() {
    let world = world();
    world.clock.set(t("2026-08-10T07:00:00Z"));
    tick(&world);
    world.clock.set(t("2026-08-26T12:00:00Z"));
    tick(&world);
    assert_eq!(published(&world, "acme"), [9, 19, 20, 21, 22, 23, 24, 25]);
}

#[test]
fn a_tick_stops_at_its_limits_and_the_next_ones_go_on() {
    let world = world();
    world.clock.set(t("2026-08-14T12:00:00Z"));
    let learned = Learned::default();
    let mut done = Vec::new();
    for _ in 0..10 {
        let limits = ScheduleLimits { questions: 8, publishes: 3, until: None };
        let report = tick_with(&world, &learned, limits);
        done.push((report.published, report.more));
        if !report.more {
            break;
        }
    }
    assert_eq!(done.iter().map(|(published, _)| published).sum::<usize>(), 10, "{done:?}");
    assert!(done.len() > 3 && done.iter().all(|(published, _)| *published <= 3), "{done:?}");
    assert_eq!(published(&world, "northwind"), [9, 10, 11, 12, 13]);
    let over = ScheduleLimits { until: Some(world.clock.now()), ..ScheduleLimits::default() };
    assert!(tick_with(&world, &Learned::default(), over).more);
}

#[test]
fn the_ledger_is_asked_once_for_each_window_and_process() {
    let world = world();
    world.clock.set(t("2026-08-12T12:00:00Z"));
    let learned = Learned::default();
    tick_with(&world, &learned, ScheduleLimits::default());
    let none = ScheduleLimits { questions: 0, ..ScheduleLimits::default() };
    assert!(!tick_with(&world, &learned, none).more, "nothing is left to be asked");
    world.clock.advance(DAY);
    assert!(tick_with(&world, &learned, none).more, "a window that is new to it");
}

/// Only asked, never done: what `waybill schedules list` shows.
#[test]
fn a_schedule_s_standing_tells_what_was_last_and_what_is_owed() {
    let world = world();
    let standing_of = |world: &World, tenant: &str| {
        let (ledger, schedule) = (&world.ports.ledger, &world.config.schedules[0]);
        let tenant = TenantId::parse(tenant).unwrap();
        world.block(standing(ledger, &world.config, schedule, &tenant, world.clock.now())).unwrap()
    };
    let days = |windows: &[Window]| -> Vec<String> { windows.iter().map(|w| w.day.to_string()).collect() };
    let before = standing_of(&world, "acme");
    assert_eq!((before.before_it_began, days(&before.owed)), (7, vec![]));
    assert_eq!(before.next.unwrap().window.fires_at, t("2026-08-10T06:30:00Z"));
    assert_eq!(before.jump.unwrap().window.fires_at, t("2027-03-14T07:00:00Z"), "02:30 does not exist then");

    world.clock.set(t("2026-08-10T07:00:00Z"));
    tick(&world);
    world.clock.set(t("2026-08-12T12:00:00Z"));
    let missed = standing_of(&world, "acme");
    assert_eq!(days(&missed.owed), ["2026-08-10", "2026-08-11"]);
    // Of the seven nights within reach the 9th has its delivery, and two are owed.
    assert_eq!(missed.before_it_began, 4);
    assert_eq!(missed.last.as_ref().map(|(window, record)| (window.day.to_string(), record.is_none())), {
        Some(("2026-08-11".to_owned(), true))
    });
    tick(&world);
    let caught_up = standing_of(&world, "northwind");
    assert_eq!((days(&caught_up.owed), caught_up.before_it_began), (vec![], 4));
    let (_, record) = caught_up.last.unwrap();
    assert_eq!(record.unwrap().delivery.id, id("northwind", "2026-08-11"));
}

#[test]
fn a_payload_that_the_schema_refuses_is_a_dead_letter_and_the_others_go() {
    let mut world = world();
    world.config.schemas = config(r#"{"properties": {"tenant": {"enum": ["northwind"]}}}"#).schemas;
    world.clock.set(t("2026-08-10T07:00:00Z"));
    let learned = Learned::default();
    for (published, refused) in [(1, 1), (0, 0)] {
        let report = tick_with(&world, &learned, ScheduleLimits::default());
        assert_eq!((report.published, report.refused, report.failed), (published, refused, 0));
    }
    world.work_until_quiet();
    let dead = world.ports.ledger.peek(&key("acme", &id("acme", "2026-08-09"))).unwrap();
    assert_eq!(dead.dead_letter_reason(), Some(DeadLetterReason::PayloadInvalid));
    assert_eq!((dead.attempts_made, dead.dlq_told), (0, true));
    assert_eq!(world.ports.recipient.requests().len(), 1);
    assert_eq!(world.ports.queue.dead_letters().len(), 1);
}

#[test]
fn a_changed_payload_does_not_publish_a_window_again() {
    let mut world = world();
    world.clock.set(t("2026-08-10T07:00:00Z"));
    tick(&world);
    world.config.schedules[0].payload = serde_json::json!({ "other": "{window}" });
    let report = tick(&world);
    assert_eq!((report.published, report.failed), (0, 0));
}

/// A system in which the nightly schedule has retry rules of its own, and its destination others.
fn with_policy(text: &str) -> World {
    let mut world = world();
    let own = CONFIG.replace("catch_up =", "policy = \"nightly\"\ncatch_up =") + text;
    let text = bundle(&own, |_| Ok("{}".to_owned())).unwrap();
    world.config = config_file::parse(&text, Locality::PublicOnly).unwrap();
    world.config.applied_at = Some(world.clock.now());
    world.clock.set(t("2026-08-10T06:30:00Z"));
    world
}

const NIGHTLY: &str = "[policies.nightly]\nmax_attempts = 3\nbase_delay = \"30s\"\nmax_delay = \"1h\"\n\
                       horizon = \"20h\"\nminimum_window = \"1m\"\n";

/// Half of 30 s and half of 60 s, where jitter always draws half: no worker uses the destination's rules.
#[test]
fn a_schedule_s_policy_counts_for_its_deliveries_and_for_no_others() {
    let world = with_policy(NIGHTLY);
    tick(&world);
    let id = id("acme", "2026-08-09");
    world.ports.recipient.react(&id, (0..9).map(|_| Reaction::answer(503)));
    let record = world.ports.ledger.peek(&key("acme", &id)).unwrap();
    assert_eq!(record.delivery.policy.as_ref().map(|name| name.as_str()), Some("nightly"));
    assert_eq!((record.attempt_limit, record.horizon_at), (3, world.clock.now().plus(HOUR.times(20))));

    let by_hand = r#"{"event_id":"x","tenant":"acme","type":"a.b","destination":"settlement","payload":{}}"#;
    let other = world.published(by_hand, []);
    assert_eq!((world.record(&other).delivery.policy.clone(), world.record(&other).attempt_limit), (None, 7));

    let begin = world.clock.now();
    world.run_for(HOUR);
    assert_eq!(world.sent_after_ms(&id, begin), [0, 15_000, 45_000]);
    let dead = world.ports.ledger.peek(&key("acme", &id)).unwrap();
    assert_eq!(dead.dead_letter_reason(), Some(DeadLetterReason::AttemptsExhausted));
}

#[test]
fn a_redrive_grants_the_budget_that_the_schedule_s_policy_has_by_then() {
    let mut world = with_policy(NIGHTLY);
    tick(&world);
    let id = id("acme", "2026-08-09");
    world.ports.recipient.react(&id, (0..3).map(|_| Reaction::answer(503)));
    world.run_for(HOUR);
    // What counts is the policy of that name as it is configured now; if it is gone, the destination's.
    for (policies, limit) in [(NIGHTLY.replace('3', "4"), 4), (String::new(), 7)] {
        let text = CONFIG.to_owned() + &policies;
        let text = bundle(&text, |_| Ok("{}".to_owned())).unwrap();
        world.config = config_file::parse(&text, Locality::PublicOnly).unwrap();
        let dead = world.ports.ledger.peek(&key("acme", &id)).unwrap();
        let destination = world.config.destination_of(&dead.delivery).unwrap();
        let (now, look) = (world.clock.now(), world.config.look_rules(DurationMs::from_secs(900)));
        let released =
            dead.release("rdr_1".into(), &destination.policy, now, now, &look).unwrap().into_after();
        assert_eq!((released.attempt_limit, released.attempts_before), (3 + limit, 3));
    }
}

#[test]
fn the_schedule_gets_out_of_the_way_of_what_it_published() {
    let world = world();
    world.clock.set(t("2026-08-10T07:00:00Z"));
    world.ports.recipient.react(&id("acme", "2026-08-09"), [Reaction::answer(429).asking("3600")]);
    for _ in 0..120 {
        tick(&world);
        world.run_for(DurationMs::from_secs(60));
    }
    let record = world.ports.ledger.peek(&key("acme", &id("acme", "2026-08-09"))).unwrap();
    assert_eq!((record.attempts_made, record.result.as_ref().map(|r| r.bytes.len())), (2, Some(3)));
}
