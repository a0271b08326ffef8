//! `waybill serve` and budgets, on real threads: never more at once than a destination may get, and
//! one that hangs leaves workers to the others.

mod support;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use support::recipient::Recipient;
use support::{Home, text};

const TAKING: Duration = Duration::from_millis(100);

fn event(id: &str, to: &str) -> String {
    format!(
        r#"{{"event_id":"{id}","tenant":"acme","type":"lease.signed","destination":"{to}","payload":{{}}}}"#
    )
}

#[test]
fn a_destination_never_gets_more_at_once_than_its_budget_and_all_of_it_arrives() {
    static STARTS: Mutex<Vec<Instant>> = Mutex::new(Vec::new());
    let recipient = Recipient::start(|_, _| {
        STARTS.lock().unwrap().push(Instant::now());
        (200, TAKING)
    });
    let home = Home::with(&recipient.url, "concurrency = 3\n");
    let _serving = home.serve(&["--allow-local"]);
    let lines: Vec<String> = (0..60).map(|n| event(&format!("e{n}"), "d")).collect();
    assert_eq!(home.run_with(&["publish"], lines.join("\n").as_bytes()).code, 0);
    let ended = home.wait_until_all_ended(60);
    assert!(ended.iter().all(|one| text(one, "state") == "succeeded"));

    let starts = STARTS.lock().unwrap().clone();
    assert_eq!(starts.len(), 60, "each once");
    never_more_at_once_than(3, starts);
}

/// Each is with the recipient for at least as long as it takes.
fn never_more_at_once_than(most: usize, mut starts: Vec<Instant>) {
    starts.sort();
    let too_soon =
        starts.windows(most + 1).filter(|some| some[most].duration_since(some[0]) < TAKING).count();
    assert_eq!(too_soon, 0, "{} at once", most + 1);
}

#[test]
fn what_a_gate_held_goes_a_few_at_a_time_once_it_is_eased() {
    static STARTS: Mutex<Vec<Instant>> = Mutex::new(Vec::new());
    let recipient = Recipient::start(|_, _| {
        STARTS.lock().unwrap().push(Instant::now());
        (200, TAKING)
    });
    let home = Home::with(&recipient.url, "");
    let _serving = home.serve(&["--allow-local"]);
    let facts = |command: &[&str]| {
        let ran = home.run(&[command, &["--why", "rolling back", "--output", "json"]].concat());
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.err);
        ran.json().remove(0)
    };
    let gate = facts(&["hold", "add", "--all"]);
    // Longer than what was read is held: from here on nothing is sent.
    std::thread::sleep(Duration::from_millis(1500));
    let lines: Vec<String> = (0..20).map(|n| event(&format!("e{n}"), "d")).collect();
    assert_eq!(home.run_with(&["publish"], lines.join("\n").as_bytes()).code, 0);
    let began = Instant::now();
    while home.deliveries().iter().filter(|one| one["hold"]["reason"] == "gate").count() < 20 {
        assert!(began.elapsed() < Duration::from_secs(20), "{}", home.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(STARTS.lock().unwrap().is_empty());

    facts(&["hold", "lift", text(&gate, "hold"), "--concurrency", "2"]);
    let ended = home.wait_until_all_ended(20);
    assert!(ended.iter().all(|one| text(one, "state") == "succeeded"));
    let starts = STARTS.lock().unwrap().clone();
    assert_eq!(starts.len(), 20, "each once");
    never_more_at_once_than(2, starts);
}

#[test]
fn a_destination_that_hangs_takes_half_of_the_workers_and_its_neighbour_gets_the_others() {
    let hanging = Recipient::start(|_, _| (200, Duration::from_secs(30)));
    let quick = Recipient::start(|_, _| (200, Duration::ZERO));
    let more = format!(
        "[destinations.quick]\ntenants = [\"acme\"]\nurl = \"{}\"\nsecrets = [\"env:D_SECRET\"]\n",
        quick.url
    );
    let home = Home::with(&hanging.url, &more);
    let serving = home.serve(&["--allow-local", "--concurrency", "4"]);
    for n in 0..20 {
        assert_eq!(serving.publish(event(&format!("slow-{n}"), "d")).status, 202);
    }
    let began = Instant::now();
    for n in 0..20 {
        assert_eq!(serving.publish(event(&format!("quick-{n}"), "quick")).status, 202);
    }
    while quick.requests().len() < 20 {
        // One attempt at the one that hangs takes two seconds, and there are ten for each worker.
        assert!(began.elapsed() < Duration::from_secs(8), "{}", home.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}
