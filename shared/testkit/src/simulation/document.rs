//! The configuration of a history as the text that is put in force, and the changes that are made to it.

use std::collections::BTreeSet;

use crate::dice::Lots;

/// What differs between the configurations of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// At which minute past six the schedule fires, where there is one.
    pub schedule: Option<u64>,
    /// Whether what it publishes is refused by its destination's schema.
    pub is_refused: bool,
    /// The destinations that were taken out.
    pub removed: BTreeSet<&'static str>,
    /// The budget of attempts at `usual`.
    pub attempts: u64,
    /// Under which name the secrets stand: rotated, permanent failures may be released.
    pub secret: &'static str,
    /// The slots of `narrow`: a change never takes any away.
    pub slots: u64,
    /// What suspends a destination, of [`SUSPENDING`].
    pub suspending: &'static str,
    /// The event IDs of the schedule, of [`EVENT_IDS`].
    pub event_id: &'static str,
    /// The schedule's own retry rules, where it has some.
    pub policy: Option<&'static str>,
}

/// What may suspend every destination of a configuration: nothing, or these lines of each.
pub const SUSPENDING: &[&str] = &[
    "suspend_after = 1\n",
    "suspend_after = 2\n",
    "suspend_after = 3\ngone = \"suspend\"\n",
    "gone = \"suspend\"\n",
];

/// The templates of event IDs that the schedule comes to have.
pub const EVENT_IDS: &[&str] = &["{tenant}:{window}", "{tenant}/{window}"];

/// The retry rules that the schedule comes to have.
const POLICIES_OF_ITS_OWN: &[&str] = &["tight", "single", "asked"];

/// The destinations that a history knows.
pub const DESTINATIONS: &[&str] =
    &["usual", "tight", "single", "brief", "nightly", "doubtful", "narrow", "shared", "asked", OF_ONE_TENANT];

/// The one that serves `acme` alone.
pub const OF_ONE_TENANT: &str = "alone";

impl Default for Settings {
    fn default() -> Self {
        Self {
            schedule: None,
            is_refused: false,
            removed: BTreeSet::new(),
            attempts: 7,
            secret: "OLD",
            slots: 1,
            suspending: "",
            event_id: EVENT_IDS[0],
            policy: None,
        }
    }
}

impl Settings {
    /// The same with one thing changed.
    pub fn changed(&self, lots: &mut Lots) -> Self {
        let mut next = self.clone();
        match lots.below(10) {
            0 => drop(next.removed.insert(lots.pick(DESTINATIONS).copied().unwrap_or("usual"))),
            1 => next.removed.clear(),
            2 => next.attempts = 1 + lots.below(7),
            3 => next.secret = if next.secret == "OLD" { "NEW" } else { "OLD" },
            4 => next.slots += 1,
            5 if self.schedule.is_some() => {
                next.event_id = EVENT_IDS[usize::from(self.event_id == EVENT_IDS[0])];
            }
            6 if self.schedule.is_some() => next.policy = own_policy(lots),
            5..8 => next.suspending = "",
            _ => next.suspending = suspending(lots),
        }
        next
    }

    /// The text.
    pub fn document(&self) -> String {
        let mut text = POLICIES.replace("{attempts}", &self.attempts.to_string());
        for name in DESTINATIONS.iter().filter(|name| !self.removed.contains(*name)) {
            let more = match *name {
                "doubtful" => "on_ambiguous = \"hold\"\n".to_owned(),
                "narrow" => format!("concurrency = {}\n", self.slots),
                "shared" => "concurrency = 2\nrate = \"20/m\"\n".to_owned(),
                "asked" => format!("on_ambiguous = \"query\"\nstatus_url = \"{STATUS_URL}\"\n"),
                _ => String::new(),
            };
            text += &destination(name, self.secret, &(more + self.suspending));
        }
        if let Some(minute) = self.schedule {
            let schema = if self.is_refused { "schema = \"strict.json\"\n" } else { "" };
            text += &destination("calendar", self.secret, &(schema.to_owned() + self.suspending));
            text += &SCHEDULE.replace("{minute}", &minute.to_string()).replace("{ids}", self.event_id);
            text += &self.policy.map_or(String::new(), |name| format!("policy = \"{name}\"\n"));
            if self.is_refused {
                text += STRICT;
            }
        }
        text
    }
}

/// Rules that suspend.
pub fn suspending(lots: &mut Lots) -> &'static str {
    lots.pick(SUSPENDING).copied().unwrap_or_default()
}

/// Retry rules for the schedule.
pub fn own_policy(lots: &mut Lots) -> Option<&'static str> {
    lots.pick(POLICIES_OF_ITS_OWN).copied()
}

const STATUS_URL: &str = "https://recipient.example/status/{delivery_id}?event={event_id}";

fn destination(name: &str, secret: &str, more: &str) -> String {
    let policy = match name {
        "tight" | "single" | "brief" | "nightly" | "doubtful" | "asked" => name,
        _ => "usual",
    };
    let tenants = if name == OF_ONE_TENANT { "\"acme\"" } else { "\"acme\", \"globex\"" };
    format!(
        "[destinations.{name}]\ntenants = [{tenants}]\npolicy = \"{policy}\"\ntimeout = \"15s\"\n\
         url = \"https://recipient.example/hooks\"\nsecrets = [\"env:{secret}\"]\n{more}\n"
    )
}

const POLICIES: &str = r#"
[policies.usual]
max_attempts = {attempts}

[policies.tight]
max_attempts = 2

[policies.single]
max_attempts = 1

[policies.brief]
max_attempts = 5
horizon = "120s"
base_delay = "30s"
max_delay = "1h"

[policies.nightly]
max_attempts = 6
base_delay = "30s"
max_delay = "1h"

[policies.doubtful]
max_attempts = 4

[policies.asked]
max_attempts = 6

[producers.both]
tenants = ["acme", "globex"]
tokens = ["env:TOKEN"]

"#;

const SCHEDULE: &str = r#"
[schedules.nightly]
cron = "{minute} 6 * * *"
timezone = "UTC"
window = "previous-day"
tenants = ["acme", "globex"]
destination = "calendar"
type = "even.recorded"
event_id = "{ids}"
catch_up = "2d"
payload = { date = "{window}" }
"#;

const STRICT: &str = r#"
[files]
"strict.json" = '''{"type": "object", "required": ["amount"]}'''
"#;
