//! An event as its producer writes it: what is taken, and what every refusal names.

use waybill_service::event::{Event, MAX_PAYLOAD_BYTES};

const GOOD: &str = r#"{"event_id":"evt_1","tenant":"acme","type":"lease.paid","payload":{}}"#;

fn refusal(json: &[u8]) -> String {
    match Event::parse(json) {
        Ok(event) => panic!("{} was taken: {event:?}", String::from_utf8_lossy(json)),
        Err(invalid) => invalid.to_string(),
    }
}

#[test]
fn a_refusal_names_the_field_its_fault_and_the_rule() {
    let with = |field: &str, value: &str| {
        GOOD.replace(",\"payload\":{}", &format!(",\"{field}\":{value},\"payload\":{{}}"))
    };
    let too_long = format!("{}: is not a field of an event", "f".repeat(64));
    let rows: Vec<(String, &str)> = vec![
        ("".into(), "event: is empty"),
        ("  \n".into(), "event: is empty"),
        ("{".into(), "event: is not a JSON object"),
        ("not json".into(), "event: is not a JSON object"),
        ("[]".into(), "event: is not a JSON object"),
        ("\"text\"".into(), "event: is not a JSON object"),
        (format!("{GOOD} {GOOD}"), "event: is not a JSON object"),
        ("{}".into(), "event_id: is missing"),
        (GOOD.replace(",\"payload\":{}", ""), "payload: is missing"),
        (GOOD.replace("\"event_id\":\"evt_1\",", ""), "event_id: is missing"),
        (GOOD.replace("\"tenant\":\"acme\",", ""), "tenant: is missing"),
        (GOOD.replace("\"type\":\"lease.paid\",", ""), "type: is missing"),
        (GOOD.replace("evt_1", ""), "event_id: is empty (1 to 256 bytes"),
        (GOOD.replace("evt_1", &"e".repeat(257)), "event_id: has 257 bytes"),
        (GOOD.replace("evt_1", "a\\u0000b"), "event_id: has '\\0' at byte 1"),
        (GOOD.replace("evt_1", "a\\nb"), "event_id: has '\\n'"),
        (GOOD.replace("\"evt_1\"", "7"), "event_id: is not a string"),
        (GOOD.replace("\"evt_1\"", "null"), "event_id: is missing"),
        (GOOD.replace("\"evt_1\"", "\"\\ud800\""), "event_id: is not a string"),
        (GOOD.replace("acme", "ac/me"), "tenant: has '/' at byte 2 (1 to 64 of A-Z a-z 0-9 . _ -)"),
        (GOOD.replace("acme", "äcme"), "tenant: has 'ä' at byte 0"),
        (GOOD.replace("acme", &"a".repeat(65)), "tenant: has 65 bytes"),
        (GOOD.replace("lease.paid", "lease paid"), "type: has ' ' at byte 5"),
        (with("destination", "\"a b\""), "destination: has ' ' at byte 1"),
        (with("scope", &format!("\"{}\"", "s".repeat(129))), "scope: has 129 bytes"),
        (with("deadline", "\"2026-08-09T02:30:00\""), "deadline: has no offset"),
        (with("deadline", "\"soon\""), "deadline: \"soon\" is not a time"),
        (with("deadline", "1767225600"), "deadline: is not a string"),
        (
            with("not_before", "\"2026-13-01T00:00:00Z\""),
            "not_before: \"2026-13-01T00:00:00Z\" is not a time",
        ),
        (with("payload_version", "-1"), "payload_version: is not such a number"),
        (with("payload_version", "1.0"), "payload_version: is not such a number"),
        (with("content_type", "\"json\""), "content_type: is not a media type"),
        (with("content_type", "\"/json\""), "content_type: is not a media type"),
        (with("content_type", "\"text/\""), "content_type: is not a media type"),
        (with("content_type", "\" / \""), "content_type: is not a media type"),
        (with("content_type", &format!("\"a/{}\"", "b".repeat(127))), "content_type: is too long"),
        (with("content_type", "\"a/b\\r\\nx: y\""), "content_type: has a character that no header can carry"),
        (with("dead_line", "\"2026-08-09T02:30:00Z\""), "dead_line: is not a field of an event"),
        (with("a\\nb", "1"), "a\\nb: is not a field of an event"),
        (with(&"f".repeat(100_000), "1"), &too_long),
        (with("payload_base64", "\"e30=\""), "payload_base64: is given beside payload"),
        (with("tenant", "\"t2\""), "tenant: is given twice"),
        (GOOD.replace("\"payload\":{}", "\"payload_base64\":\"e30=\""), "content_type: is missing"),
        (
            GOOD.replace("\"payload\":{}", "\"payload_base64\":\"e30\",\"content_type\":\"a/b\""),
            "payload_base64: is not base64",
        ),
    ];
    for (json, start) in rows {
        let refusal = refusal(json.as_bytes());
        assert!(refusal.starts_with(start), "{json}\n  is refused with {refusal:?}\n  and not {start:?}");
    }
}

fn payload_of(json: &str) -> Vec<u8> {
    Event::parse(json.as_bytes()).unwrap_or_else(|e| panic!("{json}: {e}")).payload.to_vec()
}

#[test]
fn c91_c101_c103_the_payload_is_the_very_bytes_written() {
    let rows = [
        r#"{"a":1.0,"b":-0,"c":1E2,"d":1234567890123456789012345678901234567890}"#,
        r#"{"b":2,"a":1}"#,
        r#"{"a": 1 , "a": 2}"#,
        r#"{"a":"\u0000\u001B\/"}"#,
        "{\"note\":\"✨🎉\u{2028}\u{ffff}\u{fffe}\u{7f}\"}",
        "null",
        "true",
        "\"text\"",
        "9007199254740993",
        "[ ]",
    ];
    for payload in rows {
        let json = GOOD.replace("{}", &payload.replace('$', "$$"));
        assert_eq!(payload_of(&json), payload.as_bytes(), "{payload}");
    }
    let base64 = GOOD
        .replace("\"payload\":{}", "\"payload_base64\":\"AAH/Cg==\",\"content_type\":\"application/x-raw\"");
    assert_eq!(payload_of(&base64), [0, 1, 255, 10], "a trailing newline survives");
}

#[test]
fn c103_a_raw_control_byte_in_a_string_is_not_json() {
    for byte in [0_u8, 7, 10, 31] {
        let mut json = GOOD.replace("{}", "{\"a\":\"x\"}").into_bytes();
        let at = json.iter().position(|b| *b == b'x').unwrap();
        json[at] = byte;
        assert!(refusal(&json).starts_with("event: is not a JSON object"), "byte {byte}");
    }
    let not_utf8 = GOOD.replace("evt_1", "evt_?").into_bytes();
    let not_utf8: Vec<u8> = not_utf8.into_iter().map(|b| if b == b'?' { 0xff } else { b }).collect();
    assert!(Event::parse(&not_utf8).is_err());
}

#[test]
fn c105_deep_nesting_is_taken_as_it_is_because_nobody_parses_it() {
    for depth in [127, 128, 31_000, 400_000] {
        let payload = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(payload_of(&GOOD.replace("{}", &payload)).len(), 2 * depth);
        let unclosed = GOOD.replace("{}", &"{\"a\":".repeat(depth));
        assert!(refusal(unclosed.as_bytes()).starts_with("event: is not a JSON object"));
    }
}

#[test]
fn a_payload_over_the_limit_is_refused_and_one_at_the_limit_is_taken() {
    let json_of = |bytes: usize| GOOD.replace("{}", &format!("\"{}\"", "x".repeat(bytes - 2)));
    assert_eq!(payload_of(&json_of(MAX_PAYLOAD_BYTES)).len(), MAX_PAYLOAD_BYTES);
    let refusal = refusal(json_of(MAX_PAYLOAD_BYTES + 1).as_bytes());
    assert_eq!(refusal, "payload: has 4194305 bytes (at most 4194304 bytes)");
}

#[test]
fn a_content_type_of_128_characters_is_taken() {
    let longest = format!("a/{}", "b".repeat(126));
    let json = GOOD.replace("\"payload\":{}", &format!("\"content_type\":\"{longest}\",\"payload\":{{}}"));
    assert_eq!(Event::parse(json.as_bytes()).unwrap().content_type, longest);
}

#[test]
fn absent_and_null_are_the_same_for_optional_fields() {
    let json = GOOD
        .replace("{}", "{},\"scope\":null,\"deadline\":null,\"destination\":null,\"payload_version\":null");
    let event = Event::parse(json.as_bytes()).unwrap();
    assert_eq!(
        (event.scope, event.deadline, event.destination, event.payload_version),
        (None, None, None, None)
    );
}
