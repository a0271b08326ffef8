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

    let mut starts = STARTS.lock().unwrap().clone();
    starts.sort();
    assert_eq!(starts.len(), 60, "each once");
    // Each is with the recipient for at least as long as it takes.
    let too_soon = starts.windows(4).filter(|four| four[3].duration_since(four[0]) < TAKING).count();
    assert_eq!(too_soon, 0, "four at once");
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
