//! `[sources.NAME]`: what it is read as, and every fault that it can have.

use waybill_domain::destination::SecretRef;
use waybill_domain::identity::EventType;
use waybill_domain::source::{Place, TypeFrom};
use waybill_domain::time::DurationMs;
use waybill_domain::verify::Scheme;
use waybill_domain::verify::custom::Encoding;

use super::{DESTINATION, faults, read};

/// A source that has all it needs. Its lines are 5 to 10, below the destination's.
const SOURCE: &str = r#"[sources.s]
tenant = "acme"
scheme = "github"
secrets = ["env:S"]
event_id = "header:x-github-delivery"
event_type = "header:X-GitHub-Event"
"#;

/// Rows of (lines below a good source, the faults they make), and whatever `change` made of it.
fn check(rows: &[(&str, &[&str])]) {
    for (lines, expected) in rows {
        assert_eq!(faults(&format!("{DESTINATION}{SOURCE}{lines}\n")), *expected, "\nfor\n{lines}");
    }
}

/// Rows of (a line of the source, what stands in its place, the fault).
fn check_changed(rows: &[(&str, &str, &str)]) {
    for (line, instead, fault) in rows {
        assert!(SOURCE.contains(line), "{line}");
        let text = format!("{DESTINATION}{}", SOURCE.replace(line, instead));
        assert_eq!(faults(&text), [*fault], "\nfor\n{instead}");
    }
}

#[test]
fn a_source_that_says_only_what_it_must_goes_to_every_subscriber() {
    let source = read(&format!("{DESTINATION}{SOURCE}")).sources.remove("s").unwrap();
    assert_eq!((source.tenant.as_str(), &source.scheme), ("acme", &Scheme::Github));
    assert_eq!(source.secrets, [SecretRef::Env("S".to_owned())]);
    assert_eq!(source.event_id, Place::Header("x-github-delivery".to_owned()));
    assert_eq!(source.event_type, TypeFrom::Place(Place::Header("x-github-event".to_owned())));
    assert_eq!(
        (source.destination, source.deadline, source.scope, source.payload_version),
        (None, None, None, None)
    );
}

#[test]
fn everything_that_is_written_is_read() {
    let text = format!(
        r#"{DESTINATION}
[sources.own]
tenant = "acme"
scheme = "hmac"
signature = {{ header = "X-Signature", encoding = "base64", prefix = "v0=", input = "v0:{{timestamp}}:{{body}}", timestamp = "X-Time", tolerance = "1m" }}
secrets = ["env:NEW", "env:OLD"]
destination = "d"
event_id = "/id"
event_type = "lease.signed"
deadline = "/data/cutoff_at"
scope = "header:x-scope"
payload_version = 2

[producers.signing]
tenants = ["acme"]
secrets = ["env:SIGNING"]
"#
    );
    let config = read(&text);
    let source = &config.sources["own"];
    let Scheme::Hmac(rules) = &source.scheme else { panic!("{:?}", source.scheme) };
    assert_eq!(
        (rules.header.as_str(), rules.encoding, rules.prefix.as_str()),
        ("x-signature", Encoding::Base64, "v0=")
    );
    assert_eq!(rules.timestamp, Some(("x-time".to_owned(), DurationMs::from_secs(60))));
    assert_eq!((rules.input.parts().len(), source.secrets.len()), (4, 2));
    assert_eq!(source.destination.as_ref().unwrap().as_str(), "d");
    assert_eq!(source.event_id, Place::parse("", "/id").unwrap());
    assert_eq!(source.event_type, TypeFrom::Always(EventType::parse("lease.signed").unwrap()));
    assert_eq!(source.deadline, Some(Place::parse("", "/data/cutoff_at").unwrap()));
    assert_eq!(
        (&source.scope, source.payload_version),
        (&Some(Place::Header("x-scope".to_owned())), Some(2))
    );
    let producer = &config.producers["signing"];
    assert_eq!((producer.tokens.len(), producer.secrets.len()), (0, 1));
    for scheme in ["standard-webhooks", "stripe"] {
        read(&format!("{DESTINATION}{}", SOURCE.replace("github\"", &format!("{scheme}\""))));
    }
}

#[test]
fn what_a_source_needs_is_missed_where_it_should_stand() {
    assert_eq!(
        faults(&format!("{DESTINATION}[sources.s]\n")),
        [
            "line 5: sources.s.tenant: is missing (the tenant for which its events are published)",
            "line 5: sources.s.scheme: is missing (\"standard-webhooks\", \"github\", \"stripe\" or \"hmac\")",
            "line 5: sources.s.secrets: is missing (at least one reference such as \"env:STRIPE_SECRET\", two \
             while rotating: without one nothing is accepted)",
            "line 5: sources.s.event_id: is missing (\"header:NAME\", or a JSON pointer such as \"/id\": an ID \
             is never made up)",
            "line 5: sources.s.event_type: is missing (\"header:NAME\", a JSON pointer such as \"/type\", or an \
             event type)",
        ]
    );
    assert_eq!(
        faults(&format!("{DESTINATION}[producers.p]\ntenants = [\"acme\"]\n")),
        ["line 5: producers.p.tokens: is missing (tokens, or secrets that verify its signatures)"]
    );
}

#[test]
fn c87_a_source_without_a_secret_is_refused_and_a_secret_itself_is_not_echoed() {
    let rule = "(at least one reference such as \"env:STRIPE_SECRET\", two while rotating: without one \
                nothing is accepted)";
    let empty = format!("line 8: sources.s.secrets: is empty {rule}");
    let three = format!("line 8: sources.s.secrets: has 3 {rule}");
    check_changed(&[
        ("secrets = [\"env:S\"]", "secrets = []", &empty),
        ("secrets = [\"env:S\"]", "secrets = [\"env:A\", \"env:B\", \"env:C\"]", &three),
        (
            "env:S",
            "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
            "line 8: sources.s.secrets[0]: is not a reference; a secret itself must not stand here (a reference \
             to a secret, such as env:ACME_WEBHOOK_SECRET)",
        ),
        (
            "env:S",
            "ssm:/s",
            "line 8: sources.s.secrets[0]: is known on AWS alone: this backend resolves only env: references \
             (env:NAME)",
        ),
    ]);
}

#[test]
fn a_value_that_cannot_be_is_refused() {
    check(&[
        (
            "tennant = 1",
            &["line 11: sources.s.tennant: is not a key; did you mean \"tenant\"? (one of tenant, scheme, \
               signature, secrets, destination, event_id, event_type, deadline, scope, payload_version)"],
        ),
        (
            "destination = \"elsewhere\"",
            &[
                "line 11: sources.s.destination: no destination is named \"elsewhere\" (a destination that serves \
               the source's tenant)",
            ],
        ),
        (
            "deadline = \"data.cutoff\"",
            &[
                "line 11: sources.s.deadline: is neither a header nor a JSON pointer (\"header:NAME\", or a JSON \
               pointer such as \"/data/id\")",
            ],
        ),
        (
            "scope = \"/a~\"",
            &[
                "line 11: sources.s.scope: has a ~ that is neither ~0 nor ~1 (a JSON pointer of at most 16 names, \
               such as /data/id)",
            ],
        ),
        (
            "payload_version = -1",
            &["line 11: sources.s.payload_version: is -1 (a whole number from 0 to 4294967295)"],
        ),
        (
            "signature = {}",
            &[
                "line 11: sources.s.signature: is for the scheme \"hmac\" alone (the other schemes say how they \
               sign)",
            ],
        ),
    ]);
    check_changed(&[
        (
            "sources.s",
            "sources.\"a/b\"",
            "line 5: sources.\"a/b\": has '/' at byte 1 (1 to 64 of A-Z a-z 0-9 . _ -)",
        ),
        ("\"acme\"", "\"\"", "line 6: sources.s.tenant: is empty (1 to 64 of A-Z a-z 0-9 . _ -)"),
        (
            "\"acme\"",
            "\"other\"\ndestination = \"d\"",
            "line 7: sources.s.destination: \"d\" does not serve other (a destination that serves the source's \
             tenant)",
        ),
        (
            "github\"",
            "none\"",
            "line 7: sources.s.scheme: is \"none\" (\"standard-webhooks\", \"github\", \"stripe\" or \"hmac\")",
        ),
        (
            "\"github\"",
            "\"hmac\"",
            "line 5: sources.s.signature: is missing (scheme \"hmac\" needs it: header, encoding, input)",
        ),
        (
            "header:X-GitHub-Event",
            "a b",
            "line 10: sources.s.event_type: has ' ' at byte 1 (\"header:NAME\", a JSON pointer such as \"/type\", \
             or an event type)",
        ),
    ]);
}

#[test]
fn how_a_sender_signs_is_described_without_a_gap() {
    let rows: &[(&str, &[&str])] = &[
        (
            "",
            &[
                "header: is missing (the name of a header, such as \"x-signature\")",
                "encoding: is missing (\"hex\" or \"base64\")",
                "input: is missing ({body} once, {timestamp} at most once, and text, such as \
                 \"{timestamp}.{body}\")",
            ],
        ),
        (
            "header = \"a b\", encoding = \"hex\", input = \"{body}\"",
            &["header: names no header (the name of a header, such as \"x-signature\")"],
        ),
        (
            "header = \"h\", encoding = \"rot13\", input = \"{body}\"",
            &["encoding: is \"rot13\" (\"hex\" or \"base64\")"],
        ),
        (
            "header = \"h\", encoding = \"hex\", input = \"{url}{body}\"",
            &[
                "input: \"{url}\" is nothing to put there ({body} once, {timestamp} at most once, and text, such as \
               \"{timestamp}.{body}\")",
            ],
        ),
        (
            "header = \"h\", encoding = \"hex\", input = \"constant\"",
            &[
                "input: has no {body}: anybody could send another one ({body} once, {timestamp} at most once, and \
               text, such as \"{timestamp}.{body}\")",
            ],
        ),
        (
            "header = \"h\", encoding = \"hex\", input = \"{body}{body}\"",
            &["input: has a place twice ({body} once, {timestamp} at most once, and text, such as \
               \"{timestamp}.{body}\")"],
        ),
        (
            "header = \"h\", encoding = \"hex\", input = \"{timestamp}.{body}\"",
            &["timestamp: is missing (the header of the {timestamp} of input)"],
        ),
        (
            "header = \"h\", encoding = \"hex\", input = \"{body}\", timestamp = \"t\"",
            &["timestamp: is not signed: anybody could renew it ({timestamp} within input)"],
        ),
        (
            "header = \"h\", encoding = \"hex\", input = \"{body}\", tolerance = \"1m\"",
            &["tolerance: is given without timestamp (beside the header of a timestamp)"],
        ),
        (
            "header = \"h\", encoding = \"hex\", input = \"{timestamp}{body}\", timestamp = \"t\", tolerance = \"2h\"",
            &["tolerance: is 2h00m (from 1s to 3600s)"],
        ),
        (
            "header = \"h\", encoding = \"hex\", input = \"{body}\", prefix = \"a b\"",
            &[
                "prefix: cannot stand in a header (what stands before the signature, such as \"sha256=\": at most \
               32 visible ASCII characters)",
            ],
        ),
    ];
    for (signature, expected) in rows {
        let source = SOURCE.replace("\"github\"", "\"hmac\"");
        let found = faults(&format!("{DESTINATION}{source}signature = {{ {signature} }}\n"));
        let expected: Vec<_> =
            expected.iter().map(|fault| format!("line 11: sources.s.signature.{fault}")).collect();
        assert_eq!(found, expected, "\nfor\n{signature}");
    }
}
