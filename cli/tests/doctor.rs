//! `waybill doctor` on the embedded backend: what it looks at, and that it changes nothing.

#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

mod support;

use std::time::Duration;

use support::recipient::Recipient;
use support::{Home, text};

/// What it says of a thing, as `verdict: sentence`.
fn said(home: &Home, code: i32) -> Vec<(String, String)> {
    let ran = home.run(&["doctor", "--allow-local", "--output", "json"]);
    assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
    let one = |facts: &serde_json::Value| {
        (text(facts, "what").to_owned(), format!("{}: {}", text(facts, "verdict"), text(facts, "says")))
    };
    ran.json().iter().map(one).collect()
}

fn check(said: &[(String, String)], expected: &[(&str, &str)]) {
    for (what, says) in expected {
        assert!(said.iter().any(|(of, is)| of == what && is.contains(says)), "{what}: {says}\nin {said:#?}");
    }
}

#[test]
fn what_is_in_order_is_fine_and_what_is_not_is_named_with_its_cure() {
    let recipient = Recipient::start(|_, _| (200, Duration::ZERO));
    let home = Home::with(&recipient.url, "");

    let before = said(&home, 0);
    check(
        &before,
        &[
            ("configuration file", "fine: "),
            ("data file", "unknown: "),
            ("secrets", "fine: "),
            ("destination d", "fine: is reached, in the clear"),
        ],
    );
    assert!(!home.path("waybill.db").exists(), "it makes nothing");

    assert_eq!(home.run(&["config", "apply", "--allow-local", "--why", "the first"]).code, 0);
    let applied = said(&home, 0);
    check(
        &applied,
        &[("data file", "fine: "), ("configuration in force", "fine: "), ("queue", "fine: is empty")],
    );

    let toml = std::fs::read_to_string(home.path("waybill.toml")).unwrap();
    home.write("waybill.toml", toml.replace("env:D_SECRET", "env:NOT_SET_ANYWHERE"));
    let changed = said(&home, 0);
    check(&changed, &[("configuration in force", "unknown: "), ("configuration in force", "config diff")]);
    assert_eq!(
        home.run(&["config", "apply", "--allow-local", "--why", "a secret that is not there"]).code,
        0
    );
    let lacking = said(&home, 1);
    check(
        &lacking,
        &[("secrets", "mend: env:NOT_SET_ANYWHERE is not set here: nothing is sent to d without it")],
    );

    home.write("waybill.toml", toml.replace("timeout = \"2s\"", "timeout = \"never\""));
    check(
        &said(&home, 1),
        &[("configuration file", "mend: "), ("configuration file", "destinations.d.timeout")],
    );
    assert!(recipient.requests().is_empty(), "nothing is sent");
}

#[test]
fn a_recipient_that_nobody_reaches_is_told_with_the_reason() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hooks?token=canary-7f3a", listener.local_addr().unwrap());
    drop(listener);
    let found = said(&Home::with(&url, ""), 1);
    check(&found, &[("destination d", "mend: is not reached from here: ")]);
    assert!(!format!("{found:?}").contains("canary"), "no query in what is said: {found:?}");
}
