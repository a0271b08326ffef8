//! Holds: what each rule keeps back, why, and which of several tells.

use waybill_domain::delivery::Record;
use waybill_domain::destination::EventPattern;
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::hold::{HoldReason, HoldRule, keeps_all, matching};
use waybill_domain::identity::{DestinationName, TenantId};

use crate::build::{T0, by, delivery, look, pending, policy, revision};

fn to(name: &str) -> DestinationName {
    DestinationName::parse(name).unwrap()
}

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

fn of_type(types: &str, payload_version: Option<u32>, of: Option<&str>) -> HoldRule {
    HoldRule::Type { types: EventPattern::parse(types).unwrap(), payload_version, tenant: of.map(tenant) }
}

fn within(of: &str, rule: HoldRule) -> HoldRule {
    HoldRule::Within { tenant: tenant(of), rule: Box::new(rule) }
}

fn elsewhere(rule: HoldRule, than: &str) -> HoldRule {
    HoldRule::Elsewhere { rule: Box::new(rule), than: vec![to(than)] }
}

fn run(name: &str, of: Option<&str>) -> HoldRule {
    HoldRule::Run { run: name.to_owned(), tenant: of.map(tenant) }
}

/// Of `acme`, to `acme-accounting`, `lease.payment_recorded` in version 3, released by the run `rdr_1`.
fn released() -> Record {
    let mut delivery = delivery(None);
    delivery.payload.version = Some(3);
    let open = Record::new(delivery, &policy(7), revision(), &look());
    let ending = Ending::DeadLettered(DeadLetterReason::DestinationRemoved);
    let dead = open.end(&by("m1", "t1", T0), ending, &look()).unwrap().into_after();
    dead.release("rdr_1".to_owned(), &policy(7), T0, T0, &look()).unwrap().into_after()
}

/// Written by a version that is not there yet, in whatever form: it stands as it was written, and nobody knows
/// what it lets go.
#[test]
fn a_rule_of_a_newer_version_keeps_everything_back_and_stays_as_it_is() {
    for written in [r#"{"region":"eu"}"#, r#"{"type":{"kinds":["lease.*"]}}"#, r#""dusk""#, "7"] {
        let rule: HoldRule = serde_json::from_str(written).unwrap();
        assert!(matches!(rule, HoldRule::Newer(_)), "{rule:?}");
        assert_eq!(serde_json::to_string(&rule).unwrap(), written);
        assert_eq!(matching(std::slice::from_ref(&rule), &released()), Some(HoldReason::Gate), "{written}");
        assert!(keeps_all(std::slice::from_ref(&rule), &to("acme-accounting")), "{written}");
        let of_another = within("other", rule);
        assert_eq!(matching(std::slice::from_ref(&of_another), &released()), None, "{written}");
    }
    for known in [HoldRule::All, HoldRule::Tenant(tenant("acme")), of_type("lease.*", Some(2), None)] {
        let written = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::from_str::<HoldRule>(&written).unwrap(), known, "{written}");
    }
}

#[test]
fn each_rule_keeps_back_what_it_names_and_says_why() {
    use HoldReason as R;
    use HoldRule as H;
    let rows = [
        (H::Destination(to("acme-accounting")), R::Paused, true),
        (H::Destination(to("other")), R::Paused, false),
        (H::Suspended(to("acme-accounting")), R::Suspended, true),
        (H::Suspended(to("other")), R::Suspended, false),
        (H::Tenant(tenant("acme")), R::Paused, true),
        (H::Tenant(tenant("other")), R::Paused, false),
        (H::All, R::Gate, true),
        (of_type("lease.*", None, None), R::Quarantine, true),
        (of_type("renewal.*", None, None), R::Quarantine, false),
        (of_type("lease.*", Some(3), None), R::Quarantine, true),
        (of_type("lease.*", Some(2), None), R::Quarantine, false),
        (of_type("lease.*", None, Some("acme")), R::Quarantine, true),
        (of_type("lease.*", None, Some("other")), R::Quarantine, false),
        (of_type("renewal.*", Some(3), Some("acme")), R::Quarantine, false),
        (within("acme", H::Destination(to("acme-accounting"))), R::Paused, true),
        (within("acme", H::Destination(to("other"))), R::Paused, false),
        (within("other", H::All), R::Gate, false),
        (elsewhere(H::All, "other"), R::Gate, true),
        (elsewhere(H::All, "acme-accounting"), R::Gate, false),
        (elsewhere(H::Tenant(tenant("other")), "crm"), R::Paused, false),
        (run("rdr_1", None), R::RunStopped, true),
        (run("rdr_2", None), R::RunStopped, false),
        (run("rdr_1", Some("acme")), R::RunStopped, true),
        (run("rdr_1", Some("other")), R::RunStopped, false),
    ];
    let record = released();
    for (rule, reason, kept) in rows {
        assert_eq!(rule.matches(&record), kept, "{rule:?}");
        assert_eq!(rule.reason(), reason, "{rule:?}");
    }
    assert!(!run("rdr_1", None).matches(&pending(None)), "no run released it");
    assert!(!of_type("*", Some(1), None).matches(&pending(None)), "it has no payload version");
}

#[test]
fn of_several_the_first_that_matches_tells_why() {
    let paused = HoldRule::Destination(to("acme-accounting"));
    let elsewhere = HoldRule::Destination(to("other"));
    let record = released();
    assert_eq!(matching(&[], &record), None);
    assert_eq!(matching(std::slice::from_ref(&elsewhere), &record), None);
    assert_eq!(
        matching(&[elsewhere.clone(), HoldRule::All, paused.clone()], &record),
        Some(HoldReason::Gate)
    );
    assert_eq!(matching(&[elsewhere, paused, HoldRule::All], &record), Some(HoldReason::Paused));
}

#[test]
fn a_destination_is_surely_kept_as_a_whole_by_a_rule_of_its_own_or_of_everything() {
    let here = to("acme-accounting");
    let rows = [
        (HoldRule::All, true),
        (HoldRule::Destination(here.clone()), true),
        (HoldRule::Suspended(here.clone()), true),
        (HoldRule::Destination(to("other")), false),
        (HoldRule::Suspended(to("other")), false),
        (HoldRule::Tenant(tenant("acme")), false),
        (of_type("*", None, None), false),
        (run("rdr_1", None), false),
        (within("acme", HoldRule::All), false),
        (elsewhere(HoldRule::All, "other"), true),
        (elsewhere(HoldRule::All, "acme-accounting"), false),
        (elsewhere(HoldRule::Tenant(tenant("acme")), "other"), false),
    ];
    for (rule, all) in rows {
        assert_eq!(keeps_all(std::slice::from_ref(&rule), &here), all, "{rule:?}");
        assert_eq!(keeps_all(&[run("rdr_9", None), rule.clone()], &here), all, "{rule:?}, of two");
    }
    assert!(!keeps_all(&[], &here));
}
