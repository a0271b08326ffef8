//! A destination's own header fields, from the configuration to the recipient, and nowhere else.

#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

mod support;

use support::recipient::Recipient;
use support::{Home, SECRET, TOKEN, text};

#[test]
fn c117_what_a_header_carries_is_written_nowhere_although_the_recipient_echoes_it() {
    let recipient = Recipient::echoing(&["x-blue", "webhook-signature"]);
    let home = Home::with(&recipient.url, "headers = { X-Blue = \"env:BILLING_TOKEN\" }\n");
    let serving = home.serve(&["--config", "waybill.toml", "--allow-local"]);
    let event = r#"{"event_id":"e1","tenant":"acme","type":"lease.signed","payload":{"n":1}}"#;
    assert_eq!(serving.publish(event).status, 202);
    let ended = home.wait_until_all_ended(1);
    assert_eq!(text(&ended[0], "state"), "dead_lettered");
    let id = text(&ended[0], "delivery_id").to_owned();
    let mut written = Vec::new();
    for arguments in [
        &["deliveries", "show", &id] as &[&str],
        &["deliveries", "show", &id, "--output", "json"],
        &["dead-letters", "list"],
        &["destinations", "show", "d"],
        &["config", "show"],
        &["config", "check", "--allow-local"],
    ] {
        let ran = home.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
        written.push((format!("{arguments:?}"), (ran.out + &ran.err).into_bytes()));
    }
    assert_eq!(serving.stop(), 0);
    let shown = String::from_utf8(written[1].1.clone()).unwrap();
    assert!(shown.contains("x-blue: [redacted]"), "the echo is evidence: {shown}");
    for entry in std::fs::read_dir(home.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        written.push((path.display().to_string(), std::fs::read(path).unwrap()));
    }
    let requests = recipient.requests();
    assert_eq!(requests.len(), 3);
    let signatures = requests.iter().map(|got| &got.header("webhook-signature")[3..]);
    let secrets: Vec<&str> = [TOKEN, SECRET, &SECRET[6..]].into_iter().chain(signatures).collect();
    assert!(requests.iter().all(|got| got.header("x-blue") == TOKEN));
    for (place, bytes) in &written {
        for secret in &secrets {
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} is in {place}");
        }
    }
    assert!(written.len() >= 9, "{written:?}");
}

#[test]
fn a_value_that_could_not_be_sent_is_warned_of_before_anything_is() {
    let home = Home::with(
        "https://hooks.example.com/in",
        "headers = { x-empty = \"env:EMPTY_TOKEN\", x-gone = \"env:GONE\", x-good = \"env:BILLING_TOKEN\" }\n",
    );
    let ran = home.run(&["config", "check"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let warnings: Vec<&str> = ran.err.lines().collect();
    assert_eq!(
        warnings,
        [
            "warning: env:EMPTY_TOKEN cannot be sent, it is empty (1 to 4096 printable characters of ASCII): \
             nothing is sent to d without its header x-empty",
            "warning: env:GONE is not set here: nothing is sent to d without its header x-gone",
        ]
    );
}
