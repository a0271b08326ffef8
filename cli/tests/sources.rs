//! `POST /v1/sources/{source}` and signed events: what is verified is forwarded as it is, and nothing
//! else leaves a trace.

mod support;

use std::time::Duration;

use support::http::{self, Answer};
use support::recipient::Recipient;
use support::{Home, SECRET, SOURCES, Serving, text};

/// More of the source `game`, another source, a producer that signs, and one more destination.
const MORE: &str = r#"
deadline = "/data/until"
scope = "/data/player"
payload_version = 3
[sources.bare]
tenant = "acme"
scheme = "github"
secrets = ["env:NO_SUCH_SECRET", "env:SHORT_SECRET"]
event_id = "header:x-github-delivery"
event_type = "lease.imported"
[producers.signing]
tenants = ["acme"]
secrets = ["env:SIGNING_SECRET"]
[destinations.second]
tenants = ["acme"]
url = "https://second.example.com/"
secrets = ["env:D_SECRET"]
event_types = ["lease.imported"]
"#;

/// "Hello, World!" and its signature, of GitHub's documentation.
const HELLO: &[u8] = b"Hello, World!";
const HELLO_SIGNED: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

fn sources() -> String {
    format!("{SOURCES}{MORE}")
}

fn home() -> Home {
    Home::with("https://hooks.example.com/in", &sources())
}

fn code_host(serving: &Serving, source: &str, more: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut headers = vec![("x-hub-signature-256", HELLO_SIGNED), ("x-github-delivery", "d-1")];
    headers.extend(more);
    http::post(&serving.address, &format!("/v1/sources/{source}"), &headers, body)
}

#[test]
fn c79_a_verified_webhook_reaches_its_recipient_byte_for_byte() {
    let recipient = Recipient::start(|_, _| (200, Duration::ZERO));
    let home = Home::with(&recipient.url, &sources());
    let serving = home.serve(&["--allow-local"]);
    let body = "{ \"type\":\"renewal.due\",\"data\":{\"until\":\"2099-01-01T00:00:00Z\",\"player\":77},\"x\":\"✨\\u001B\\u0000\u{2028}\",\"n\":1.0 }\n";
    let answer = serving.signed("/v1/sources/game", "msg_1", Duration::ZERO, body.as_bytes());
    assert_eq!(answer.status, 202, "{:?}", answer.body);
    let ended = home.wait_until_all_ended(1).remove(0);
    assert_eq!((text(&ended, "state"), text(&ended, "scope")), ("succeeded", "77"));
    assert_eq!(text(&ended, "deadline"), "2099-01-01T00:00:00.000Z");
    let requests = recipient.requests();
    assert_eq!(requests[0].body, body.as_bytes());
    assert_eq!(requests[0].header("waybill-event-id"), "msg_1");
    assert_eq!(requests[0].header("waybill-event-type"), "renewal.due");
    assert_eq!(requests[0].header("content-type"), "application/json");
}

#[test]
fn a_source_without_a_destination_fans_out_and_what_nobody_subscribes_to_is_answered_so() {
    let home = home();
    let serving = home.serve(&[]);
    let answer = code_host(&serving, "code", &[("content-type", "text/plain")], HELLO);
    let to = |nth: usize| text(&answer.body["deliveries"][nth], "destination");
    assert_eq!((answer.status, to(0), to(1)), (202, "d", "second"));
    let again = code_host(&serving, "code", &[], HELLO);
    assert_eq!((again.status, again.body["deliveries"][1]["repeated"].as_bool()), (202, Some(true)));
    assert_eq!(home.deliveries().len(), 2);
    let body = br#"{"type":"other.thing","data":{}}"#;
    let home = Home::with("https://hooks.example.com/in", &sources().replace("destination = \"d\"\n", ""));
    let serving = home.serve(&[]);
    let answer = serving.signed("/v1/sources/game", "msg_2", Duration::ZERO, body);
    assert_eq!((answer.status, answer.code(), answer.field()), (422, "no_subscriber", "type"));
}

#[test]
fn what_is_not_verified_or_cannot_be_leaves_nothing_behind() {
    let home = home();
    let mut serving = home.serve(&["--allow-local"]);
    let soon = Duration::ZERO;
    let rows = [
        (code_host(&serving, "code", &[], b"Hello, World"), 401, "invalid_signature", "x-hub-signature-256"),
        (
            http::post(&serving.address, "/v1/sources/code", &[], HELLO),
            401,
            "invalid_signature",
            "x-hub-signature-256",
        ),
        (code_host(&serving, "nobody", &[], HELLO), 404, "not_found", ""),
        // C87: no secret, or one that is too short.
        (code_host(&serving, "bare", &[], HELLO), 503, "unavailable", ""),
        (
            code_host(&serving, "code", &[("content-encoding", "gzip")], HELLO),
            415,
            "unsupported_media_type",
            "",
        ),
        (
            serving.signed("/v1/sources/game", "m", Duration::from_secs(302), b"{}"),
            401,
            "stale_signature",
            "webhook-timestamp",
        ),
        (serving.signed("/v1/sources/game", "m", soon, b"{\"a\":\"\xFF\xFE\"}"), 400, "invalid_json", "body"),
        (serving.signed("/v1/sources/game", "m", soon, b"{\"type\":\"\0\"}"), 400, "invalid_json", "body"),
        (
            serving.signed("/v1/sources/game", "m", soon, br#"{"type":"lease.a","type":"lease.b"}"#),
            400,
            "invalid_json",
            "body",
        ),
        (serving.signed("/v1/sources/game", "m", soon, br#"{"data":{}}"#), 400, "invalid_field", "type"),
        (
            serving.signed("/v1/sources/game", "m", soon, br#"{"type":"renewal.x","data":{}}"#),
            400,
            "invalid_field",
            "deadline",
        ),
        (
            serving.signed(
                "/v1/sources/game",
                "m",
                soon,
                br#"{"type":"renewal.x","data":{"until":"2020-01-01T00:00:00Z"}}"#,
            ),
            400,
            "invalid_field",
            "deadline",
        ),
    ];
    for (answer, status, code, field) in rows {
        assert_eq!(
            (answer.status, answer.code(), answer.field()),
            (status, code, field),
            "{:?}",
            answer.body
        );
        let challenged = answer.head.contains("\r\nwww-authenticate: signature");
        assert_eq!(challenged, status == 401, "{}", answer.head);
    }
    let large = vec![b' '; 4 * 1024 * 1024 + 1];
    let answer = serving.signed("/v1/sources/game", "m", soon, &large);
    assert_eq!((answer.status, answer.code()), (413, "payload_too_large"));
    // C93: an ID is never made up, so two events never share one by accident.
    let answer =
        http::post(&serving.address, "/v1/sources/code", &[("x-hub-signature-256", HELLO_SIGNED)], HELLO);
    assert_eq!((answer.status, answer.field()), (400, "event_id"));
    assert!(home.deliveries().is_empty() && serving.is_alive());
}

#[test]
fn c105_deep_nesting_is_read_past_and_the_next_request_is_fine() {
    let home = home();
    let mut serving = home.serve(&[]);
    for (nth, depth) in [127, 128, 31_000].into_iter().enumerate() {
        let body = format!(r#"{{"x":{}{},"type":"lease.deep"}}"#, "[".repeat(depth), "]".repeat(depth));
        let answer = serving.signed("/v1/sources/game", &format!("m{nth}"), Duration::ZERO, body.as_bytes());
        assert_eq!(answer.status, 202, "{depth} deep: {:?}", answer.body);
    }
    let open = format!("{{\"type\":\"lease.deep\",\"x\":{}", "{\"a\":".repeat(31_000));
    let answer = serving.signed("/v1/sources/game", "open", Duration::ZERO, open.as_bytes());
    assert_eq!((answer.status, answer.code()), (400, "invalid_json"));
    assert!(serving.is_alive());
}

#[test]
fn c129_a_header_byte_that_is_no_ascii_is_nobodys_fault() {
    let home = home();
    let serving = home.serve(&[]);
    let mut request = format!(
        "POST /v1/sources/code HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-github-delivery: d-1\r\n\
         x-hub-signature-256: {HELLO_SIGNED}\r\ncontent-length: 13\r\nuser-agent: Beno?t\r\n\r\n"
    )
    .into_bytes();
    let odd = request.iter().position(|byte| *byte == b'?').unwrap();
    request[odd] = 0xEE;
    request.extend(HELLO);
    assert_eq!(http::raw(&serving.address, &request).status, 202);
}

#[test]
fn a_producer_may_sign_instead_of_bringing_a_token() {
    let home = home();
    let serving = home.serve(&["--allow-local"]);
    let event = |id: &str, tenant: &str| {
        format!(r#"{{"event_id":"{id}","tenant":"{tenant}","type":"lease.signed","payload":{{"a":1}}}}"#)
    };
    let send = |body: &str, ago: u64| {
        serving.signed("/v1/events", "req-1", Duration::from_secs(ago), body.as_bytes())
    };
    assert_eq!(send(&event("e1", "acme"), 0).status, 202);
    assert_eq!(send(&event("e1", "acme"), 0).body["deliveries"][0]["repeated"], true);
    let refused = [
        (send(&event("e2", "other"), 0), 403, "forbidden"),
        (send(&event("e3", "acme"), 302), 401, "stale_signature"),
        (send("{", 0), 400, "invalid_json"),
    ];
    for (answer, status, code) in refused {
        assert_eq!((answer.status, answer.code()), (status, code), "{:?}", answer.body);
    }
    // A signature that is there must be right, even on this machine.
    let wrong = [
        ("content-type", "application/json"),
        ("webhook-id", "r"),
        ("webhook-timestamp", "1767225600"),
        ("webhook-signature", "v1,AAAA"),
    ];
    let answer = http::post(&serving.address, "/v1/events", &wrong, event("e4", "acme").as_bytes());
    assert_eq!((answer.status, answer.code()), (401, "invalid_signature"));
    assert_eq!(home.deliveries().len(), 1);
}

#[test]
fn c117_nothing_of_a_refused_request_and_no_secret_is_written_anywhere() {
    const SENTINEL: &str = "SENTINEL-7f3a";
    let home = home();
    let serving = home.serve(&[]);
    let body = format!("{{\"type\":\"{SENTINEL} {SENTINEL}\"}}");
    code_host(&serving, "code", &[("x-blue", SENTINEL), ("authorization", SENTINEL)], body.as_bytes());
    let marked = [("x-hub-signature-256", SENTINEL), ("x-github-delivery", SENTINEL)];
    let answer = http::post(&serving.address, "/v1/sources/code", &marked, body.as_bytes());
    assert!(answer.status == 401 && !answer.body.to_string().contains(SENTINEL), "{:?}", answer.body);
    code_host(&serving, "bare", &[("x-blue", SENTINEL)], HELLO);
    code_host(&serving, "code", &[("x-blue", SENTINEL)], HELLO);
    assert_eq!(home.deliveries().len(), 2);
    let shown = home.run(&["deliveries", "list"]).out;
    assert_eq!(serving.stop(), 0);
    let mut written = vec![("the listing".to_owned(), shown.into_bytes())];
    for entry in std::fs::read_dir(home.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        written.push((path.display().to_string(), std::fs::read(path).unwrap()));
    }
    for (place, bytes) in &written {
        for secret in
            [SENTINEL, SECRET, &SECRET[6..], support::CODE_SECRET, "too-short-for-a-secret", HELLO_SIGNED]
        {
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} is in {place}");
        }
    }
    assert!(written.len() >= 4 && home.log().contains("env:SHORT_SECRET"), "{}", home.log());
}
