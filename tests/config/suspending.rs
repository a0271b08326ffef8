//! `suspend_after` and `gone` of a destination: when automation suspends it.

use waybill_domain::identity::DestinationName;
use waybill_domain::outcome::StatusOverride;
use waybill_domain::suspension::SuspendRules;

use super::{DESTINATION, faults, read};

#[test]
fn a_destination_is_suspended_only_where_its_configuration_says_so() {
    let rules = |after, on_gone| Some(SuspendRules { after, on_gone });
    let rows: &[(&str, Option<SuspendRules>)] = &[
        ("", None),
        ("gone = \"dead_letter\"", None),
        ("suspend_after = 20", rules(Some(20), false)),
        ("suspend_after = 1\ngone = \"dead_letter\"", rules(Some(1), false)),
        ("gone = \"suspend\"", rules(None, true)),
        ("suspend_after = 1000\ngone = \"suspend\"", rules(Some(1000), true)),
    ];
    for (lines, expected) in rows {
        let config = read(&format!("{DESTINATION}{lines}\n"));
        let destination = &config.destinations[&DestinationName::parse("d").unwrap()];
        assert_eq!(destination.suspension, *expected, "{lines}");
        // What suspends the destination is not the end of its delivery.
        let gone = expected.is_some_and(|rules| rules.on_gone).then_some(StatusOverride::Retryable);
        assert_eq!(destination.statuses.get(&410).copied(), gone, "{lines}");
    }
}

/// What was refused for good is not mended by a change of when its destination is suspended.
#[test]
fn when_it_is_suspended_makes_no_other_destination_of_it() {
    let fingerprint = |lines: &str| {
        let config = read(&format!("{DESTINATION}{lines}\n"));
        config.destinations[&DestinationName::parse("d").unwrap()].fingerprint()
    };
    let plain = fingerprint("");
    for (lines, same) in [
        ("gone = \"suspend\"", true),
        ("suspend_after = 20", true),
        ("statuses = { 410 = \"retryable\" }", false),
        ("gone = \"suspend\"\nstatuses = { 409 = \"delivered\" }", false),
    ] {
        assert_eq!(fingerprint(lines) == plain, same, "{lines}");
    }
}

#[test]
fn what_is_no_rule_is_refused() {
    let gone = "(\"dead_letter\", or \"suspend\" for a recipient that says by 410 that it wants no more)";
    for (line, fault) in [
        ("gone = \"ignore\"", format!("gone: is \"ignore\" {gone}")),
        ("gone = true", "gone: is true or false (a text in quotes)".to_owned()),
        ("suspend_after = 0", "suspend_after: is 0 (from 1 to 1000)".to_owned()),
        ("suspend_after = 1001", "suspend_after: is 1001 (from 1 to 1000)".to_owned()),
    ] {
        let expected = format!("line 5: destinations.d.{fault}");
        assert_eq!(faults(&format!("{DESTINATION}{line}\n")), [expected]);
    }
    let both = format!("{DESTINATION}gone = \"suspend\"\nstatuses = {{ 410 = \"permanent\" }}\n");
    let found = faults(&both);
    let rule = "gone: suspends, and statuses says what 410 is (leave 410 out of statuses, or say gone = \"dead_letter\")";
    assert!(found.len() == 1 && found[0].ends_with(rule), "{found:?}");
}
