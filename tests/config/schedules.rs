//! `[schedules.NAME]`: what it is read as, and what is refused.

use waybill_domain::time::DurationMs;

use super::{DESTINATION, faults, read};

const SCHEDULE: &str = r#"[schedules.nightly]
cron = "30 2 * * *"
timezone = "America/New_York"
tenants = ["acme"]
destination = "d"
type = "payment.reconciliation_requested"
payload = { business_date = "{window}" }
"#;

fn with(from: &str, to: &str) -> String {
    assert!(SCHEDULE.contains(from), "{from}");
    format!("{DESTINATION}{}", SCHEDULE.replace(from, to))
}

#[test]
fn a_schedule_that_says_only_what_it_must_gets_the_defaults() {
    let config = read(&format!("{DESTINATION}{SCHEDULE}"));
    let schedule = &config.schedules[0];
    assert_eq!((schedule.name.as_str(), schedule.destination.as_str()), ("nightly", "d"));
    assert_eq!(schedule.event_id.to_string(), "{schedule}:{tenant}:{window}");
    assert_eq!(schedule.catch_up, DurationMs::from_secs(7 * 86_400));
    assert_eq!(config.applied_at, None, "the text does not know when it is applied");
}

#[test]
fn whatever_json_has_can_be_a_payload() {
    let text = with(
        "{ business_date = \"{window}\" }",
        "{ a = [1, -0x1, 1.5, true, \"{tenant}\"], b = { c = \"{x}\" }, d = 9007199254740993 }",
    );
    let text = text.replace("-0x1", "0x10");
    let payload = read(&text).schedules[0].payload.to_string();
    assert_eq!(payload, r#"{"a":[1,16,1.5,true,"{tenant}"],"b":{"c":"{x}"},"d":9007199254740993}"#);
}

#[test]
fn what_could_never_work_is_refused() {
    let cron = "(minute, hour, day of month, month, day of week, such as \"30 2 * * *\")";
    for (from, to, fault) in [
        ("30 2 * * *", "30 2 * *", format!("line 6: schedules.nightly.cron: has not five fields {cron}")),
        (
            "America/New_York",
            "America/Gotham",
            "line 7: schedules.nightly.timezone: \"America/Gotham\" is not a time zone (a name of the IANA time \
             zone database, such as \"America/New_York\")"
                .to_owned(),
        ),
        (
            "destination = \"d\"",
            "destination = \"e\"",
            "line 9: schedules.nightly.destination: no destination is named \"e\" (a destination that serves every \
             tenant of the schedule)"
                .to_owned(),
        ),
        (
            "[\"acme\"]",
            "[\"acme\", \"northwind\"]",
            "line 9: schedules.nightly.destination: does not serve northwind (a destination that serves every \
             tenant of the schedule)"
                .to_owned(),
        ),
        (
            "cron =",
            "window = \"week\"\ncron =",
            "line 6: schedules.nightly.window: is \"week\" (\"previous-day\": the business day before the one on \
             which it fires)"
                .to_owned(),
        ),
        (
            "cron =",
            "catch_up = \"90d\"\ncron =",
            "line 6: schedules.nightly.catch_up: is 90d00h (from 1h to 89d: deliveries are kept for 90 days, and \
             only they tell what was done)"
                .to_owned(),
        ),
        (
            "cron =",
            "event_id = \"{tenant}\"\ncron =",
            "line 6: schedules.nightly.event_id: has no {window}: every window would have the same delivery (a \
             text with {window} in it, and {tenant} and {schedule} if wished, such as \
             \"{schedule}:{tenant}:{window}\"; an event ID with everything filled in)"
                .to_owned(),
        ),
        (
            "\"{window}\" }",
            "2026-08-09 }",
            "line 11: schedules.nightly.payload.business_date: is a date or a time (JSON has none: a text in quotes)"
                .to_owned(),
        ),
        (
            "payload = { business_date = \"{window}\" }",
            "",
            "line 5: schedules.nightly.payload: is missing (a table, or any value that JSON has)".to_owned(),
        ),
        (
            "payload =",
            "policy = \"slow\"\npayload =",
            "line 11: schedules.nightly.policy: no policy is named \"slow\" (one of [policies.*]: default)".to_owned(),
        ),
    ] {
        assert_eq!(faults(&with(from, to)), [fault], "{to}");
    }
}

#[test]
fn a_schedule_may_have_retry_rules_of_its_own() {
    let text = with("cron =", "policy = \"nightly\"\ncron =") + "[policies.nightly]\nmax_attempts = 6\n";
    let config = read(&text);
    let policy = config.schedules[0].policy.clone().unwrap();
    assert_eq!((policy.as_str(), config.policies[&policy].max_attempts), ("nightly", 6));
    assert_eq!(config.destinations[&config.schedules[0].destination].policy.max_attempts, 7);
    assert_eq!(read(&with("cron =", "policy = \"default\"\ncron =")).policies.len(), 1);
}

#[test]
fn a_type_that_requires_a_deadline_cannot_be_scheduled() {
    let text = format!("{DESTINATION}{SCHEDULE}[event_types.\"payment.*\"]\nrequire_deadline = true\n");
    assert_eq!(
        faults(&text),
        [
            "line 10: schedules.nightly.type: requires a deadline, and a schedule gives none (the event type of its \
          deliveries)"
        ]
    );
}

#[test]
fn two_schedules_that_could_be_taken_for_each_other_are_refused() {
    let second = |change: &dyn Fn(String) -> String| {
        let first = SCHEDULE.replace("cron =", "event_id = \"{tenant}:{window}\"\ncron =");
        let second = change(first.replace("[schedules.nightly]", "[schedules.weekly]"));
        faults(&format!("{DESTINATION}{first}{second}"))
    };
    assert_eq!(
        second(&|same| same),
        [
            "line 13: schedules.weekly: gives tenant acme the event IDs of schedule \"nightly\" ({tenant}:{window} and \
          {tenant}:{window}) (event IDs of its own at each destination, as {schedule} in the template makes them)"
        ]
    );
    let own = |text: String| text.replace("\"{tenant}:{window}\"", "\"{schedule}:{tenant}:{window}\"");
    assert_eq!(second(&own), Vec::<String>::new());
    assert!(!second(&|text| text.replace("{tenant}:", "acme:")).is_empty(), "the same once it is filled in");
}

#[test]
fn a_fault_of_a_pattern_says_in_which_field_it_is() {
    let rows = [
        ("61 2 * * *", "minute \"61\""),
        ("30 25 * * *", "hour \"25\""),
        ("30 2 0-40 * *", "day of month \"0-40\""),
        ("30 2 * 13 *", "month \"13\""),
        ("30 2 * * 9", "day of week \"9\""),
        ("30 2 * * MOO", "day of week \"MOO\""),
    ];
    for (cron, field) in rows {
        let found = faults(&with("30 2 * * *", cron));
        assert_eq!(found.len(), 1, "{cron}: {found:?}");
        let begin = format!("line 6: schedules.nightly.cron: {field}: ");
        assert!(found[0].starts_with(&begin), "{cron}: {found:?}");
    }
}

#[test]
fn a_destination_that_is_faulty_is_found_fault_with_once() {
    let text = with("cron", "cron").replace("url = ", "uri = ");
    let found = faults(&text);
    assert!(!found.is_empty() && found.iter().all(|fault| fault.contains("destinations.d")), "{found:?}");
    assert!(found.iter().all(|fault| !fault.contains("schedules.")), "{found:?}");
}
