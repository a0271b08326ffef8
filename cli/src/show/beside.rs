//! What is known of a delivery beside its record: who is asked, what operators did about it, and what a
//! replay would do with it now.

use serde_json::{Map, Value, json};
use waybill_domain::audit::{self, Entry};
use waybill_domain::redrive::Fate;
use waybill_domain::time::{DurationMs, TimeMs};

use super::escape::escaped;

/// What is known beside a record.
#[derive(Debug, Default)]
pub(crate) struct Beside<'a> {
    /// Who is asked when its destination fails.
    pub(crate) owner: Option<&'a str>,
    /// What operators did about it and about the run that released it, oldest first; `None` where
    /// nobody could be asked.
    pub(crate) acts: Option<Vec<Act>>,
    /// What a redrive without a review would do with it; `None` where it is no dead letter, or no
    /// configuration is in force.
    pub(crate) replay: Option<Replay>,
}

/// What a redrive would do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replay {
    pub(crate) fate: Fate,
    /// How long before the deadline no attempt starts any more, where that is why it would expire: the
    /// deadline itself is still to come.
    pub(crate) too_near: Option<DurationMs>,
}

/// An act, as far as everybody who may see the delivery may know it.
#[derive(Debug, Clone)]
pub(crate) struct Act {
    pub(crate) at: TimeMs,
    act: audit::Act,
    who: String,
    subject: String,
    why: Option<String>,
}

impl Act {
    /// Without what else the entry says: that may be about others.
    pub(crate) fn of(entry: Entry) -> Self {
        let Entry { at, act, who, subject, why, .. } = entry;
        Self { at, act, who, subject, why }
    }

    /// What it was about, in a word.
    pub(super) const fn title(&self) -> &'static str {
        use audit::Act as A;
        match self.act {
            A::RedriveStarted | A::RedriveStopped | A::RedriveResumed | A::RedriveHalted => "redrive",
            A::Closed => "closed",
            A::Resolved => "resolved",
            _ => "audit",
        }
    }

    /// Who did what, and why.
    pub(super) fn text(&self) -> String {
        use audit::Act as A;
        let (who, subject) = (escaped(&self.who), escaped(&self.subject));
        let what = match self.act {
            A::RedriveStarted => format!("{who} started {subject}"),
            A::RedriveStopped => format!("{who} stopped {subject}"),
            A::RedriveResumed => format!("{who} resumed {subject}"),
            A::RedriveHalted => format!("{who} halted {subject}"),
            A::Closed | A::Resolved => format!("by {who}"),
            other => format!("{who}: {other}"),
        };
        match &self.why {
            Some(why) => format!("{what}: {}", escaped(why)),
            None => what,
        }
    }

    fn facts(&self) -> Value {
        json!({
            "at": self.at.to_string(),
            "act": self.act.as_str(),
            "by": self.who,
            "subject": self.subject,
            "why": self.why,
        })
    }
}

impl Beside<'_> {
    /// Whether a redrive would expire it.
    pub(crate) fn is_too_late(&self) -> bool {
        self.replay.is_some_and(|replay| replay.fate == Fate::Expire)
    }

    /// The facts of the delivery, and these.
    pub(crate) fn added_to(&self, mut facts: Map<String, Value>) -> Map<String, Value> {
        let acts = self.acts.as_ref().map(|acts| acts.iter().map(Act::facts).collect::<Vec<_>>());
        facts.insert("acts".to_owned(), json!(acts));
        facts.insert("replay".to_owned(), json!(self.replay.map(|replay| replay_facts(replay.fate))));
        facts
    }
}

fn replay_facts(fate: Fate) -> Value {
    let (word, block) = match fate {
        Fate::Release => ("release", None),
        Fate::Expire => ("expire", None),
        Fate::Blocked(block) => ("blocked", Some(block)),
    };
    json!({
        "fate": word,
        "blocked_by": block.map(|block| block.as_str()),
        "lifted_by": block.map(|block| block.remedy()),
    })
}

/// What a redrive would do, in a sentence.
pub(super) fn replay_in_words(replay: Replay) -> String {
    match replay.fate {
        Fate::Release => {
            "a redrive would release it now: the same ID, its numbering continued, a fresh budget".to_owned()
        }
        Fate::Expire => {
            let why = replay.too_near.map_or_else(
                || "its deadline has passed".to_owned(),
                |window| format!("no attempt may start in the last {window} before its deadline"),
            );
            format!("a redrive would not send it: {why}, and it would expire")
        }
        Fate::Blocked(block) => {
            format!(
                "a redrive would leave it as it is ({}); to lift that, {}",
                block.as_str(),
                block.remedy()
            )
        }
    }
}
