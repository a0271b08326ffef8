//! `waybill probe`: from the configuration to the table of findings, at the built binary.

#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

mod support;

use std::time::{Duration, SystemTime};

use support::office::{BOSS, MARIA, others};
use support::recipient::{Got, Recipient};
use support::{Home, SECRET, text};
use waybill_domain::signature::SigningKey;

const AT_ONCE: Duration = Duration::ZERO;

fn careless(_: usize, _: &Got) -> (u16, Duration) {
    (200, AT_ONCE)
}

fn right(_: usize, got: &Got) -> (u16, Duration) {
    let timestamp_s: i64 = got.header("webhook-timestamp").parse().unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let is_fresh = (now.as_secs().cast_signed() - timestamp_s).abs() <= 300;
    let key = SigningKey::parse("secret", SECRET).unwrap();
    let is_signed =
        got.header("webhook-signature") == key.sign(got.header("webhook-id"), timestamp_s, &got.body);
    (if is_fresh && is_signed { 200 } else { 401 }, AT_ONCE)
}

fn refusing(_: usize, _: &Got) -> (u16, Duration) {
    (403, AT_ONCE)
}

#[test]
fn a_recipient_that_is_right_passes_and_nothing_is_written() {
    let recipient = Recipient::start(right);
    let home = Home::with(&recipient.url, "headers = { \"x-api-key\" = \"env:BILLING_TOKEN\" }\n");
    let ran = home.run(&["probe", "d", "--config", "waybill.toml", "--allow-local", "--output", "json"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let findings = ran.json();
    assert_eq!(findings.len(), 5);
    assert!(
        findings.iter().all(|one| text(one, "opinion") == "good" && one["mend"].is_null()),
        "{findings:?}"
    );
    let requests = recipient.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests.iter().all(|got| got.header("x-api-key") == support::TOKEN));
    assert!(!home.path("waybill.db").exists(), "a probe needs no ledger");
}

#[test]
fn what_has_to_be_mended_is_said_and_the_end_is_1() {
    for (script, bad, sentence) in [
        (careless as support::recipient::Script, 2, "verify webhook-signature over the raw bytes"),
        (refusing, 1, "answer 2xx once the event is kept"),
    ] {
        let recipient = Recipient::start(script);
        let home = Home::with(&recipient.url, "");
        let ran = home.run(&["probe", "d", "--config", "waybill.toml", "--allow-local"]);
        assert_eq!(ran.code, 1, "{}", ran.err);
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!(lines.len(), 6, "{}", ran.out);
        assert!(lines[0].starts_with("THE RECIPIENT"), "{}", ran.out);
        assert_eq!(lines.iter().filter(|line| line.contains("  bad  ")).count(), bad, "{}", ran.out);
        assert!(ran.out.contains(sentence), "{}", ran.out);
        for secret in ["PATH-SECRET", SECRET] {
            assert!(!ran.out.contains(secret), "{}", ran.out);
        }
    }
}

#[test]
fn what_never_reached_the_recipient_is_not_the_recipients_to_mend() {
    for (url, more, sentence) in [
        ("http://127.0.0.1:1/hooks", "", "start the recipient, let this machine through to its port"),
        (
            "http://127.0.0.1:1/hooks",
            "headers = { \"x-key\" = \"env:NOBODY_SET_IT\" }\n",
            "set the secret that",
        ),
    ] {
        let ran = Home::with(url, more).run(&["probe", "d", "--config", "waybill.toml", "--allow-local"]);
        assert_eq!(ran.code, 1, "{}", ran.err);
        assert!(ran.out.contains(sentence), "{}", ran.out);
        assert!(!ran.out.contains("answer 2xx"), "{}", ran.out);
    }
}

#[test]
fn the_destination_is_the_one_in_force_and_nothing_is_entered_of_it() {
    let recipient = Recipient::start(right);
    let home = Home::with(&recipient.url, &others(&recipient.url));
    let apply = ["config", "apply", "--allow-local", "--why", "first of all", "--operator", BOSS];
    assert_eq!(home.run(&apply).code, 0);
    // What the file says since then is not in force.
    home.write("waybill.toml", "");
    let probe = |name: &str, by: &str| home.run(&["probe", name, "--allow-local", "--operator", by]);
    let audit = || home.run(&["audit", "list", "--operator", BOSS]).out;
    let before = audit();
    assert_eq!(probe("d", MARIA).code, 0);
    assert_eq!(probe("o", BOSS).code, 0);
    assert_eq!(recipient.requests().len(), 8);
    // Another tenant's is answered as what there is not.
    for (name, by, hint) in [
        ("o", MARIA, "did you mean d?"),
        ("nobody", MARIA, "there are d"),
        ("nobody", BOSS, "there are d, o"),
    ] {
        let ran = probe(name, by);
        let sentence = format!("destination {name}: nothing here has that name; {hint}\n");
        assert_eq!((ran.code, ran.err), (2, sentence));
    }
    assert_eq!(recipient.requests().len(), 8);
    assert!(home.run(&["deliveries", "list", "--operator", BOSS]).out.is_empty());
    assert_eq!(audit(), before);
    let elsewhere = Home::new();
    let missing = elsewhere.run(&["probe", "d"]);
    assert_eq!(missing.code, 1);
    assert!(missing.err.contains("there is no such data file"), "{}", missing.err);
}

#[test]
fn a_recipient_on_this_machine_is_asked_only_by_the_explicit_switch() {
    let recipient = Recipient::start(right);
    let home = Home::with(&recipient.url, "");
    let ran = home.run(&["probe", "d", "--config", "waybill.toml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--allow-local"), "{}", ran.err);
    assert!(recipient.requests().is_empty());
}
