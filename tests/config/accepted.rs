//! What a good file is read as.

use waybill_domain::address::Locality;
use waybill_domain::authority::Authority;
use waybill_domain::destination::{OnAmbiguous, SecretRef};
use waybill_domain::identity::{DestinationName, EventType, TenantId};
use waybill_domain::outcome::StatusOverride;
use waybill_domain::policy::Policy;
use waybill_domain::time::DurationMs;
use waybill_service::config::System;
use waybill_service::config_file::parse;

use super::{DESTINATION, read};

fn d() -> DestinationName {
    DestinationName::parse("d").unwrap()
}

#[test]
fn a_destination_that_says_only_what_it_must_gets_the_defaults() {
    let config = read(DESTINATION);
    let destination = &config.destinations[&d()];
    assert_eq!(destination.policy, Policy::default());
    assert_eq!(destination.timeout, DurationMs::from_secs(15));
    assert_eq!(destination.on_ambiguous, OnAmbiguous::Retry);
    assert_eq!(destination.secrets, [SecretRef::Env("D_SECRET".to_owned())]);
    assert_eq!((destination.owner.as_ref(), destination.keep_result), (None, false));
    assert!(destination.event_types.is_empty() && destination.statuses.is_empty());
    assert!(config.measured.is_empty());
    assert_eq!(config.system, System::default());
    assert!(config.sources.is_empty());
    assert!(config.producers.is_empty() && config.event_types.is_empty() && config.holds.is_empty());
}

#[test]
fn a_recipient_that_can_be_asked_has_a_status_url() {
    let url = "https://hooks.example.com/status/{event_id}";
    let config = read(&format!("{DESTINATION}on_ambiguous = \"query\"\nstatus_url = \"{url}\"\n"));
    let destination = &config.destinations[&d()];
    assert_eq!(destination.on_ambiguous, OnAmbiguous::Query);
    assert_eq!(destination.status_url.as_ref().map(ToString::to_string).as_deref(), Some(url));
}

#[test]
fn everything_that_is_written_is_read() {
    let text = format!(
        r#"{DESTINATION}owner = "team@acme.example"
event_types = ["lease.*", "deposit.returned"]
policy = "slow"
timeout = "250ms"
on_ambiguous = "hold"
statuses = {{ 404 = "retryable", 503 = "permanent", 304 = "delivered" }}
keep_result = true
metrics = true

[policies.slow]
max_attempts = 3
base_delay = "30s"
factor = 1.5
max_delay = "1h"
horizon = "20h"
minimum_window = "0s"

[producers.billing]
tenants = ["acme", "northwind"]
tokens = ["env:NEW_TOKEN", "env:OLD_TOKEN"]

[system]
stale_after = "90s"
rescue_window = "1h"
"#
    );
    let config = read(&text);
    let destination = &config.destinations[&d()];
    assert_eq!(destination.owner.as_deref(), Some("team@acme.example"));
    assert_eq!(destination.timeout, DurationMs::from_ms(250));
    assert_eq!(destination.on_ambiguous, OnAmbiguous::Hold);
    assert_eq!(destination.event_types.len(), 2);
    assert_eq!(destination.statuses[&404], StatusOverride::Retryable);
    assert_eq!(destination.statuses[&503], StatusOverride::Permanent);
    assert_eq!(destination.statuses[&304], StatusOverride::Delivered);
    assert!(destination.keep_result && config.measured.contains(&d()));
    let policy = &destination.policy;
    assert_eq!((policy.max_attempts, policy.backoff.factor), (3, 1.5));
    assert_eq!(
        (policy.backoff.base, policy.backoff.max),
        (DurationMs::from_secs(30), DurationMs::from_secs(3600))
    );
    assert_eq!((policy.horizon, policy.minimum_window), (DurationMs::from_secs(72_000), DurationMs::ZERO));
    let billing = &config.producers["billing"];
    assert_eq!((billing.tenants.len(), billing.tokens.len()), (2, 2));
    assert_eq!(config.system.stale_after, DurationMs::from_secs(90));
    assert_eq!(config.system.rescue_window, DurationMs::from_secs(3600));
}

#[test]
fn a_policy_named_default_counts_for_destinations_that_name_none() {
    let text = format!("{DESTINATION}[policies.default]\nmax_attempts = 2\n");
    assert_eq!(read(&text).destinations[&d()].policy.max_attempts, 2);
}

#[test]
fn the_first_event_type_that_matches_counts_in_the_order_of_the_file() {
    let text = format!(
        "{DESTINATION}[event_types.\"renewal.trial\"]\nrequire_deadline = false\n\
         [event_types.\"renewal.*\"]\nrequire_deadline = true\n\
         [event_types.\"audit.*\"]\n"
    );
    let config = read(&text);
    let needs = |name: &str| config.rules_for(&EventType::parse(name).unwrap()).require_deadline;
    assert!(!needs("renewal.trial"));
    assert!(needs("renewal.trial.ending"));
    assert!(!needs("audit.done"));
    assert!(!needs("lease.signed"));
}

#[test]
fn the_revision_is_derived_from_the_text() {
    let (one, same, other) = (read(DESTINATION), read(DESTINATION), read(&format!("{DESTINATION}\n")));
    assert_eq!(one.revision, same.revision);
    assert_ne!(one.revision, other.revision);
    let digits = one.revision.as_str().strip_prefix("file-").expect("file- comes first");
    assert_eq!(digits.len(), 12);
    assert!(digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
}

#[test]
fn a_recipient_on_this_machine_is_taken_only_by_the_explicit_switch() {
    let text = DESTINATION.replace("https://hooks.example.com/in", "http://127.0.0.1:9000/in");
    assert!(parse(&text, Locality::PublicOnly).is_err());
    assert!(parse(&text, Locality::AllowLocal).is_ok());
}

#[test]
fn an_operator_is_authorised_for_some_tenants_or_across_them() {
    let config = read(&format!(
        "{DESTINATION}[operators.maria]\ntenants = [\"acme\", \"other\"]\n\
         [operators.\"night shift\"]\ntenants = [\"*\"]\n[system]\nmax_redrives = 5\n"
    ));
    let tenants = ["acme", "other"].map(|name| TenantId::parse(name).unwrap()).to_vec();
    assert_eq!(config.operators["maria"], Authority::Tenants(tenants));
    assert_eq!(config.operators["night shift"], Authority::Across);
    assert_eq!(config.system.max_redrives, 5);
}
