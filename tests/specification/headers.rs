//! Header fields that a destination may ask for: names, values, and what each refusal says.

use waybill_domain::destination::SecretRef;
use waybill_domain::static_header::{StaticHeader, StaticHeaderName, check_value};

#[test]
fn a_name_is_a_token_that_neither_waybill_nor_http_writes() {
    let longest = "x".repeat(64);
    for (text, kept) in [
        ("x-api-key", "x-api-key"),
        ("X-Api-KEY", "x-api-key"),
        ("authorization", "authorization"),
        ("!#$%&'*+-.^_`|~09", "!#$%&'*+-.^_`|~09"),
        ("webhooks", "webhooks"),
        ("waybills", "waybills"),
        (&longest, &longest),
    ] {
        let name = StaticHeaderName::parse("headers", text).unwrap();
        assert_eq!((name.as_str(), &*name.to_string()), (kept, kept), "{text}");
    }
    let too_long = "x".repeat(65);
    for (text, fault) in [
        ("", "is not the name of a header"),
        (&too_long, "is not the name of a header"),
        ("x api", "is not the name of a header"),
        ("x-api\r\nx-other", "is not the name of a header"),
        ("x:", "is not the name of a header"),
        ("x-é", "is not the name of a header"),
        ("webhook-id", "is reserved"),
        ("Webhook-Anything", "is reserved"),
        ("waybill-attempt", "is reserved"),
        ("HOST", "is reserved"),
        ("content-length", "is reserved"),
        ("idempotency-key", "is reserved"),
        ("traceparent", "is reserved"),
        ("transfer-encoding", "is reserved"),
    ] {
        let refused = StaticHeaderName::parse("headers", text).unwrap_err();
        assert_eq!((&*refused.field, &*refused.fault), ("headers", fault), "{text:?}");
        assert!(refused.rule.contains("such as x-api-key"), "{text:?}: {refused}");
    }
}

#[test]
fn a_value_cannot_begin_another_header_and_is_never_repeated() {
    let longest = "v".repeat(4096);
    for good in ["v", "Bearer a b", "a\"b", &longest] {
        assert_eq!(check_value("headers.x", good), Ok(()), "{good:.20}");
    }
    let too_long = "v".repeat(4097);
    for (text, fault) in [
        ("", "is empty"),
        (&too_long, "is too long"),
        ("canary\r\nx: y", "has a control character, such as a line break at its end"),
        ("canary\n", "has a control character, such as a line break at its end"),
        ("can\u{7f}ary", "has a control character, such as a line break at its end"),
        ("canaryé", "is not ASCII"),
        (" canary", "begins or ends with a space"),
        ("canary ", "begins or ends with a space"),
    ] {
        let refused = check_value("headers.x", text).unwrap_err();
        assert_eq!((&*refused.field, &*refused.fault), ("headers.x", fault), "{text:?}");
        assert_eq!(refused.rule, "1 to 4096 printable characters of ASCII");
        assert!(!refused.to_string().contains("canary"));
    }
}

#[test]
fn a_header_is_written_with_the_reference_to_its_value() {
    let name = StaticHeaderName::parse("headers", "X-Api-Key").unwrap();
    let header = StaticHeader { name, value: SecretRef::Ssm("/acme/key".to_owned()) };
    assert_eq!(header.to_string(), "x-api-key: ssm:/acme/key");
}
