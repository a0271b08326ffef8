//! `headers` of a destination: what is read, and what is refused before anything is sent.

use waybill_domain::destination::SecretRef;
use waybill_domain::static_header::{StaticHeader, StaticHeaderName};

use super::{DESTINATION, faults, read};

#[test]
fn header_fields_are_names_in_lower_case_and_references() {
    let line = "headers = { \"X-Api-Key\" = \"env:ACME_API_KEY\", authorization = \"env:ACME_TOKEN\" }\n";
    let config = read(&format!("{DESTINATION}{line}gone = \"dead_letter\"\n"));
    let header = |name: &str, variable: &str| StaticHeader {
        name: StaticHeaderName::parse("headers", name).unwrap(),
        value: SecretRef::Env(variable.to_owned()),
    };
    let [destination] = &config.destinations.into_values().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(
        destination.headers,
        [header("x-api-key", "ACME_API_KEY"), header("authorization", "ACME_TOKEN")]
    );
    assert_eq!(destination.headers[0].to_string(), "x-api-key: env:ACME_API_KEY");
}

#[test]
fn what_could_override_or_inject_is_refused_with_its_name() {
    let reserved = "is reserved (a header that neither Waybill nor HTTP itself writes, such as x-api-key)";
    let ours = [
        "webhook-id",
        "Webhook-Signature",
        "webhook-anything",
        "waybill-attempt",
        "WAYBILL-X",
        "idempotency-key",
        "content-type",
        "Content-Length",
        "HOST",
        "user-agent",
        "accept-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "Upgrade",
        "expect",
        "traceparent",
        "tracestate",
        "proxy-authorization",
        "proxy-connection",
    ];
    for name in ours {
        let fault = format!("line 5: destinations.d.headers.{name}: {reserved}");
        assert_eq!(faults(&format!("{DESTINATION}headers = {{ {name} = \"env:A\" }}\n")), [fault]);
    }
    let no_name = "is not the name of a header (1 to 64 letters, digits and hyphens, such as x-api-key)";
    let long = "x".repeat(65);
    for name in ["", "a b", "a:b", "a\\r\\nx-injected", "a\\u0000", "m\u{fc}ller", long.as_str()] {
        let found = faults(&format!("{DESTINATION}headers = {{ \"{name}\" = \"env:A\" }}\n"));
        assert!(found.len() == 1 && found[0].ends_with(no_name), "{name:?}: {found:?}");
        assert!(!found[0].contains(char::is_control), "{found:?}");
    }
}

#[test]
fn a_value_is_a_reference_and_never_echoed() {
    let rule = "a reference to a secret, such as env:ACME_WEBHOOK_SECRET";
    let many: String = (0..17).map(|n| format!("x{n} = \"env:A\", ")).collect();
    for (headers, fault) in [
        (
            "{ x-api-key = \"SENTINEL\" }",
            format!("headers.x-api-key: is not a reference; a secret itself must not stand here ({rule})"),
        ),
        ("{ x-api-key = 3 }", "headers.x-api-key: is a number (a text in quotes)".to_owned()),
        (
            "{ x-api-key = \"ssm:/acme/key\" }",
            "headers.x-api-key: is known on AWS alone: this backend resolves only env: references (env:NAME)"
                .to_owned(),
        ),
        (
            "{ x-api-key = \"env:A\", X-API-Key = \"env:B\" }",
            "headers.X-API-Key: is listed twice (each header once, in upper or lower case)".to_owned(),
        ),
        ("[\"x-api-key\"]", "headers: is a list (a table)".to_owned()),
        (
            &format!("{{ {} }}", many.trim_end_matches(", ")),
            "headers: has 17 (at most 16 headers)".to_owned(),
        ),
    ] {
        let expected = format!("line 5: destinations.d.{fault}");
        assert_eq!(faults(&format!("{DESTINATION}headers = {headers}\n")), [expected]);
    }
}
