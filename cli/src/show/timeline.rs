//! One delivery as a timeline that a person likes to read: the record's facts, every attempt with
//! its evidence and the reason for the delay after it, what happens next and what a person can do.

use waybill_domain::attempt::{Attempt, Excerpt, Next, Phase, Witness};
use waybill_domain::delivery::Record;
use waybill_domain::ending::{Disposition, Ending};
use waybill_domain::outcome::{Applied, Verdict};
use waybill_domain::time::TimeMs;

use super::beside::{Beside, replay_in_words};
use super::counted;
use super::escape::{escaped, escaped_bytes};
use super::evidence::deciding;
use super::outlook::{outlook, why_expired};

/// How much of an answer a line shows; JSON has all that is kept.
const MOST_SHOWN: usize = 100;

/// What stands where a success's answer would: only attempts that failed leave evidence.
const NOT_KEPT: &str = "neither its status nor a body (keep_result keeps a body)";

/// The timeline of a record and the evidence of its failed attempts, with the destination's owner if
/// somebody knows who that is. Ends without a line break.
pub(crate) fn timeline(record: &Record, attempts: &[Attempt], owner: Option<&str>) -> String {
    told(record, attempts, &Beside { owner, ..Beside::default() })
}

/// The same with everything that is known beside the record: what operators did stands where it
/// happened.
pub(crate) fn told(record: &Record, attempts: &[Attempt], beside: &Beside<'_>) -> String {
    let mut page = Page::default();
    let mut acts = beside.acts.as_deref().unwrap_or_default().iter().peekable();
    head(&mut page, record);
    page.blank();
    page.event(record.delivery.first_queued_at, "queued", &queued(record));
    for attempt in attempts {
        while let Some(act) = acts.next_if(|act| act.at <= attempt.started_at) {
            page.event(act.at, act.title(), &act.text());
        }
        failed(&mut page, record, attempts, attempt);
    }
    let ended_at = record.ended_at.filter(|_| record.disposition.is_some());
    while let Some(act) = acts.next_if(|act| ended_at.is_none_or(|at| act.at <= at)) {
        page.event(act.at, act.title(), &act.text());
    }
    if let Some(claim) = &record.claim {
        let text = format!("being made until {} at the latest", claim.lease_until);
        page.event(claim.claimed_at, &format!("attempt {}", claim.attempt), &text);
    }
    if let Some(held) = &record.hold {
        page.event(held.since, "held", held.reason.as_str());
    }
    if let (Some(disposition), Some(at)) = (record.disposition, record.ended_at) {
        end(&mut page, record, disposition, at);
    }
    acts.for_each(|act| page.event(act.at, act.title(), &act.text()));
    page.blank();
    let outlook = outlook(record, beside.owner, beside.is_too_late());
    page.fact("next", &outlook.next);
    if let Some(replay) = beside.replay {
        page.fact("replay", &replay_in_words(replay));
    }
    if let Some(for_you) = outlook.for_you {
        page.fact("for you", &for_you);
    }
    page.text.trim_end().to_owned()
}

fn head(page: &mut Page, record: &Record) {
    let delivery = &record.delivery;
    let state = match record.disposition {
        Some(Disposition::Ended(Ending::DeadLettered(reason))) => format!("{}: {reason}", record.state),
        Some(Disposition::Closed(reason)) => format!("{}: {reason}, closed by a person", record.state),
        Some(Disposition::Resolved(_)) => format!("{}: resolved by a person", record.state),
        _ => record.state.to_string(),
    };
    page.line(&format!("{}  {state}", delivery.id));
    page.fact("event", &format!("{}, {}", escaped(delivery.event_id.as_str()), delivery.event_type));
    let scope =
        delivery.scope.as_ref().map_or_else(String::new, |s| format!(", scope {}", escaped(s.as_str())));
    page.fact("tenant", &format!("{}{scope}", delivery.tenant));
    page.fact("destination", delivery.destination.as_str());
    if let Some(trace) = delivery.trace_id() {
        page.fact("trace", &trace);
    }
    let payload = &delivery.payload;
    let version = payload.version.map_or_else(String::new, |version| format!(", version {version}"));
    let (length, kind) = (counted(payload.length, "byte"), escaped(&payload.content_type));
    page.fact("payload", &format!("{length} of {kind}{version}, SHA-256 {}", payload.sha256));
    let deadline = delivery.deadline.map_or_else(|| "none".to_owned(), |at| at.to_string());
    page.fact("deadline", &format!("{deadline}; automation ends at {}", record.horizon_at));
    let redriven = match (record.redrives, &record.redrive_run) {
        (0, _) => String::new(),
        (times, run) => {
            format!(", redriven {times}× (last by {})", run.as_deref().map_or("nobody".to_owned(), escaped))
        }
    };
    page.fact("attempts", &format!("{} of {}{redriven}", record.attempts_made, record.attempt_limit));
    page.fact("revision", record.config_revision.as_str());
}

fn queued(record: &Record) -> String {
    match record.delivery.not_before {
        Some(at) if at > record.delivery.first_queued_at => format!("not to be sent before {at}"),
        _ => "due at once".to_owned(),
    }
}

fn failed(page: &mut Page, record: &Record, attempts: &[Attempt], attempt: &Attempt) {
    let status = attempt.status.map_or_else(String::new, |status| format!("{status} "));
    let verdict = match attempt.failure.verdict {
        Verdict::Retryable => "may be retried",
        Verdict::Permanent => "a repeat does not mend it",
    };
    let applied = match attempt.failure.applied {
        Applied::No => "not applied",
        Applied::Unknown => "the recipient may have applied it",
    };
    let what = format!("{status}{}: {applied}, {verdict}", attempt.failure.class);
    page.event(attempt.started_at, &format!("attempt {}", attempt.number), &what);
    let took = attempt.ended_at.since(attempt.started_at);
    match (attempt.witness, attempt.phase) {
        (Witness::Worker, Some(phase)) => page.detail("took", &format!("{took}, {}", how_far(phase))),
        (Witness::Worker, None) => page.detail("took", &took.to_string()),
        (Witness::Finder, _) => {
            page.detail("found", &format!("{}, {took} after it was claimed", attempt.ended_at));
        }
    }
    if let Some(note) = worth_telling(attempt) {
        page.detail("note", &escaped(note));
    }
    if let Some(asked) = &attempt.retry_after {
        let understood =
            asked.wait.map_or_else(|| "not understood".to_owned(), |wait| format!("that is {wait}"));
        page.detail("asked for", &format!("Retry-After: {} ({understood})", escaped(&asked.received)));
    }
    if let Some(excerpt) = &attempt.excerpt {
        page.detail("said", &said(excerpt));
    }
    match &attempt.next {
        Next::Retry { due_at, delay } => page.detail("then", &format!("not before {due_at}, in {delay}")),
        Next::End(ending) => page.detail("then", &format!("no more attempts: {}", ending.reason())),
    }
    if attempt.config_revision != record.config_revision {
        page.detail("revision", attempt.config_revision.as_str());
    }
    if let Some(decided) = deciding(record, attempts, attempt.number) {
        let word = match (attempt.witness, attempt.witness == decided) {
            (Witness::Worker, true) => "the worker that sent it; its word decided",
            (Witness::Worker, false) => "the worker that sent it, too late; the finder's word decided",
            (Witness::Finder, true) => "who found its claim lapsed; its word decided",
            (Witness::Finder, false) => "who found its claim lapsed; the worker's word decided",
        };
        page.detail("says", word);
    }
}

fn how_far(phase: Phase) -> String {
    match phase {
        Phase::Answer => "got an answer".to_owned(),
        Phase::LookUp => "asked for the status, and sent nothing".to_owned(),
        Phase::Request => "got no answer to what was sent".to_owned(),
        Phase::Prepare | Phase::Resolve | Phase::Connect | Phase::Tls => format!("stopped at {phase}"),
    }
}

/// The note, less what the line above it says: that a status came, and which.
fn worth_telling(attempt: &Attempt) -> Option<&str> {
    let answered = attempt.status.map(|status| format!("answered {status}"));
    match answered.filter(|answered| attempt.note.starts_with(answered)) {
        Some(_) => attempt.note.split_once(": ").map(|(_, hint)| hint),
        None => Some(&*attempt.note).filter(|note| !note.is_empty()),
    }
}

fn said(excerpt: &Excerpt) -> String {
    let text = escaped_bytes(&excerpt.bytes);
    let shown: String = text.chars().take(MOST_SHOWN).collect();
    let cut = if shown.len() < text.len() { "…" } else { "" };
    let length = counted(excerpt.full_length, "byte");
    let end = if excerpt.complete { "" } else { " or more; the answer did not end" };
    format!("\"{shown}{cut}\" ({length}{end})")
}

fn end(page: &mut Page, record: &Record, disposition: Disposition, at: TimeMs) {
    match disposition {
        Disposition::Delivered { attempt, late, by_look_up } => {
            let late = if late { ", after its claim was lost (late)" } else { "" };
            let how = match by_look_up {
                true => "the status look-up says it was applied; nothing was sent",
                false => "the recipient acknowledged it",
            };
            let text = format!("delivered: {how}{late}");
            page.event(at, &format!("attempt {attempt}"), &text);
            if let Some(span) = record.acknowledged_after {
                page.detail("took", &format!("{span}, from its claim to its settle"));
            }
            match &record.result {
                Some(result) => page.detail("said", &said(result)),
                None if by_look_up => {}
                None => page.detail("kept", NOT_KEPT),
            }
        }
        Disposition::Closed(reason) => {
            page.event(at, record.state.as_str(), &format!("{reason}; a person closed it since"));
        }
        Disposition::Resolved(reason) => {
            let text = format!("it was a dead letter ({reason}), and a person found that its effect stands");
            page.event(at, "resolved", &text);
        }
        Disposition::Ended(ending) => {
            let why = match ending {
                Ending::Expired => why_expired(record, ""),
                Ending::DeadLettered(reason) => reason.to_string(),
            };
            let told = if record.dlq_told { "was told" } else { "is not told yet" };
            page.event(at, record.state.as_str(), &format!("{why}; the dead-letter queue {told}"));
        }
    }
}

/// Lines in columns.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    fn blank(&mut self) {
        self.line("");
    }

    fn fact(&mut self, label: &str, text: &str) {
        self.line(&format!("  {label:<11}  {text}"));
    }

    fn event(&mut self, at: TimeMs, title: &str, text: &str) {
        self.line(&format!("  {:<24}  {title:<13}  {text}", at.to_string()));
    }

    fn detail(&mut self, label: &str, text: &str) {
        self.line(&format!("  {:<24}    {label:<11}  {text}", ""));
    }
}
