//! A producer's trace through `serve`: from the request that publishes to each attempt and to the log.

#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

mod support;

use std::collections::BTreeSet;
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

/// The Terraform's log queries ask for fields by name; a name that no line has finds nothing, and nobody is told.
#[test]
fn the_log_queries_of_the_terraform_name_fields_that_lines_have() {
    let terraform = include_str!("../../infra/dashboard.tf");
    let queries = terraform.split_once("queries = {").unwrap().1.split_once("\n  }").unwrap().0;
    let mut named = BTreeSet::new();
    for query in queries.lines().filter_map(|line| line.split_once("= \"")).map(|(_, query)| query) {
        for step in query.split(" | ") {
            let (verb, rest) = step.split_once(' ').unwrap();
            let rest = match verb {
                "filter" => rest
                    .split(" and ")
                    .filter_map(|one| one.split(" = ").next())
                    .collect::<Vec<_>>()
                    .join(","),
                "fields" => rest.to_owned(),
                "stats" => rest.split_once(" by ").unwrap().1.to_owned(),
                _ => continue,
            };
            named.extend(rest.trim_matches('"').split(',').map(|name| name.trim().to_owned()));
        }
    }
    named.remove("@timestamp");
    assert!(named.len() > 12 && named.contains("tenant") && named.contains("trace_id"), "{named:?}");

    let recipient = Recipient::start(|_, _| (400, Duration::ZERO));
    let home = Home::with(&recipient.url, "");
    let serving = home.serve(&["--allow-local"]);
    let token = format!("Bearer {TOKEN}");
    let event =
        r#"{"event_id":"e1","tenant":"acme","type":"lease.signed","scope":"prop_204","payload":{"a":1}}"#;
    let headers = [("content-type", "application/json"), ("authorization", &*token), ("traceparent", PARENT)];
    assert_eq!(http::post(&serving.address, "/v1/events", &headers, event.as_bytes()).status, 202);
    home.wait_until_all_ended(1);
    assert_eq!(serving.stop(), 0);
    let log = home.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let written: BTreeSet<String> = lines
        .filter_map(|line| Some(line.as_object()?.keys().cloned().collect::<Vec<_>>()))
        .flatten()
        .collect();
    assert!(named.is_subset(&written), "{:?} in no line of\n{log}", named.difference(&written));
    assert!(log.contains(r#""scope":"prop_204""#) && log.contains(r#""destination":"d""#), "{log}");
}
