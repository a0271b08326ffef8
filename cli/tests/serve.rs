//! `waybill serve`, seen from outside: it delivers, keeps the evidence, and survives.

mod support;

use std::time::{Duration, Instant};

use support::recipient::{Got, Recipient};
use support::{Home, SECRET, TOKEN, text};

fn event(id: &str) -> String {
    format!(r#"{{"event_id":"{id}","tenant":"acme","type":"lease.signed","payload":{{"é":1.0, "x":[]}}}}"#)
}

fn at_once(status: u16) -> (u16, Duration) {
    (status, Duration::ZERO)
}

#[test]
fn two_failures_and_a_success_are_three_requests_of_the_same_bytes_and_show_tells_why() {
    let recipient = Recipient::start(|nth, _| at_once(if nth < 3 { 500 } else { 200 }));
    let home = Home::with(&recipient.url, "");
    let serving = home.serve(&["--allow-local"]);
    let answer = serving.publish(event("e1"));
    let id = text(&answer.body["deliveries"][0], "delivery_id").to_owned();
    assert_eq!(text(&home.wait_until_all_ended(1)[0], "state"), "succeeded");

    let requests = recipient.requests();
    assert_eq!(requests.len(), 3);
    for (nth, got) in requests.iter().enumerate() {
        assert_eq!(got.header("webhook-id"), id);
        assert_eq!(got.header("waybill-attempt"), (nth + 1).to_string());
        assert_eq!(got.body, r#"{"é":1.0, "x":[]}"#.as_bytes());
    }
    let unlike = ["webhook-timestamp", "webhook-signature", "waybill-attempt"];
    let alike = |got: &Got| {
        let alike = got.headers.iter().filter(|(name, _)| !unlike.contains(&name.as_str()));
        alike.cloned().collect::<Vec<_>>()
    };
    assert!(requests.iter().all(|got| alike(got) == alike(&requests[0])));

    let shown = home.run(&["deliveries", "show", &id]);
    assert_eq!(shown.code, 0);
    for expected in
        ["attempt 1      500 server_error", "attempt 2      500 server_error", "attempt 3      delivered"]
    {
        assert!(shown.out.contains(expected), "{expected:?} is not in\n{}", shown.out);
    }
    assert!(shown.out.contains("jitter drew") && shown.out.contains("of at most 40ms"), "{}", shown.out);
    assert!(shown.out.contains("told 1 \\u001b[31m") && !shown.out.contains('\u{1b}'), "{}", shown.out);
    let facts = home.show(&id);
    assert_eq!(facts["attempts"].as_array().unwrap().len(), 2);
    assert_eq!(facts["attempts"][1]["next"]["ceiling_ms"], 40);
    assert_eq!(serving.stop(), 0);
}

#[test]
fn what_is_published_while_serve_is_idle_is_sent_at_once() {
    let recipient = Recipient::start(|_, _| at_once(200));
    let home = Home::with(&recipient.url, "");
    let serving = home.serve(&["--allow-local"]);
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    assert_eq!(serving.publish(event("e1")).status, 202);
    while recipient.requests().is_empty() {
        assert!(began.elapsed() < Duration::from_millis(700), "it waited for the next look at the queue");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Another process puts its own into the same file; that is found by looking.
    assert_eq!(home.run_with(&["publish"], event("e2").as_bytes()).code, 0);
    home.wait_until_all_ended(2);
}

#[test]
fn a_recipient_that_hangs_keeps_nobody_else_waiting() {
    let recipient = Recipient::start(|_, got| match got.header("waybill-event-id") {
        "slow" => (200, Duration::from_secs(5)),
        _ => at_once(200),
    });
    let home = Home::with(&recipient.url, "");
    let serving = home.serve(&["--allow-local"]);
    serving.publish(event("slow"));
    let began = Instant::now();
    for nth in 0..20 {
        serving.publish(event(&format!("fast-{nth}")));
    }
    while home.deliveries().iter().filter(|one| text(one, "state") == "succeeded").count() < 20 {
        assert!(began.elapsed() < Duration::from_millis(1900), "the others waited for the slow one");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn killed_in_the_middle_of_500_events_and_started_again_every_event_has_one_effect() {
    let recipient = Recipient::start(|_, _| (200, Duration::from_millis(20)));
    let home = Home::with(&recipient.url, "[system]\nstale_after = \"1s\"\n");
    let serving = home.serve(&["--allow-local", "--concurrency", "16"]);
    let lines: Vec<String> = (0..500).map(|nth| event(&format!("load-{nth}"))).collect();
    assert_eq!(home.run_with(&["publish"], lines.join("\n").as_bytes()).code, 0);
    let began = Instant::now();
    while recipient.requests().len() < 50 {
        assert!(began.elapsed() < Duration::from_secs(20), "{}", home.log());
        std::thread::sleep(Duration::from_millis(5));
    }
    serving.kill();
    assert!(recipient.requests().len() < 500, "it was not in the middle");
    let serving = home.serve(&["--allow-local"]);
    let began = Instant::now();
    while home.deliveries().iter().any(|one| text(one, "state") != "succeeded") {
        assert!(began.elapsed() < Duration::from_secs(90), "{:#?}", home.deliveries());
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(home.deliveries().len(), 500);
    assert_eq!(recipient.effects(), 500);
    assert_eq!(serving.stop(), 0);
}

#[test]
fn told_to_stop_it_ends_what_is_under_way_and_takes_nothing_new() {
    let recipient = Recipient::start(|_, _| (200, Duration::from_millis(1200)));
    let home = Home::with(&recipient.url, "");
    let serving = home.serve(&["--allow-local"]);
    let address = serving.address.clone();
    serving.publish(event("e1"));
    while recipient.requests().is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let began = Instant::now();
    assert_eq!(serving.stop(), 0);
    assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
    assert_eq!(text(&home.deliveries()[0], "state"), "succeeded");
    assert!(std::net::TcpStream::connect(&address).is_err());
}

#[test]
fn a_second_serve_on_the_same_data_is_refused_and_the_first_goes_on() {
    let home = Home::new();
    let mut serving = home.serve(&[]);
    let second = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, 1);
    assert!(
        second.err.contains("waybill.db: another waybill serve works on it and holds /"),
        "{}",
        second.err
    );
    assert!(second.err.ends_with("/waybill.db.lock\n"), "{}", second.err);
    assert!(serving.is_alive());
    serving.kill();
    assert_eq!(home.serve(&[]).stop(), 0);
}

#[test]
fn it_does_not_start_on_a_bad_configuration_or_an_address_that_is_taken() {
    let home = Home::new();
    let serving = home.serve(&[]);
    let taken = home.run(&["serve", "--data", "other.db", "--listen", &serving.address]);
    assert_eq!(taken.code, 1);
    let expected = format!("{}: cannot listen there: address already in use\n", serving.address);
    assert!(taken.err.ends_with(&expected), "{}", taken.err);
    assert!(!home.path("other.db").exists() && !home.path("other.db.lock").exists());
    home.write("garbage.db", "no database".repeat(100));
    let garbage = home.run(&["serve", "--data", "garbage.db", "--listen", "localhost:0"]);
    assert_eq!(garbage.code, 1);
    assert!(!home.path("garbage.db.lock").exists());
    let nowhere = home.run(&["serve", "--data", "no/w.db"]);
    assert!(nowhere.err.ends_with("no/w.db: there is no such folder to keep it in\n"), "{}", nowhere.err);
    home.write("bad.toml", "[destinations.d]\nurl = \"http://127.0.0.1/\"\ncolour = 1\n");
    let bad = home.run(&["serve", "--config", "bad.toml", "--data", "third.db"]);
    assert_eq!(bad.code, 2);
    assert_eq!(bad.err.lines().filter(|line| line.starts_with("bad.toml: line ")).count(), 4, "{}", bad.err);
    assert!(!home.path("third.db").exists());
}

#[test]
fn a_secret_that_is_missing_is_told_beside_the_announcement() {
    let home = Home::new();
    let text = std::fs::read_to_string(home.path("waybill.toml")).unwrap();
    home.write("waybill.toml", text.replace("env:D_SECRET", "env:NO_SUCH_SECRET"));
    let serving = home.serve(&[]);
    let warning = "env:NO_SUCH_SECRET is not set here: nothing is sent to d without it";
    assert_eq!(serving.told["warnings"], serde_json::json!([warning]));
    assert!(home.log().contains("env:NO_SUCH_SECRET"));
    assert!(!home.log().contains("reconciled"), "an idle minute is no news");
}

#[test]
fn dead_letters_are_counted_by_destination_and_reason_and_say_what_a_person_can_do() {
    let recipient = Recipient::start(|_, got| match got.header("waybill-event-type") {
        "lease.forbidden" => at_once(401),
        _ => at_once(503),
    });
    let home = Home::with(&recipient.url, "");
    let serving = home.serve(&["--allow-local"]);
    serving.publish(event("e1").replace("lease.signed", "lease.forbidden"));
    serving.publish(event("e2"));
    serving.publish(event("e3"));
    home.wait_until_all_ended(3);

    let summary = home.run(&["dead-letters", "summary", "--output", "json"]).json();
    let groups: Vec<(&str, &str, u64)> = summary
        .iter()
        .map(|group| (text(group, "destination"), text(group, "reason"), group["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(groups, [("d", "attempts_exhausted", 2), ("d", "authentication_rejected", 1)]);
    let table = home.run(&["dead-letters", "summary", "--tenant", "acme"]).out;
    assert!(table.starts_with("TENANT  DESTINATION  REASON"), "{table}");
    let listed =
        home.run(&["dead-letters", "list", "--reason", "authentication_rejected", "--output", "json"]);
    let listed = listed.json();
    assert_eq!(listed.len(), 1);
    let shown = home.run(&["deliveries", "show", text(&listed[0], "delivery_id")]).out;
    assert!(shown.contains("  for you      correct the credentials"), "{shown}");
    assert!(home.run(&["dead-letters", "summary", "--tenant", "nobody"]).out.is_empty());
}

#[test]
fn the_log_is_json_with_times_and_holds_no_payload_secret_token_or_path() {
    let recipient = Recipient::start(|nth, _| at_once(if nth < 2 { 500 } else { 200 }));
    let home = Home::with(&recipient.url, "");
    let serving = home.serve(&["--allow-local"]);
    serving.publish(event("e1").replace("é", "SENTINEL-7f3a"));
    serving.publish("{\"SENTINEL-7f3a\"");
    home.wait_until_all_ended(1);
    assert_eq!(serving.stop(), 0);
    let log = home.log();
    assert!(log.lines().count() > 3);
    for line in log.lines() {
        let entry: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(text(&entry, "timestamp").ends_with('Z'));
    }
    for secret in ["SENTINEL-7f3a", SECRET, TOKEN, "PATH-SECRET"] {
        assert!(!log.contains(secret), "{secret} is in\n{log}");
    }
}
