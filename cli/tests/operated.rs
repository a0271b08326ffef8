//! `waybill serve` while its operators work: what they decide bites without a restart.

#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

mod support;

use std::time::{Duration, Instant};

use serde_json::Value;
use support::recipient::Recipient;
use support::{Home, text};
use waybill_domain::address::Locality;
use waybill_domain::authority::Book;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::DestinationName;
use waybill_domain::order::OrderId;
use waybill_embedded::EmbeddedStore;
use waybill_service::acts::Desk;
use waybill_service::config_file::Rules;
use waybill_service::holds::HoldAct;
use waybill_service::office::{Office as _, Revisions as _};
use waybill_system::{SystemClock, SystemDice};

/// Within this time whatever is decided must bite.
const BITES: Duration = Duration::from_secs(10);

fn event(id: &str) -> String {
    format!(r#"{{"event_id":"{id}","tenant":"acme","type":"lease.signed","payload":1}}"#)
}

/// An operator at the same file, in a process of their own as far as `serve` can tell.
struct Operator {
    store: EmbeddedStore<SystemClock>,
    runtime: tokio::runtime::Runtime,
}

impl Operator {
    fn at(home: &Home) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { store: EmbeddedStore::open(&home.path("waybill.db"), SystemClock).unwrap(), runtime }
    }

    fn desk(&self) -> Desk<'_, EmbeddedStore<SystemClock>, SystemClock, SystemDice> {
        Desk { office: &self.store, clock: &SystemClock, dice: &SystemDice }
    }

    fn apply(&self, document: &str) {
        let rules = Rules::from(Locality::AllowLocal);
        let applying = async { self.desk().apply(document, rules, "maria", "corrected").await };
        self.runtime.block_on(applying).unwrap();
    }

    fn hold(&self, destination: &str) -> OrderId {
        let rule = HoldRule::Destination(DestinationName::parse(destination).unwrap());
        let placing = async { self.desk().place(Book::Across, rule, "maria", "they asked for it").await };
        match self.runtime.block_on(placing).unwrap() {
            HoldAct::Done(order) | HoldAct::Already(order) => order.id,
        }
    }

    fn lift(&self, hold: &OrderId) {
        let lifting = async { self.desk().lift(hold, &[Book::Across], "maria", "they are ready").await };
        self.runtime.block_on(lifting).unwrap();
    }

    /// The configurations that were in force, oldest first: which, by whom, why.
    fn history(&self) -> Vec<(String, String, String)> {
        let reading = async { self.store.history(100, None).await.unwrap().items };
        let newest_first = self.runtime.block_on(reading).into_iter();
        let facts = newest_first.map(|one| (one.revision.to_string(), one.signed.by, one.signed.why));
        facts.rev().collect()
    }

    fn audited(&self) -> Vec<String> {
        let reading = async { self.store.entries(&Book::Across, 100, None).await.unwrap().items };
        self.runtime.block_on(reading).iter().map(|entry| entry.act.to_string()).collect()
    }
}

fn wait_for(what: &str, home: &Home, is_there: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < BITES, "{what}: not within {BITES:?}\n{}", home.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn document(home: &Home) -> String {
    std::fs::read_to_string(home.path("waybill.toml")).unwrap()
}

fn warnings(told: &Value) -> Vec<String> {
    told["warnings"].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_corrected_url_is_used_by_the_next_attempt_without_a_restart() {
    let wrong = Recipient::start(|_, _| (503, Duration::ZERO));
    let right = Recipient::start(|_, _| (200, Duration::ZERO));
    let home = Home::with(&wrong.url, "");
    let patient = document(&home).replace("max_attempts = 3", "max_attempts = 500");
    let patient = patient.replace("base_delay = \"20ms\"", "base_delay = \"200ms\"\nmax_delay = \"400ms\"");
    home.write("waybill.toml", &patient);
    let serving = home.serve(&["--allow-local"]);
    serving.publish(event("e1"));
    wait_for("an attempt", &home, || !wrong.requests().is_empty());

    let operator = Operator::at(&home);
    operator.apply(&patient.replace(&wrong.url, &right.url));
    wait_for("the corrected URL", &home, || !right.requests().is_empty());
    home.wait_until_all_ended(1);
    assert_eq!(text(&home.deliveries()[0], "state"), "succeeded");
    // Whoever publishes now does so under it, too.
    serving.publish(event("e2"));
    wait_for("the second", &home, || right.requests().len() == 2);
    assert_eq!(serving.stop(), 0);
}

#[test]
fn a_hold_stops_sending_and_lifting_it_releases_what_waited() {
    let recipient = Recipient::start(|_, _| (200, Duration::ZERO));
    let home = Home::with(&recipient.url, "");
    let serving = home.serve(&["--allow-local"]);
    serving.publish(event("before"));
    wait_for("the first", &home, || recipient.requests().len() == 1);

    let operator = Operator::at(&home);
    let hold = operator.hold("d");
    // Longer than what was read is held: from here on nothing is sent.
    std::thread::sleep(Duration::from_millis(1500));
    for nth in 0..5 {
        serving.publish(event(&format!("held-{nth}")));
    }
    wait_for("five held", &home, || {
        home.deliveries().iter().filter(|one| one["hold"]["reason"] == "paused").count() == 5
    });
    assert_eq!(recipient.requests().len(), 1);

    operator.lift(&hold);
    wait_for("what was lifted", &home, || recipient.requests().len() == 6);
    home.wait_until_all_ended(6);
    assert_eq!(operator.audited(), ["config_applied", "hold_added", "hold_lifted"]);
    assert_eq!(serving.stop(), 0);
}

#[test]
fn what_was_held_and_lifted_between_two_looks_does_not_wait_for_the_next_minute() {
    let recipient = Recipient::start(|_, _| (200, Duration::ZERO));
    let home = Home::with(&recipient.url, "");
    let operator = Operator::at(&home);
    let hold = operator.hold("d");
    let serving = home.serve(&["--allow-local"]);
    // The first round has been made; now the hold is another, and soon gone.
    operator.lift(&hold);
    let hold = operator.hold("d");
    serving.publish(event("e1"));
    wait_for("it is held", &home, || home.deliveries()[0]["hold"].is_object());
    operator.lift(&hold);
    wait_for("what was lifted", &home, || recipient.requests().len() == 1);
}

#[test]
fn a_hold_outlives_a_restart() {
    let recipient = Recipient::start(|_, _| (200, Duration::ZERO));
    let home = Home::with(&recipient.url, "");
    let serving = home.serve(&["--allow-local"]);
    let operator = Operator::at(&home);
    let hold = operator.hold("d");
    serving.kill();
    let serving = home.serve(&["--allow-local"]);
    serving.publish(event("e1"));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(recipient.requests().len(), 0);
    operator.lift(&hold);
    wait_for("what was lifted", &home, || recipient.requests().len() == 1);
}

#[test]
fn a_start_puts_a_new_configuration_in_force_and_an_older_one_changes_nothing() {
    let home = Home::new();
    let first = document(&home);
    let serving = home.serve(&[]);
    assert_eq!(warnings(&serving.told), [""; 0]);
    assert_eq!(serving.stop(), 0);
    // The same again is no news.
    assert_eq!(home.serve(&[]).stop(), 0);
    let operator = Operator::at(&home);
    assert_eq!(operator.history().len(), 1);
    assert_eq!(operator.history()[0].2, "serve --config waybill.toml");

    let second = home.write("second.toml", first.replace("timeout = \"2s\"", "timeout = \"3s\""));
    let serving = home.serve(&["--config", "second.toml"]);
    let in_force = text(&serving.told, "config_revision").to_owned();
    assert_eq!(serving.stop(), 0);
    let history = operator.history();
    assert_eq!((history.len(), history[1].0.as_str()), (2, in_force.as_str()));

    // The first file again: what is in force stays, and whoever starts is told how to go back.
    let serving = home.serve(&[]);
    assert_eq!(text(&serving.told, "config_revision"), in_force);
    let told = warnings(&serving.told);
    assert_eq!(told.len(), 1);
    for expected in [
        history[0].0.as_str(),
        in_force.as_str(),
        "stays in force",
        "waybill config apply waybill.toml --why",
    ] {
        assert!(told[0].contains(expected), "{expected:?} is not in {told:?}");
    }
    assert!(home.log().contains("stays in force"));
    assert_eq!(serving.stop(), 0);
    // The same switches as its own.
    let serving = home.serve(&["--allow-local"]);
    let told = warnings(&serving.told);
    assert!(told[0].contains("waybill config apply waybill.toml --allow-local --why"), "{told:?}");
    assert_eq!(serving.stop(), 0);
    assert_eq!(operator.history(), history);
    std::fs::remove_file(second).unwrap();
}

#[test]
fn without_a_file_what_is_in_force_is_used_and_without_that_nothing_starts() {
    let home = Home::new();
    let serving = home.serve(&[]);
    let revision = text(&serving.told, "config_revision").to_owned();
    assert_eq!(serving.stop(), 0);
    std::fs::remove_file(home.path("waybill.toml")).unwrap();
    let serving = home.serve(&[]);
    assert_eq!(text(&serving.told, "config_revision"), revision);
    assert_eq!(serving.stop(), 0);

    // A file that was named must be there; and where nothing is in force, one must be.
    let missing = "there is no such configuration file; --config names it\n";
    for line in [&["serve", "--config", "other.toml"][..], &["serve", "--data", "new.db"]] {
        let refused = home.run(line);
        assert_eq!(refused.code, 2, "{line:?}: {}", refused.err);
        assert!(refused.err.ends_with(missing), "{line:?}: {}", refused.err);
    }
    assert!(!home.path("new.db").exists() && !home.path("new.db.lock").exists());
}

#[test]
fn what_is_in_force_must_be_usable_where_it_is_started() {
    let recipient = Recipient::start(|_, _| (200, Duration::ZERO));
    let home = Home::with(&recipient.url, "");
    assert_eq!(home.serve(&["--allow-local"]).stop(), 0);
    std::fs::remove_file(home.path("waybill.toml")).unwrap();
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("has faults") && refused.err.contains("destinations.d.url"),
        "{}",
        refused.err
    );
    assert!(!refused.err.contains("PATH-SECRET"), "{}", refused.err);
}
