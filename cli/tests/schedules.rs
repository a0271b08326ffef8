//! `waybill schedules list`: next firing, last window with its delivery, and to whom it is shown.

mod support;

use serde_json::Value;
use support::office::{BOSS, MARIA, Office};
use support::text;

/// Fires at midnight in UTC, for two tenants.
const SCHEDULE: &str = r#"
[destinations.both]
tenants = ["acme", "other"]
url = "https://both.example.com/in"
secrets = ["env:D_SECRET"]
[policies.nightly]
max_attempts = 6
[schedules.nightly]
cron = "0 0 * * *"
timezone = "UTC"
tenants = ["acme", "other"]
destination = "both"
type = "day.closed"
event_id = "{tenant}:{window}"
policy = "nightly"
payload = { day = "{window}" }
[schedules.summer]
cron = "30 2 * * *"
timezone = "America/New_York"
tenants = ["other"]
destination = "both"
type = "day.closed"
payload = { day = "{window}" }
"#;

fn row<'a>(rows: &'a [Value], schedule: &str, tenant: &str) -> &'a Value {
    let is_it = |row: &&Value| text(row, "schedule") == schedule && text(row, "tenant") == tenant;
    rows.iter().find(is_it).unwrap_or_else(|| panic!("{schedule} for {tenant}"))
}

#[test]
fn a_schedule_s_next_firing_and_its_last_window_with_its_delivery_are_listed() {
    let office = Office::under(SCHEDULE, &[]);
    let rows = office.facts(BOSS, &["schedules", "list"]);
    assert_eq!(rows.len(), 3);
    let acme = row(&rows, "nightly", "acme");
    assert_eq!(
        (text(acme, "timing"), text(acme, "destination"), text(acme, "policy")),
        ("0 0 * * * in UTC", "both", "nightly")
    );
    assert!(acme["owed"].as_array().unwrap().is_empty(), "it began after its last firing");
    assert_eq!((&acme["before_it_began"], &acme["next_jump"]), (&7.into(), &Value::Null));
    let last = &acme["last"]["window"];
    assert_eq!(acme["next"]["window"]["from"], last["to"], "the day after");
    assert_eq!(acme["last"]["delivery_id"], Value::Null);
    let summer = row(&rows, "summer", "other");
    assert!(["skip", "repeat"].contains(&text(&summer["next_jump"], "clocks")), "{summer}");

    // Somebody publishes the day by hand: it has its delivery.
    let day = text(last, "day");
    let event = format!(
        r#"{{"event_id":"acme:{day}","tenant":"acme","type":"day.closed","destination":"both","payload":1}}"#
    );
    assert_eq!(office.publish(&event).code, 0);
    let rows = office.facts(BOSS, &["schedules", "list", "--tenant", "acme"]);
    assert_eq!(rows.len(), 1);
    assert_eq!(text(&rows[0]["last"], "state"), "pending");
    assert_eq!(text(&rows[0]["last"], "delivery_id"), office.id_of(&format!("acme:{day}")));

    let table = office.by(BOSS, &["schedules", "list"]).out;
    for said in ["NEXT FIRING", day, "pending", "summer: after", "the clocks s"] {
        assert!(table.contains(said), "{said} is not in\n{table}");
    }
}

#[test]
fn an_operator_sees_the_schedules_of_their_own_tenants() {
    let office = Office::under(SCHEDULE, &[]);
    let rows = office.facts(MARIA, &["schedules", "list"]);
    let seen: Vec<(&str, &str)> =
        rows.iter().map(|row| (text(row, "schedule"), text(row, "tenant"))).collect();
    assert_eq!(seen, [("nightly", "acme")]);
    let refused = office.by(MARIA, &["schedules", "list", "--tenant", "other"]);
    assert_eq!(refused.code, 3, "{}", refused.err);
}
