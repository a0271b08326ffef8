//! What a change of the configuration makes of what a schedule owes.

use waybill_domain::address::Locality;
use waybill_domain::identity::{DeliveryId, DeliveryKey, DestinationName, EventId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config_file::Rules;
use waybill_service::schedule::{Learned, ScheduleLimits, ScheduleReport, Scheduler};
use waybill_service::source::ConfigSource;

use crate::world::{World, tenant};

pub(crate) const CONFIG: &str = r#"
[destinations.books]
tenants = ["acme"]
url = "https://books.example.com/hooks"
secrets = ["env:S"]
[destinations.elsewhere]
tenants = ["acme"]
url = "https://elsewhere.example.com/hooks"
secrets = ["env:S"]
[schedules.nightly]
cron = "30 2 * * *"
timezone = "UTC"
tenants = ["acme"]
destination = "books"
type = "day.closed"
event_id = "{tenant}:{window}"
catch_up = "4d"
payload = { day = "{window}" }
"#;

const OTHER_IDS: &str = "nightly:{tenant}:{window}";

/// Puts a configuration in force, at noon of a day in August.
fn apply(world: &World, day: u32, text: &str) {
    apply_at(world, &format!("2026-08-{day:02}T12:00:00Z"), text);
}

fn apply_at(world: &World, at: &str, text: &str) {
    world.clock.set(TimeMs::parse("t", at).unwrap());
    world.block(world.desk().apply(text, Rules::from(Locality::PublicOnly), "maria", "as agreed")).unwrap();
}

/// A tick of a process that has just been started, under what is in force.
fn tick(world: &World, day: u32) -> ScheduleReport {
    tick_at(world, TimeMs::parse("t", &format!("2026-08-{day:02}T12:00:00Z")).unwrap())
}

fn tick_at(world: &World, at: TimeMs) -> ScheduleReport {
    world.clock.set(at);
    let rules = Rules::from(Locality::PublicOnly);
    let source = ConfigSource::new(world.office.clone(), rules, world.clock.clone(), DurationMs::ZERO);
    let config = world.block(source.current()).unwrap();
    let scheduler = Scheduler { ledger: &world.ports.ledger, queue: &world.ports.queue, clock: &world.clock };
    world.block(scheduler.tick(&config, &Learned::default(), ScheduleLimits::default()))
}

/// The days of August that have a delivery under these event IDs.
fn published(world: &World, ids: &str, destination: &str) -> Vec<u32> {
    let has = |day: &u32| {
        let event_id = ids.replace("{tenant}", "acme").replace("{window}", &format!("2026-08-{day:02}"));
        let (event_id, to) =
            (EventId::parse(event_id).unwrap(), DestinationName::parse(destination).unwrap());
        let key = DeliveryKey {
            tenant: tenant("acme"),
            delivery_id: DeliveryId::derive(&tenant("acme"), &event_id, &to),
        };
        world.ports.ledger.peek(&key).is_some()
    };
    (1..=31).filter(has).collect()
}

#[test]
fn a_night_that_is_owed_is_published_under_the_event_id_of_then_when_the_template_changes() {
    let world = World::new();
    apply(&world, 10, CONFIG);
    assert_eq!(tick(&world, 11).published, 1);
    // The night of the 12th was missed; the template changes before it is caught up.
    apply(&world, 12, &CONFIG.replace("{tenant}:{window}", OTHER_IDS));
    assert_eq!(tick(&world, 12).published, 1, "that of the night before");
    assert_eq!(tick(&world, 13).published, 1);
    assert_eq!((0, 0), (tick(&world, 13).published, tick(&world, 13).failed), "and nothing twice");
    assert_eq!(published(&world, "{tenant}:{window}", "books"), [10, 11]);
    assert_eq!(published(&world, OTHER_IDS, "books"), [12]);
    assert_eq!(
        world.block(waybill_service::office::Revisions::in_force(&world.office)).unwrap().unwrap().number,
        2
    );
}

#[test]
fn a_night_that_somebody_published_under_the_new_event_id_is_not_owed_under_the_old_one() {
    let world = World::new();
    apply(&world, 10, CONFIG);
    apply(&world, 12, &CONFIG.replace("{tenant}:{window}", OTHER_IDS));
    let fields = serde_json::json!({ "payload": { "by": "hand" } });
    crate::publishing::publish(&world, "nightly:acme:2026-08-11", fields);
    tick(&world, 12);
    assert_eq!(published(&world, "{tenant}:{window}", "books"), [10], "the other night");
}

#[test]
fn a_night_that_has_its_delivery_is_not_owed_again_when_a_changed_pattern_fires_once_more_for_it() {
    let world = World::new();
    apply_at(&world, "2026-08-10T16:00:00Z", CONFIG);
    assert_eq!(tick(&world, 11).published, 1);
    // On the same day, and with other event IDs: at three in the afternoon.
    let later = CONFIG.replace("{tenant}:{window}", OTHER_IDS).replace("30 2 * * *", "0 15 * * *");
    apply(&world, 11, &later);
    let at_four = TimeMs::parse("t", "2026-08-11T16:00:00Z").unwrap();
    assert_eq!(tick_at(&world, at_four).published, 0);
    assert_eq!(tick(&world, 13).published, 1, "the next night's, at three");
    assert_eq!(published(&world, "{tenant}:{window}", "books"), [10]);
    assert_eq!(published(&world, OTHER_IDS, "books"), [11]);
}

#[test]
fn what_changes_back_and_forth_owes_each_night_once() {
    let world = World::new();
    let other = CONFIG.replace("{tenant}:{window}", OTHER_IDS);
    apply(&world, 10, CONFIG);
    apply(&world, 11, &other);
    apply(&world, 12, CONFIG);
    apply(&world, 13, &other);
    assert_eq!(tick(&world, 13).published, 3);
    assert_eq!(published(&world, "{tenant}:{window}", "books"), [10, 12]);
    assert_eq!(published(&world, OTHER_IDS, "books"), [11]);
}

#[test]
fn nothing_is_owed_from_before_to_another_destination_by_a_new_schedule_or_one_that_was_taken_out() {
    let without = CONFIG.split("[schedules").next().unwrap().to_owned();
    let elsewhere = CONFIG.replace("destination = \"books\"", "destination = \"elsewhere\"");
    let changes: [(&str, &[&str]); 2] = [("elsewhere", &[&elsewhere]), ("books", &[&without, CONFIG])];
    for (destination, after) in changes {
        let world = World::new();
        apply(&world, 10, CONFIG);
        for text in after {
            apply(&world, 12, text);
        }
        assert_eq!(tick(&world, 12).published, 0, "{destination}");
        assert_eq!(tick(&world, 13).published, 1, "{destination}");
        assert_eq!(published(&world, "{tenant}:{window}", destination), [12]);
    }
}

#[test]
fn beyond_catch_up_nothing_is_owed_under_former_event_ids_either() {
    let world = World::new();
    apply(&world, 10, CONFIG);
    apply(&world, 12, &CONFIG.replace("{tenant}:{window}", OTHER_IDS));
    assert_eq!(tick(&world, 16).published, 4, "of four days");
    assert_eq!(published(&world, "{tenant}:{window}", "books"), Vec::<u32>::new());
    assert_eq!(published(&world, OTHER_IDS, "books"), [12, 13, 14, 15]);
}
