//! A destination: whom it serves, what it subscribes to, what tells two configurations of it apart.

use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::destination::{Destination, EventPattern, SecretRef};
use waybill_domain::identity::{EventType, TenantId};
use waybill_domain::outcome::StatusOverride;
use waybill_domain::policy::Policy;
use waybill_domain::static_header::{StaticHeader, StaticHeaderName};
use waybill_domain::suspension::SuspendRules;

use crate::build;

fn pattern(text: &str) -> EventPattern {
    EventPattern::parse(text).unwrap()
}

fn event_type(text: &str) -> EventType {
    EventType::parse(text).unwrap()
}

#[test]
fn a_pattern_covers_one_type_or_all_that_begin_alike() {
    let rows: [(&str, &str, bool); 10] = [
        ("lease.signed", "lease.signed", true),
        ("lease.signed", "lease.signed.twice", false),
        ("lease.signed", "lease.sign", false),
        ("lease.*", "lease.signed", true),
        ("lease.*", "lease", false),
        ("lease.*", "leases.signed", false),
        ("lease*", "leases.signed", true),
        ("lease*", "lease", true),
        ("*", "anything.at_all", true),
        ("other.*", "lease.signed", false),
    ];
    for (text, one, covered) in rows {
        assert_eq!(pattern(text).matches(&event_type(one)), covered, "{text} and {one}");
        let destination = Destination {
            event_types: vec![pattern("nothing.of_this"), pattern(text)],
            ..build::destination()
        };
        assert_eq!(destination.subscribes_to(&event_type(one)), covered, "{text} and {one}, of two");
    }
    let nobody = Destination { event_types: Vec::new(), ..build::destination() };
    assert!(!nobody.subscribes_to(&event_type("lease.signed")));
}

#[test]
fn two_patterns_meet_where_some_type_is_of_both() {
    let rows = [
        ("lease.signed", "lease.signed", true),
        ("lease.signed", "lease.paid", false),
        ("lease.signed", "lease.*", true),
        ("lease.signed", "other.*", false),
        ("lease.*", "lease.signed.*", true),
        ("lease.*", "other.*", false),
        ("lease.*", "*", true),
        ("*", "*", true),
    ];
    for (one, other, met) in rows {
        assert_eq!(pattern(one).meets(&pattern(other)), met, "{one} and {other}");
        assert_eq!(pattern(other).meets(&pattern(one)), met, "{other} and {one}");
    }
}

#[test]
fn a_pattern_is_a_type_or_the_beginning_of_one() {
    for text in ["*", "lease.signed", "lease.*", "l*"] {
        assert_eq!(pattern(text).to_string(), text);
        assert_eq!(String::from(pattern(text)), text);
    }
    for text in ["", "**", "le*se", "*.signed", " ", "lease signed", "lease.\u{7}*"] {
        let refused = EventPattern::parse(text).unwrap_err();
        assert_eq!(refused.field, "event_types", "{text:?}");
        assert!(refused.rule.contains("a final *"), "{text:?}: {refused}");
    }
}

#[test]
fn a_secret_is_named_by_where_it_is_kept_and_never_echoed() {
    let long = format!("ssm:{}", "p".repeat(2048));
    let good = [
        "env:ACME_SECRET",
        "env:a_1",
        "ssm:/waybill/acme/secret",
        "ssm:name.of-one_2",
        "secretsmanager:arn:aws:secretsmanager:eu-central-1:123456789012:secret:acme-AbCdEf",
        "secretsmanager:a+b=c@d",
        &long,
    ];
    for text in good {
        assert_eq!(SecretRef::parse("secrets", text).unwrap().to_string(), text);
    }
    let too_long = format!("secretsmanager:{}", "p".repeat(2049));
    let rows = [
        ("env:", "names no environment variable"),
        ("env:1A", "names no environment variable"),
        ("env:A-B", "names no environment variable"),
        ("env:A B", "names no environment variable"),
        ("ssm:", "names no parameter"),
        ("ssm:a b", "names no parameter"),
        ("secretsmanager:", "names no secret"),
        ("secretsmanager:a*b", "names no secret"),
        (&too_long, "names no secret"),
        ("whsec_c2VjcmV0", "is not a reference"),
        ("vault:x", "is not a reference"),
        ("", "is not a reference"),
    ];
    for (text, fault) in rows {
        let refused = SecretRef::parse("secrets", text).unwrap_err();
        assert!(refused.fault.starts_with(fault), "{text}: {refused}");
        assert_eq!(refused.field, "secrets");
        let said = refused.to_string();
        assert!(!said.contains("c2VjcmV0"), "{said}");
    }
}

#[test]
fn a_fingerprint_changes_with_what_may_mend_a_refusal_and_with_nothing_else() {
    let plain = build::destination();
    let header = |name: &str| StaticHeader {
        name: StaticHeaderName::parse("headers", name).unwrap(),
        value: SecretRef::Env("KEY".to_owned()),
    };
    let url = |text: &str| RecipientUrl::parse("url", text, Locality::PublicOnly).unwrap();
    let reading = |status: u16, reading: StatusOverride| [(status, reading)].into_iter().collect();
    let on_gone = |on_gone: bool| Some(SuspendRules { after: Some(50), on_gone });
    let gone = StatusOverride::Permanent;
    // Each differs from all the others.
    let apart = [
        plain.clone(),
        Destination { url: url("https://other.example.com/hooks"), ..plain.clone() },
        Destination { secrets: vec![SecretRef::Env("OTHER".to_owned())], ..plain.clone() },
        Destination { headers: vec![header("x-api-key")], ..plain.clone() },
        Destination { headers: vec![header("x-api-key"), header("x-other")], ..plain.clone() },
        Destination { statuses: reading(409, StatusOverride::Delivered), ..plain.clone() },
        Destination { statuses: reading(409, StatusOverride::Retryable), ..plain.clone() },
        Destination { statuses: reading(409, StatusOverride::Permanent), ..plain.clone() },
        Destination { statuses: reading(410, gone), ..plain.clone() },
        // Who reads a 410 for the suspension keeps the operator's readings of other statuses.
        Destination {
            statuses: [(410, gone), (422, StatusOverride::Retryable)].into_iter().collect(),
            suspension: on_gone(true),
            ..plain.clone()
        },
    ];
    for (n, one) in apart.iter().enumerate() {
        let print = one.fingerprint();
        assert!(print.len() == 16 && print.bytes().all(|b| b.is_ascii_hexdigit()), "{print}");
        for other in &apart[n + 1..] {
            assert_ne!(print, other.fingerprint(), "{one:?}\n{other:?}");
        }
    }
    let other = TenantId::parse("other").unwrap();
    let alike = [
        Destination { owner: Some("somebody".to_owned()), ..plain.clone() },
        Destination { tenants: vec![other], ..plain.clone() },
        Destination { event_types: vec![pattern("*")], ..plain.clone() },
        Destination { suspension: on_gone(false), ..plain.clone() },
        Destination { statuses: reading(410, gone), suspension: on_gone(true), ..plain.clone() },
    ];
    for one in alike {
        assert_eq!(plain.fingerprint(), one.fingerprint(), "{one:?}");
    }
    let read_by_itself =
        Destination { statuses: reading(410, gone), suspension: on_gone(false), ..plain.clone() };
    assert_ne!(plain.fingerprint(), read_by_itself.fingerprint(), "the operator's own reading of 410");
}

#[test]
fn it_serves_its_tenants_alone_and_under_other_rules_stays_itself() {
    let destination = build::destination();
    let tenant = |text: &str| TenantId::parse(text).unwrap();
    assert!(destination.serves(&tenant("acme")));
    assert!(!destination.serves(&tenant("other")));
    let mut terms = *Policy::default();
    terms.max_attempts += 1;
    let other = Policy::new(terms).unwrap();
    let under = destination.under(other);
    assert_eq!(under.policy, other);
    assert_eq!(Destination { policy: destination.policy, ..under }, destination);
}
