//! What is taken from a source's request: from a header, from a place in the body, or from the
//! configuration.

use waybill_domain::destination::SecretRef;
use waybill_domain::identity::{EventType, TenantId};
use waybill_domain::source::{Place, Source, TypeFrom};
use waybill_domain::verify::Scheme;
use waybill_domain::verify::headers::Headers;

fn place(text: &str) -> Place {
    Place::parse("place", text).unwrap()
}

fn source(event_id: &str, event_type: &str) -> Source {
    Source {
        tenant: TenantId::parse("studio-9").unwrap(),
        scheme: Scheme::Github,
        secrets: vec![SecretRef::Env("S".to_owned())],
        destination: None,
        event_id: place(event_id),
        event_type: TypeFrom::Place(place(event_type)),
        deadline: Some(place("/data/cutoff_at")),
        scope: Some(place("/data/player")),
        payload_version: None,
    }
}

fn headers(lines: &[(&str, &str)]) -> Headers {
    lines.iter().copied().collect()
}

#[test]
fn facts_come_from_where_the_configuration_says() {
    let body = br#"{"type":"renewal.due","data":{"cutoff_at":"2026-08-09T18:00:00Z","player":77}}"#;
    let facts =
        source("header:Webhook-Id", "/type").read(&headers(&[("webhook-id", "msg_1")]), body).unwrap();
    assert_eq!((facts.event_id.as_str(), facts.event_type.as_str()), ("msg_1", "renewal.due"));
    assert_eq!(facts.deadline.unwrap().to_string(), "2026-08-09T18:00:00.000Z");
    assert_eq!(facts.scope.unwrap().as_str(), "77");

    let body = br#"{"a/b":[{"~":"e1"},{"~":"e2"}],"t":"x.y","data":{"cutoff_at":null}}"#;
    let facts = source("/a~1b/1/~0", "/t").read(&headers(&[]), body).unwrap();
    assert_eq!((facts.event_id.as_str(), facts.deadline, facts.scope), ("e2", None, None));
}

#[test]
fn a_source_that_takes_everything_from_headers_leaves_the_body_alone() {
    let source = Source {
        event_type: TypeFrom::Always(EventType::parse("push").unwrap()),
        deadline: None,
        scope: None,
        ..source("header:x-github-delivery", "/t")
    };
    let facts = source.read(&headers(&[("x-github-delivery", "d1")]), b"\xFF\xFE{").unwrap();
    assert_eq!((facts.event_id.as_str(), facts.event_type.as_str()), ("d1", "push"));
}

#[test]
fn what_cannot_be_is_refused_with_the_place_that_it_was_taken_from() {
    let good = br#"{"id":"e1","type":"a.b"}"#;
    let deep = |depth: usize| {
        format!(r#"{{"id":"e1","type":"a.b","x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth))
    };
    let rows: &[(&str, &str, &[u8], &str)] = &[
        ("/id", "/type", good, ""),
        ("/id", "/type", br#"{"id":12345678901234567890123,"type":"a.b"}"#, ""),
        ("/nope", "/type", good, "event_id: is missing (taken from /nope of the body)"),
        ("/id/deeper", "/type", good, "event_id: is missing"),
        ("header:x-id", "/type", good, "event_id: is missing (taken from the header x-id)"),
        ("header:x-odd", "/type", good, "event_id: is not visible ASCII (taken from the header x-odd)"),
        ("/id", "/type", br#"{"id":null,"type":"a.b"}"#, "event_id: is missing"),
        (
            "/id",
            "/type",
            br#"{"id":"","type":"a.b"}"#,
            "event_id: is empty (1 to 256 bytes of UTF-8 without control characters, taken from /id of the body)",
        ),
        ("/id", "/type", br#"{"id":"a\u0000","type":"a.b"}"#, "event_id: has '\\0' at byte 1"),
        ("/id", "/type", br#"{"id":"\ud800","type":"a.b"}"#, "event_id: is not valid Unicode"),
        ("/id", "/type", br#"{"id":1.0,"type":"a.b"}"#, "event_id: is neither a text nor a whole number"),
        ("/id", "/type", br#"{"id":["e1"],"type":"a.b"}"#, "event_id: is neither a text nor a whole number"),
        ("/id", "/type", br#"{"id":"e1"}"#, "type: is missing (taken from /type of the body)"),
        ("/id", "/type", br#"{"id":"e1","type":"a b"}"#, "type: has ' ' at byte 1"),
        (
            "/id",
            "/type",
            br#"{"id":"e1","type":"a.b","data":{"cutoff_at":"soon"}}"#,
            "deadline: \"soon\" is not a time",
        ),
        (
            "/id",
            "/type",
            br#"{"id":"e1","type":"a.b","data":{"cutoff_at":1786298400}}"#,
            "deadline: \"1786298400\" is not a time",
        ),
        ("/id", "/type", b"", "body: is not JSON"),
        ("/id", "/type", b"{", "body: is not JSON"),
        ("/id", "/type", b"{} {}", "body: is not JSON"),
        ("/id", "/type", b"[]", "event_id: is missing"),
        ("/id", "/type", b"7", "event_id: is missing"),
        ("/id", "/type", b"{\"a\":\"\xFF\xFE\"}", "body: is not UTF-8"),
        ("/id", "/type", b"{\"id\":\"e1\",\"type\":\"a.b\",\"x\":\"\0\"}", "body: is not JSON"),
        (
            "/id",
            "/type",
            br#"{"id":"e1","type":"a.b","\u0069d":"e2"}"#,
            "body: is not JSON: \"id\" is given twice",
        ),
        (
            "/id",
            "/type",
            br#"{"id":"e1","type":"a.b","type":"a.b"}"#,
            "body: is not JSON: \"type\" is given twice",
        ),
        ("/id", "/type", br#"{"id":"e1","type":"a.b","x":{"id":1,"id":2}}"#, ""),
        ("/id", "/type", deep(127).leak().as_bytes(), ""),
        ("/id", "/type", deep(128).leak().as_bytes(), ""),
        ("/id", "/type", deep(100_000).leak().as_bytes(), ""),
    ];
    let odd = [("x-odd", "\u{ee}")];
    for (event_id, event_type, body, expected) in rows {
        let read = source(event_id, event_type).read(&headers(&odd), body);
        let said = read.map_or_else(|invalid| invalid.to_string(), |_| String::new());
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]);
        assert!(said.starts_with(expected) && said.is_empty() == expected.is_empty(), "{shown}: {said}");
    }
}

/// RFC 6901: a position is 0, or digits that do not begin with one.
#[test]
fn a_position_in_a_list_is_written_in_one_way() {
    let body = br#"{"t":"x.y","ids":["e0","e1"],"00":"named so"}"#;
    let missing = "event_id: is missing";
    for (pointer, expected) in [
        ("/ids/0", "e0"),
        ("/ids/1", "e1"),
        ("/ids/00", missing),
        ("/ids/01", missing),
        ("/ids/+1", missing),
        ("/ids/-", missing),
        ("/ids/2", missing),
        ("/00", "named so"),
    ] {
        let read = source(pointer, "/t").read(&headers(&[]), body);
        let said = read.map_or_else(|invalid| invalid.to_string(), |facts| facts.event_id.to_string());
        assert!(said.starts_with(expected), "{pointer}: {said}");
    }
}

#[test]
fn a_place_is_a_header_or_a_pointer() {
    let rows = [
        ("header:webhook-id", ""),
        ("/a/b", ""),
        ("/", ""),
        ("id", "is neither a header nor a JSON pointer"),
        ("", "is neither a header nor a JSON pointer"),
        ("header:", "names no header"),
        ("header:a b", "names no header"),
        ("/a~2", "has a ~ that is neither ~0 nor ~1"),
        ("/a~", "has a ~ that is neither ~0 nor ~1"),
        ("/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16", ""),
        ("/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", "has too many names"),
    ];
    for (text, fault) in rows {
        let said = Place::parse("event_id", text).map_or_else(|invalid| invalid.fault, |_| String::new());
        assert_eq!(said, fault, "{text:?}");
    }
}
