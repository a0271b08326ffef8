//! `GET /metrics` of `waybill serve`, as a Prometheus would scrape it.

#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

mod support;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use support::recipient::Recipient;
use support::{Home, Serving, TOKEN};

/// Sends requests one after the other over one connection; everything that came back.
fn pipelined(serving: &Serving, requests: &[String]) -> String {
    let mut stream = TcpStream::connect(&serving.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (last, others) = requests.split_last().unwrap();
    let mut text = others.concat();
    text.push_str(&last.replacen("\r\n", "\r\nconnection: close\r\n", 1));
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn scrape(serving: &Serving) -> String {
    let answer = pipelined(serving, &["GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n".to_owned()]);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    body.to_owned()
}

/// Names and labels, but for the gauge that is told every fifth minute, whatever is posted meanwhile.
fn series(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines = lines.filter(|line| !line.starts_with("OldestDeadLetterAge "));
    lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer {TOKEN}\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

fn event(id: usize, tenant: &str) -> String {
    format!(r#"{{"event_id":"e{id}","tenant":"{tenant}","type":"lease.signed","payload":{id}}}"#)
}

#[test]
fn c119_ten_thousand_posts_to_random_paths_and_unknown_tenants_make_no_new_series() {
    let recipient = Recipient::start(|_, _| (200, Duration::ZERO));
    let home = Home::with(&recipient.url, "metrics = true\n");
    let serving = home.serve(&["--allow-local"]);
    for n in 0..10 {
        assert_eq!(serving.publish(event(n, "acme")).status, 202);
    }
    home.wait_until_all_ended(10);
    let before = scrape(&serving);
    assert!(before.contains("Delivered{destination=\"d\"} 10"), "{before}");
    assert!(before.contains("# TYPE AttemptDuration histogram"), "{before}");

    let strange = |n: usize| match n % 2 {
        0 => post(&format!("/v1/secret-path-{n}?token=secret-{n}"), "{}"),
        _ => post("/v1/events", &event(n, &format!("tenant-{n}"))),
    };
    for batch in 0..100 {
        let requests: Vec<String> = (0..100).map(|n| strange(batch * 100 + n)).collect();
        let answers = pipelined(&serving, &requests);
        assert_eq!(answers.matches("HTTP/1.1 4").count(), 100, "{answers}");
    }
    let events: Vec<String> = (10..1_000).map(|n| event(n, "acme")).collect();
    assert_eq!(home.run_with(&["publish"], events.join("\n").as_bytes()).code, 0);
    home.wait_until_all_ended(1_000);

    let after = scrape(&serving);
    assert!(after.contains("Delivered{destination=\"d\"} 1000"), "{after}");
    assert_eq!(series(&before), series(&after));
    for secret in ["secret", "tenant-", "acme", "whd_", "127.0.0.1", "http"] {
        assert!(!after.contains(secret), "{secret} is in\n{after}");
    }
}
