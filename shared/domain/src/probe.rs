//! What a recipient's answers to test events say of it.
//!
//! Four events are sent one after the other: a good one, the same again, one whose signature is
//! another key's, and one that is signed well and old. Only what can be seen from outside is judged:
//! whether a repeat had a second effect stands in the recipient's own records.

use crate::outcome::FailureClass;
use crate::time::DurationMs;

/// The type of the test events.
pub const EVENT_TYPE: &str = "waybill.probe";

/// How old the old event claims to be: far beyond the five minutes that Standard Webhooks allows.
pub const OLD: DurationMs = DurationMs::from_secs(3600);

/// A test event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// As every event is sent.
    Good,
    /// The good one, once more under its ID.
    Repeat,
    /// Signed by a key that is not the destination's.
    WrongSignature,
    /// Signed by the destination's key for a moment that is [`OLD`] past.
    OldTimestamp,
}

impl Trial {
    /// All of them, in the order in which they are sent.
    pub const ALL: [Trial; 4] = [Trial::Good, Trial::Repeat, Trial::WrongSignature, Trial::OldTimestamp];
}

/// What came of a test event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// Of which.
    pub trial: Trial,
    /// Whether a delivery would have ended as delivered.
    pub delivered: bool,
    /// The final status, where one came.
    pub status: Option<u16>,
    /// How the attempt failed; `None` where it did not, or was not made.
    pub class: Option<FailureClass>,
    /// From the beginning of the attempt to its end.
    pub took: DurationMs,
    /// What the attempt says of itself.
    pub note: String,
}

/// What is thought of one trait of a recipient's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opinion {
    /// As it should be.
    Good,
    /// It has to be mended.
    Bad,
    /// The answers do not tell.
    Unclear,
}

impl Opinion {
    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Opinion::Good => "good",
            Opinion::Bad => "bad",
            Opinion::Unclear => "unclear",
        }
    }
}

/// One trait of a recipient's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was asked.
    pub check: &'static str,
    /// What is thought of it.
    pub opinion: Opinion,
    /// What was seen.
    pub found: String,
    /// What should be done, by the recipient or by whoever configures it.
    pub mend: Option<&'static str>,
}

/// What the answers say, one finding for each question. A recipient that does not take the good event
/// shows nothing by refusing the others: these need not have been sent.
pub fn judge(heard: &[Heard], timeout: DurationMs) -> [Finding; 5] {
    let of = |trial: Trial| heard.iter().find(|one| one.trial == trial);
    let good = of(Trial::Good);
    let taken = good.filter(|good| good.delivered);
    let then = |trial: Trial| taken.and(of(trial));
    [
        takes(good),
        in_time(good, then(Trial::Repeat), timeout),
        takes_repeats(then(Trial::Repeat)),
        refuses(
            then(Trial::WrongSignature),
            "refuses a wrong signature",
            "verify webhook-signature over the raw bytes before anything else, and answer 401",
        ),
        refuses(
            then(Trial::OldTimestamp),
            "refuses an old event",
            "answer 401 where webhook-timestamp is more than five minutes from now: an old request may be replayed",
        ),
    ]
}

fn takes(good: Option<&Heard>) -> Finding {
    let check = "takes a good event";
    let Some(good) = good else { return not_asked(check) };
    let found = good.note.clone();
    if good.delivered {
        return Finding { check, opinion: Opinion::Good, found, mend: None };
    }
    Finding { check, opinion: Opinion::Bad, found, mend: Some(to_be_taken(good.class)) }
}

/// What makes a recipient take the good event, by how that failed: what never reached it, it cannot mend.
fn to_be_taken(class: Option<FailureClass>) -> &'static str {
    use FailureClass as C;
    match class {
        None => "ask again: nothing was sent",
        Some(C::Dns) => "correct the name in the destination's url, or its entry in the DNS",
        Some(C::Connect) => {
            "start the recipient, let this machine through to its port, or correct the destination's url"
        }
        Some(C::Tls) => "mend the recipient's certificate or its TLS, or correct the destination's url",
        Some(C::ForbiddenAddress) => {
            "give the destination an https url at a public address; for local trials say --allow-local"
        }
        Some(C::SecretUnavailable) => "set the secret that the destination refers to, where Waybill runs",
        Some(C::Redirect) => "correct the destination's url: redirects are not followed",
        Some(C::EndpointMissing) => "correct the destination's url, or take POST there",
        Some(_) => "answer 2xx once the event is kept; the other events are sent when this one is taken",
    }
}

/// Half of the timeout is left for bad days.
fn in_time(good: Option<&Heard>, repeat: Option<&Heard>, timeout: DurationMs) -> Finding {
    let check = "answers in time";
    let answered = |one: &&Heard| one.status.is_some();
    let Some(slowest) = good.into_iter().chain(repeat).filter(answered).map(|one| one.took).max() else {
        let found = "no answer came".to_owned();
        return Finding { check, opinion: Opinion::Unclear, found, mend: None };
    };
    let found = format!("the slowest answer took {slowest} of {timeout}");
    if slowest.as_ms() * 2 <= timeout.as_ms() {
        return Finding { check, opinion: Opinion::Good, found, mend: None };
    }
    let mend = "keep the event, answer 202, and do the work afterwards";
    Finding { check, opinion: Opinion::Bad, found, mend: Some(mend) }
}

fn takes_repeats(repeat: Option<&Heard>) -> Finding {
    let check = "takes a repeated ID";
    let Some(repeat) = repeat else { return not_asked(check) };
    if repeat.delivered {
        let found =
            "acknowledged twice; whether it had one effect, only the recipient's records say".to_owned();
        return Finding { check, opinion: Opinion::Good, found, mend: None };
    }
    let mend = "answer 2xx for a webhook-id that was seen before, and do nothing";
    Finding { check, opinion: Opinion::Bad, found: repeat.note.clone(), mend: Some(mend) }
}

/// A refusal is a status that says so: what fails or is too busy did not judge.
fn refuses(heard: Option<&Heard>, check: &'static str, mend: &'static str) -> Finding {
    let Some(heard) = heard else { return not_asked(check) };
    let (opinion, mend) = match heard.status {
        Some(200..=299) => (Opinion::Bad, Some(mend)),
        Some(408 | 425 | 429) => (Opinion::Unclear, None),
        Some(400..=499) => (Opinion::Good, None),
        _ => (Opinion::Unclear, Some("answer a refusal with 401: what fails otherwise is sent again")),
    };
    let found = match heard.status {
        Some(status) => format!("answered {status}"),
        None => heard.note.clone(),
    };
    Finding { check, opinion, found, mend }
}

fn not_asked(check: &'static str) -> Finding {
    Finding { check, opinion: Opinion::Unclear, found: "not asked".to_owned(), mend: None }
}
