//! `waybill serve` and a recipient that refuses everybody: suspended, shown, alerted once, lifted.

mod support;

use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::recipient::Recipient;
use support::{Home, text};

fn event(n: usize) -> String {
    format!(r#"{{"event_id":"e{n}","tenant":"acme","type":"lease.signed","payload":{{}}}}"#)
}

fn show(home: &Home) -> Value {
    home.run(&["destinations", "show", "d", "--output", "json"]).json().remove(0)
}

fn wait_until(home: &Home, what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(40), "{what} never was: {}", home.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn acts(home: &Home) -> Vec<(String, String)> {
    let audit = home.run(&["audit", "list", "--output", "json"]).json();
    let entries = audit.iter().map(|entry| (text(entry, "act").to_owned(), text(entry, "who").to_owned()));
    entries.filter(|(act, _)| act.contains("susp")).collect()
}

#[test]
fn a_recipient_that_refuses_everybody_is_suspended_shown_and_lifted_by_a_person() {
    static STATUS: AtomicU16 = AtomicU16::new(401);
    let recipient = Recipient::start(|_, _| (STATUS.load(Ordering::SeqCst), Duration::ZERO));
    let more = "suspend_after = 3\nowner = \"books@acme.example\"\nconcurrency = 1\nmetrics = true\n";
    let home = Home::with(&recipient.url, more);
    let serving = home.serve(&["--allow-local"]);
    let none = show(&home);
    assert_eq!((&none["suspension"], &none["budget"]["in_use"]), (&Value::Null, &json!(0)));
    for n in 0..3 {
        assert_eq!(serving.publish(event(n)).status, 202);
    }
    home.wait_until_all_ended(3);
    for n in 3..10 {
        assert_eq!(serving.publish(event(n)).status, 202);
    }
    let by_reason = |facts: &Value| facts["waiting"]["by_reason"].clone();
    wait_until(&home, "the backlog held", || by_reason(&show(&home)) == json!({ "suspended": 7 }));
    assert_eq!(recipient.requests().len(), 3, "nothing behind the row was burned");
    wait_until(&home, "the hold", || !show(&home)["holds"].as_array().unwrap().is_empty());

    let shown = show(&home);
    let suspension = &shown["suspension"];
    assert_eq!((text(suspension, "cause"), &suspension["failures"]), ("refused", &json!(3)));
    let since = text(suspension, "since");
    assert!(text(suspension, "next_probe_at") > since);
    let told = home.run(&["destinations", "show", "d"]).out;
    assert!(told.contains("  waiting       7: 7 suspended\n"), "{told}");
    assert!(
        told.contains(&format!("  suspended     since {since}, refused 3 in a row; 0 failed probes")),
        "{told}"
    );
    let listed = home.run(&["destinations", "list"]).out;
    assert!(listed.contains("0 of 1") && listed.contains("suspended  7"), "{listed}");
    let hold = text(suspension, "hold").to_owned();
    let holds = home.run(&["hold", "list", "--output", "json"]).json();
    assert_eq!((text(&holds[0], "hold"), text(&holds[0], "reason")), (&*hold, "suspended"));

    STATUS.store(200, Ordering::SeqCst);
    let why = ["--why", "new credentials", "--operator", "maria"];
    assert_eq!(home.run(&[&["hold", "lift", &hold], &why[..]].concat()).code, 0);
    wait_until(&home, "the end", || recipient.requests().len() == 10);
    home.wait_until_all_ended(10);
    let expected = [("suspended", "automation"), ("suspension_lifted", "maria")];
    assert_eq!(acts(&home), expected.map(|(act, who)| (act.to_owned(), who.to_owned())));
    let after = show(&home);
    assert_eq!((&after["suspension"], &after["waiting"]["number"]), (&Value::Null, &json!(0)));
    let scrape = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let scraped = support::http::text(&serving.address, scrape.as_bytes());
    assert!(scraped.contains("Suspended{destination=\"d\"} 1\n"), "{scraped}");
    assert_eq!(serving.stop(), 0);
    let alerts: Vec<Value> = home
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line.to_string().contains("destination suspended"))
        .collect();
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    let alert = alerts[0].to_string();
    assert!(alert.contains("books@acme.example") && alert.contains(&hold), "{alert}");
}
