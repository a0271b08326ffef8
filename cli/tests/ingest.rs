//! `POST /v1/events`: what is taken, what is refused and how, and that nothing bad stays behind.

mod support;

use std::time::{Duration, Instant};

use support::http::{self, Answer};
use support::{Home, Serving, TOKEN, text};

const EVENT: &str = r#"{"event_id":"e1","tenant":"acme","type":"lease.signed","payload":{"a":1}}"#;
type Headers<'h> = &'h [(&'h str, &'h str)];

const JSON: (&str, &str) = ("content-type", "application/json");

fn post(serving: &Serving, headers: Headers<'_>, body: &[u8]) -> Answer {
    http::post(&serving.address, "/v1/events", headers, body)
}

#[test]
fn bad_input_is_refused_by_field_and_rule_and_the_process_lives_on() {
    let home = Home::new();
    let mut serving = home.serve(&[]);
    let rows = [
        ("", 400, "invalid_json", "event"),
        ("not json", 400, "invalid_json", "event"),
        ("\"text\"", 400, "invalid_json", "event"),
        ("{\"payload\":\"\0\"}", 400, "invalid_json", "event"),
        (r#"{"event_id":"e","tenant":"acme","type":"lease.x"}"#, 400, "invalid_field", "payload"),
        (r#"{"event_id":"e","tenant":"ac/me","type":"lease.x","payload":1}"#, 400, "invalid_field", "tenant"),
        (
            r#"{"event_id":"e","tenant":"acme","tenant":"t2","type":"lease.x","payload":1}"#,
            400,
            "invalid_field",
            "tenant",
        ),
        (
            r#"{"event_id":"e","tenant":"acme","type":"lease.x","payload":1,"deadline":"2099-01-01T00:00:00"}"#,
            400,
            "invalid_field",
            "deadline",
        ),
        (
            r#"{"event_id":"e","tenant":"acme","type":"lease.x","payload":1,"deadline":"2020-01-01T00:00:00Z"}"#,
            400,
            "invalid_field",
            "deadline",
        ),
        (
            r#"{"event_id":"e","tenant":"acme","type":"lease.x","payload":1,"destination":"nope"}"#,
            422,
            "unknown_destination",
            "destination",
        ),
        (r#"{"event_id":"e","tenant":"acme","type":"other.x","payload":1}"#, 422, "no_subscriber", "type"),
    ];
    for (body, status, code, field) in rows {
        let answer = serving.publish(body);
        assert_eq!((answer.status, answer.code(), answer.field()), (status, code, field), "{body:?}");
        assert!(
            text(&answer.body["error"], "message").starts_with(&format!("{field}: ")),
            "{:?}",
            answer.body
        );
    }
    assert!(home.deliveries().is_empty());
    assert!(serving.is_alive());
    assert_eq!(serving.publish(EVENT).status, 202);
}

#[test]
fn c87_only_a_producers_token_opens_and_only_for_its_tenants() {
    let more = "[destinations.o]\ntenants = [\"other\"]\nurl = \"https://o.example.com/\"\n\
                secrets = [\"env:D_SECRET\"]\nevent_types = [\"*\"]\n\
                [producers.gone]\ntenants = [\"other\"]\ntokens = [\"env:NO_SUCH_TOKEN\", \"env:EMPTY_TOKEN\"]\n";
    let home = Home::with("https://hooks.example.com/in", more);
    let serving = home.serve(&[]);
    let right = format!("Bearer {TOKEN}");
    let longer = format!("Bearer {TOKEN}x");
    let rows: [(Headers<'_>, u16, &str); 8] = [
        (&[JSON], 401, "unauthorized"),
        (&[JSON, ("authorization", "Bearer wrong")], 401, "unauthorized"),
        (&[JSON, ("authorization", "Bearer ")], 401, "unauthorized"),
        (&[JSON, ("authorization", &longer)], 401, "unauthorized"),
        (&[JSON, ("authorization", &right[..right.len() - 1])], 401, "unauthorized"),
        (&[JSON, ("authorization", TOKEN)], 401, "unauthorized"),
        (&[("content-type", "text/plain"), ("authorization", "Bearer wrong")], 401, "unauthorized"),
        (&[JSON, ("authorization", &right)], 202, ""),
    ];
    for (headers, status, code) in rows {
        let answer = post(&serving, headers, EVENT.as_bytes());
        assert_eq!((answer.status, answer.code()), (status, code), "{headers:?}");
        assert_eq!(answer.head.contains("\r\nwww-authenticate: bearer"), status == 401, "{}", answer.head);
    }
    let answer = serving.publish(EVENT.replace("acme", "other"));
    assert_eq!((answer.status, answer.code()), (403, "forbidden"));
    assert_eq!(home.deliveries().len(), 1);
    let log = home.log();
    assert!(log.contains("env:NO_SUCH_TOKEN") && !log.contains(TOKEN), "{log}");
}

#[test]
fn with_allow_local_a_caller_on_this_machine_needs_no_token_but_a_presented_one_must_be_right() {
    let home = Home::new();
    let serving = home.serve(&["--allow-local"]);
    assert_eq!(post(&serving, &[JSON], EVENT.as_bytes()).status, 202);
    let wrong = [JSON, ("authorization", "Bearer wrong")];
    assert_eq!(post(&serving, &wrong, EVENT.as_bytes()).status, 401);
    let forwarded = [JSON, ("x-forwarded-for", "203.0.113.9")];
    assert_eq!(post(&serving, &forwarded, EVENT.as_bytes()).status, 401);
    // A page whose own name leads here, and one that asks across.
    let length = EVENT.len();
    let rebound = format!(
        "POST /v1/events HTTP/1.1\r\nhost: evil.example:8787\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{EVENT}"
    );
    assert_eq!(http::raw(&serving.address, rebound.as_bytes()).status, 401);
    assert_eq!(post(&serving, &[JSON, ("origin", "http://evil.example")], EVENT.as_bytes()).status, 401);
}

#[test]
fn c81_a_body_that_is_not_utf_8_is_a_400_and_never_a_500() {
    let home = Home::new();
    let mut serving = home.serve(&["--allow-local"]);
    let body = EVENT.replace(r#"{"a":1}"#, "{\"a\":\"?\"}").into_bytes();
    let body: Vec<u8> = body.into_iter().map(|byte| if byte == b'?' { 0xff } else { byte }).collect();
    let answer = post(&serving, &[JSON], &body);
    assert_eq!((answer.status, answer.code()), (400, "invalid_json"));
    assert!(home.deliveries().is_empty() && serving.is_alive());
}

#[test]
fn c59_only_json_is_taken_and_nothing_compressed() {
    let home = Home::new();
    let serving = home.serve(&["--allow-local"]);
    let rows: [(Headers<'_>, u16); 7] = [
        (&[], 415),
        (&[JSON, ("content-encoding", "gzip")], 415),
        (&[JSON, ("content-encoding", "identity")], 202),
        (&[("content-type", "text/plain")], 415),
        (&[("content-type", "application/jsonx")], 415),
        (&[("content-type", "application/x-www-form-urlencoded")], 415),
        (&[("content-type", "Application/JSON; charset=utf-8")], 202),
    ];
    for (headers, status) in rows {
        assert_eq!(post(&serving, headers, EVENT.as_bytes()).status, status, "{headers:?}");
    }
}

#[test]
fn a_body_over_the_limit_is_refused_before_any_work_whether_it_says_so_or_not() {
    let home = Home::new();
    let mut serving = home.serve(&[]);
    let most = 4 * 1024 * 1024 / 3 * 4 + 16 * 1024;
    // Announced, and refused before the token is looked at.
    let answer = post(&serving, &[JSON], &vec![b' '; most + 1]);
    assert_eq!((answer.status, answer.code()), (413, "payload_too_large"));
    // In chunks that announce nothing.
    let head = format!(
        "POST /v1/events HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         authorization: Bearer {TOKEN}\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n",
        most + 1
    );
    let mut request = head.into_bytes();
    request.extend(vec![b' '; most + 1]);
    request.extend(b"\r\n0\r\n\r\n");
    let answer = http::raw(&serving.address, &request);
    assert_eq!((answer.status, answer.code()), (413, "payload_too_large"));
    // Small enough as a body, too large as a payload.
    let payload = "x".repeat(4 * 1024 * 1024);
    let answer = serving.publish(EVENT.replace("{\"a\":1}", &format!("\"{payload}\"")));
    assert_eq!((answer.status, answer.code(), answer.field()), (413, "payload_too_large", "payload"));
    assert!(home.deliveries().is_empty());
    assert!(serving.is_alive());
}

#[test]
fn the_same_event_again_is_answered_alike_and_other_bytes_are_a_conflict_with_both_digests() {
    let home = Home::new();
    let serving = home.serve(&[]);
    let (first, again) = (serving.publish(EVENT), serving.publish(EVENT));
    assert_eq!((first.status, again.status), (202, 202));
    let id = |answer: &Answer| answer.body["deliveries"][0]["delivery_id"].clone();
    assert_eq!(id(&first), id(&again));
    assert_eq!(again.body["deliveries"][0]["repeated"], true);
    let stored = home.deliveries().remove(0);
    // C91: other key order, 1 for 1.0, a trailing blank within the payload.
    for other in [r#"{"a":1.0}"#, r#"{"a":1 }"#, r#"{"b":2,"a":1}"#] {
        let answer = serving.publish(EVENT.replace(r#"{"a":1}"#, other));
        assert_eq!((answer.status, answer.code(), answer.field()), (409, "conflict", "event_id"));
        assert_eq!(answer.body["error"]["stored_sha256"], stored["payload"]["sha256"]);
        assert_ne!(answer.body["error"]["given_sha256"], stored["payload"]["sha256"]);
    }
    assert_eq!(home.deliveries().len(), 1);
}

#[test]
fn c105_deep_nesting_is_only_bytes_and_the_next_request_is_fine() {
    let home = Home::new();
    let mut serving = home.serve(&[]);
    for (nth, depth) in [127, 128, 31_000].into_iter().enumerate() {
        let payload = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let event = EVENT.replace(r#"{"a":1}"#, &payload).replace("e1", &format!("deep-{nth}"));
        assert_eq!(serving.publish(event).status, 202, "{depth} deep");
    }
    let open = EVENT.replace(r#"{"a":1}}"#, &"{\"a\":".repeat(31_000));
    assert_eq!(serving.publish(open).status, 400);
    assert!(serving.is_alive());
    assert_eq!(serving.publish(EVENT).status, 202);
}

#[test]
fn other_paths_and_methods_are_answered_in_json_and_health_is_told() {
    let home = Home::new();
    let serving = home.serve(&[]);
    let get = |path: &str| {
        http::raw(
            &serving.address,
            format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes(),
        )
    };
    let healthy = get("/healthz");
    assert_eq!((healthy.status, text(&healthy.body, "status")), (200, "ok"));
    let wrong = get("/v1/events");
    assert_eq!((wrong.status, wrong.code()), (405, "method_not_allowed"));
    assert!(wrong.head.contains("\r\nallow: post"), "{}", wrong.head);
    let described = get("/v1/openapi.json");
    assert_eq!((described.status, text(&described.body, "openapi")), (200, "3.1.0"));
    let nothing = get("/v1/nothing");
    assert_eq!((nothing.status, nothing.code()), (404, "not_found"));
}

/// Reading goes on while nothing can be written, so a look at the store would call it healthy.
#[test]
fn health_tells_that_nothing_can_be_written_and_that_it_can_again() {
    let home = Home::new();
    let serving = home.serve(&[]);
    let healthy =
        || http::raw(&serving.address, b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let other = rusqlite::Connection::open(home.path("waybill.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = healthy();
    assert_eq!((answer.status, answer.code()), (503, "unavailable"));
    other.execute_batch("ROLLBACK").unwrap();
    let began = Instant::now();
    while healthy().status != 200 {
        assert!(began.elapsed() < Duration::from_secs(30), "it is not healthy again");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_store_that_refuses_is_a_503_and_the_same_event_goes_through_afterwards() {
    let home = Home::new();
    let serving = home.serve(&[]);
    let other = rusqlite::Connection::open(home.path("waybill.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = serving.publish(EVENT);
    assert_eq!((answer.status, answer.code()), (503, "unavailable"));
    assert!(answer.head.contains("\r\nretry-after: 1"), "{}", answer.head);
    other.execute_batch("ROLLBACK").unwrap();
    assert!(home.deliveries().is_empty());
    assert_eq!(serving.publish(EVENT).status, 202);
}
