//! A producer's trace through `serve`: from the request that publishes to each attempt and to the log.

#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

mod support;

use std::time::Duration;

use support::recipient::Recipient;
use support::{Home, TOKEN, http, text};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";

#[test]
fn a_trace_goes_on_with_each_attempt_under_a_span_of_its_own() {
    let recipient = Recipient::start(|nth, _| (if nth == 1 { 500 } else { 200 }, Duration::ZERO));
    let home = Home::with(&recipient.url, "");
    let serving = home.serve(&["--allow-local"]);
    let token = format!("Bearer {TOKEN}");
    let event = r#"{"event_id":"e1","tenant":"acme","type":"lease.signed","payload":{"a":1}}"#;
    let headers = [
        ("content-type", "application/json"),
        ("authorization", &*token),
        ("traceparent", PARENT),
        ("tracestate", "vendor=opaque"),
    ];
    let answer = http::post(&serving.address, "/v1/events", &headers, event.as_bytes());
    assert_eq!(answer.status, 202, "{:?}", answer.body);
    let ended = home.wait_until_all_ended(1);
    assert_eq!(text(&ended[0], "trace_id"), TRACE_ID);
    assert_eq!(serving.stop(), 0);

    let requests = recipient.requests();
    let parents: Vec<&str> = requests.iter().map(|got| got.header("traceparent")).collect();
    assert_eq!(parents.len(), 2);
    assert!(parents.iter().all(|parent| parent.starts_with(&format!("00-{TRACE_ID}-"))), "{parents:?}");
    assert!(parents[0] != parents[1] && !parents.contains(&PARENT), "{parents:?}");
    assert!(requests.iter().all(|got| got.header("tracestate") == "vendor=opaque"));
    for line in ["published", "attempted", "decided"] {
        let message = format!(r#""message":"{line}""#);
        let log = home.log();
        let mut lines = log.lines().filter(|text| text.contains(&message)).peekable();
        assert!(lines.peek().is_some(), "{line}: {log}");
        assert!(lines.all(|text| text.contains(&format!(r#""trace_id":"{TRACE_ID}""#))), "{line}: {log}");
    }
    assert!(!home.log().contains("opaque"), "tracestate is nobody's business here");
}
