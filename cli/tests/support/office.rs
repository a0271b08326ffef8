//! A data file with dead letters of two tenants, and operators who may see one of them or both.

use std::time::Duration;

use serde_json::Value;

use super::recipient::{Got, Recipient};
use super::{Home, Ran, text};

/// Across tenants.
pub(crate) const BOSS: &str = "boss";
/// For `acme` alone.
pub(crate) const MARIA: &str = "maria";

/// What the configuration says beside destination `d` of tenant `acme`: destination `o` of tenant
/// `other` at the same recipient, and the operators.
pub(crate) fn others(url: &str) -> String {
    format!(
        "[destinations.o]\ntenants = [\"other\"]\nurl = \"{url}\"\nsecrets = [\"env:D_SECRET\"]\n\
         event_types = [\"*\"]\ntimeout = \"2s\"\n[operators.boss]\ntenants = [\"*\"]\n\
         [operators.maria]\ntenants = [\"acme\"]\n[operators.both]\ntenants = [\"acme\", \"other\"]\n"
    )
}

/// Answers by the event's ID: `refused-…` 400, `locked-…` 401, `fine-…` 200, `lost-…` 500 (it may be
/// applied), everything else 503.
fn by_event(_: usize, got: &Got) -> (u16, Duration) {
    let event = got.header("waybill-event-id");
    let status = match event.split('-').next() {
        Some("refused") => 400,
        Some("locked") => 401,
        Some("fine") => 200,
        Some("lost") => 500,
        _ => 503,
    };
    (status, Duration::ZERO)
}

/// A home where somebody operates.
pub(crate) struct Office {
    pub(crate) home: Home,
    pub(crate) recipient: Recipient,
}

impl Office {
    /// With dead letters of these events; each is `TENANT/EVENT_ID`.
    pub(crate) fn with(events: &[&str]) -> Self {
        Self::under("", events)
    }

    /// The same with `more` lines of configuration.
    pub(crate) fn under(more: &str, events: &[&str]) -> Self {
        let recipient = Recipient::start(by_event);
        let home = Home::with(&recipient.url, &(others(&recipient.url) + more));
        let office = Self { home, recipient };
        let applied = office.by(BOSS, &["config", "apply", "--allow-local", "--why", "first of all"]);
        assert_eq!(applied.code, 0, "{}", applied.err);
        office.deliver(events);
        office
    }

    /// Publishes these events and waits until every delivery has ended.
    pub(crate) fn deliver(&self, events: &[&str]) {
        let lines: Vec<String> = events.iter().map(|event| line(event)).collect();
        let before = self.deliveries().len();
        assert_eq!(self.publish(&lines.join("\n")).code, 0);
        self.work(before + events.len());
    }

    pub(crate) fn publish(&self, lines: &str) -> Ran {
        self.home.run_with(&["publish", "--operator", BOSS], lines.as_bytes())
    }

    /// Lets the system work until this many deliveries have ended.
    pub(crate) fn work(&self, ended: usize) {
        self.work_until(|office| {
            let open = ["pending", "retryable"];
            office.deliveries().iter().filter(|one| !open.contains(&text(one, "state"))).count() == ended
        });
    }

    /// Lets the system work until something is so. Every start begins with a whole round.
    pub(crate) fn work_until(&self, is_so: impl Fn(&Self) -> bool) {
        let serving = self.home.serve(&["--allow-local"]);
        self.wait_until(is_so);
        assert_eq!(serving.stop(), 0);
    }

    pub(crate) fn wait_until(&self, is_so: impl Fn(&Self) -> bool) {
        let began = std::time::Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < Duration::from_secs(30), "not so in 30 s: {}", self.home.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs a command in an operator's name.
    pub(crate) fn by(&self, operator: &str, arguments: &[&str]) -> Ran {
        self.home.run(&[&["--operator", operator], arguments].concat())
    }

    /// What a command says to programs, and that it went well.
    pub(crate) fn facts(&self, operator: &str, arguments: &[&str]) -> Vec<Value> {
        let ran = self.by(operator, &[arguments, &["--output", "json"]].concat());
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
        ran.json()
    }

    pub(crate) fn deliveries(&self) -> Vec<Value> {
        self.facts(BOSS, &["deliveries", "list"])
    }

    /// The delivery of an event.
    pub(crate) fn delivery(&self, event: &str) -> Value {
        let found = self.deliveries().into_iter().find(|one| text(one, "event_id") == event);
        found.unwrap_or_else(|| panic!("no delivery of {event}"))
    }

    pub(crate) fn id_of(&self, event: &str) -> String {
        text(&self.delivery(event), "delivery_id").to_owned()
    }

    /// The acts in the audit, as far as the boss may read it: book, who, act, subject.
    pub(crate) fn audited(&self) -> Vec<[String; 4]> {
        let entries = self.facts(BOSS, &["audit", "list"]);
        entries.iter().map(|e| ["book", "who", "act", "subject"].map(|key| text(e, key).to_owned())).collect()
    }

    /// How often an act is in the audit.
    pub(crate) fn count_of(&self, act: &str) -> usize {
        self.audited().iter().filter(|entry| entry[2] == act).count()
    }
}

/// An event as a line for `publish`.
pub(crate) fn line(event: &str) -> String {
    let (tenant, id) = event.split_once('/').expect("TENANT/EVENT_ID");
    format!(r#"{{"event_id":"{id}","tenant":"{tenant}","type":"lease.signed","payload":1}}"#)
}
