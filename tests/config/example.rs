//! `waybill.example.toml` is what newcomers see and what the rehearsals run.

use waybill_domain::identity::{DestinationName, EventType, TenantId};
use waybill_domain::policy::Policy;
use waybill_service::config::System;

use super::read;

const EXAMPLE: &str = include_str!("../../waybill.example.toml");

#[test]
fn the_example_file_is_accepted_and_shows_the_defaults() {
    let config = read(EXAMPLE);
    let named = |name: &str| &config.destinations[&DestinationName::parse(name).unwrap()];
    assert_eq!(named("acme-accounting").policy, Policy::default());
    assert_eq!(config.system, System::default());
    assert_eq!(config.producers.keys().collect::<Vec<_>>(), ["billing"]);
}

#[test]
fn the_example_sends_both_jobs_where_they_belong() {
    let config = read(EXAMPLE);
    let goes_to = |tenant: &str, event_type: &str| {
        let (tenant, event_type) = (TenantId::parse(tenant).unwrap(), EventType::parse(event_type).unwrap());
        let names = config.subscribers(&tenant, &event_type).into_iter().map(|d| d.name.to_string());
        (names.collect::<Vec<_>>(), config.rules_for(&event_type).require_deadline)
    };
    assert_eq!(goes_to("acme", "lease.payment_recorded"), (vec!["acme-accounting".to_owned()], false));
    assert_eq!(goes_to("studio-9", "renewal.reminder"), (vec!["player-notices".to_owned()], true));
    assert_eq!(goes_to("studio-9", "lease.payment_recorded"), (vec![], false));
}

#[test]
fn every_line_that_sets_something_in_the_example_has_a_comment_or_a_section_with_one() {
    let acme = EXAMPLE.split("[destinations.acme-accounting]").nth(1).unwrap();
    let acme = acme.split("\n[").next().unwrap();
    for line in acme.lines().filter(|line| line.contains(" = ")) {
        assert!(line.contains('#'), "without a comment: {line}");
    }
}
