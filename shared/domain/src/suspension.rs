//! Suspension: a destination that can only refuse until a person mended it gets nothing but probes.
//!
//! How its attempts come out in a row is counted in the item of its budget, in writes that are made
//! anyway where it has one; the write that counts the last failure suspends it, so that no crash comes
//! between the two. From then on only a *probe* gets through: one delivery at a time, an ordinary
//! attempt that counts, with growing pauses. The first success lifts the suspension. Everything else is
//! held. What operators see of it, an order with its entries in the audit, follows from here.

use serde::{Deserialize, Serialize};

use crate::attempt::SendReport;
use crate::authority::Book;
use crate::identity::{DeliveryId, WriteToken, ulid};
use crate::order::OrderId;
use crate::outcome::{FailureClass, Outcome};
use crate::time::{DurationMs, TimeMs};

/// When a destination is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspendRules {
    /// After so many failures in a row that only a person can mend, or so many in a row of the
    /// transport; at least 1. Never because of these where it is absent.
    pub after: Option<u32>,
    /// Whether a single 410 suspends it: its recipient says itself that it wants no more.
    pub on_gone: bool,
}

impl SuspendRules {
    /// The rules of a destination that is configured so; none where nothing suspends it.
    pub fn of(after: Option<u32>, on_gone: bool) -> Option<Self> {
        (after.is_some() || on_gone).then_some(Self { after, on_gone })
    }
}

/// What an attempt tells of its destination, apart from its delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It took a request.
    Took,
    /// It refuses whoever asks: 401, 403, 407.
    Refused,
    /// It wants no more: 410.
    Gone,
    /// No answer came over the wire.
    Unreachable,
    /// It answered something else: this is about a delivery, or passes by itself.
    Answered,
}

impl Sign {
    /// What a report says; none where nothing of the destination's own was asked for (a look-up, a
    /// secret or a payload of ours that is missing).
    pub fn of(report: &SendReport) -> Option<Self> {
        use FailureClass as C;
        match report.outcome {
            _ if report.is_look_up() => None,
            Outcome::Delivered => Some(Self::Took),
            Outcome::Failed(failure) => match (failure.class, report.status) {
                (C::AuthenticationRejected, _) => Some(Self::Refused),
                (C::Gone, _) => Some(Self::Gone),
                (_, Some(_)) => Some(Self::Answered),
                (C::Dns | C::Connect | C::Tls | C::ConnectionLost | C::Timeout | C::Protocol, None) => {
                    Some(Self::Unreachable)
                }
                (_, None) => None,
            },
        }
    }
}

/// Why a destination is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It refused whoever asked.
    Refused,
    /// It said that it is gone.
    Gone,
    /// It could not be reached.
    Unreachable,
}

impl Cause {
    /// The cause as it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Cause::Refused => "refused",
            Cause::Gone => "gone",
            Cause::Unreachable => "unreachable",
        }
    }
}

/// An attempt that is over, as the budget's item is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// Its claim's token.
    pub token: WriteToken,
    /// What it told of the destination; none where nothing was sent.
    pub sign: Option<Sign>,
    /// When it began.
    pub started_at: TimeMs,
}

/// Failures in a row, each of the same kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    #[serde(rename = "c")]
    cause: Cause,
    #[serde(rename = "n")]
    failures: u32,
    /// The last that were counted: a store's client may repeat a write of its own that had landed.
    #[serde(rename = "l")]
    last: Vec<WriteToken>,
}

/// How many attempts a row remembers: more than one write ever tells of.
const REMEMBERED: usize = 16;

/// A delivery that tries whether the destination takes something again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Probe {
    #[serde(rename = "d")]
    delivery: DeliveryId,
    /// Its claim's, once it is worked for.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    token: Option<WriteToken>,
    /// Whoever works for it may have died: from then on it is none.
    #[serde(rename = "u")]
    until: TimeMs,
}

/// A suspension in force, or one whose end is not entered in the audit yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// The order that shows it to operators: whoever enters it, enters the same.
    pub id: OrderId,
    /// Whose matter it is.
    pub book: Book,
    /// Since when.
    pub since: TimeMs,
    /// Why.
    pub cause: Cause,
    /// After how many failures in a row.
    pub failures: u32,
    /// How many probes it has had.
    pub probes: u32,
    /// When the next one goes at the earliest.
    pub next_probe_at: TimeMs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    probe: Option<Probe>,
    /// When a success lifted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted_at: Option<TimeMs>,
}

impl Suspension {
    fn live_probe(&self, now: TimeMs) -> Option<&Probe> {
        self.probe.as_ref().filter(|probe| probe.until > now)
    }

    /// Whether a probe is under way.
    pub fn is_probing(&self, now: TimeMs) -> bool {
        self.live_probe(now).is_some()
    }
}

/// The pause before the first probe. Each further one is twice as long.
const FIRST_PAUSE: DurationMs = DurationMs::from_secs(60);

/// The longest pause between two probes.
const LONGEST_PAUSE: DurationMs = DurationMs::from_secs(3600);

/// How far ahead the reconciler chooses a probe: as far as its next round is away, so that the probe goes
/// to the second.
pub const CHOSEN_AHEAD: DurationMs = DurationMs::from_secs(60);

/// How long a probe that was chosen waits for its wake-up to be worked for.
const WAITED_FOR: DurationMs = DurationMs::from_secs(30);

fn pause_after(probes: u32) -> DurationMs {
    FIRST_PAUSE.times(1 << probes.min(10)).min(LONGEST_PAUSE)
}

/// Whether an attempt may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The destination is not suspended.
    Open,
    /// It is, and this is the probe.
    Probe,
    /// It is.
    Shut,
}

/// How a destination does, as all workers together saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    row: Option<Row>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suspension: Option<Box<Suspension>>,
}

impl Health {
    /// Whether there is nothing to be told.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The suspension in force.
    pub fn suspension(&self) -> Option<&Suspension> {
        self.suspension.as_deref().filter(|suspension| suspension.lifted_at.is_none())
    }

    /// The suspension, and also one whose end is still to be entered in the audit.
    pub fn to_enter(&self) -> Option<&Suspension> {
        self.suspension.as_deref()
    }

    /// How many failures of one kind stand in a row.
    pub fn failures_in_a_row(&self) -> u32 {
        self.row.as_ref().map_or(0, |row| row.failures)
    }

    /// Its order says that it is over, or its end is entered: nothing of it is kept. So is the row, for
    /// whoever lifts it by hand has mended something. What was `seen` of it counts: `false` where a relapse
    /// came since, under its name or another, and the destination is suspended.
    pub fn forget(&mut self, seen: &Suspension) -> bool {
        let Some(kept) = self.suspension.as_ref() else { return true };
        if (&kept.id, kept.since) != (&seen.id, seen.since) {
            return self.suspension().is_none();
        }
        let was_in_force = self.suspension().is_some();
        self.suspension = None;
        if was_in_force {
            self.row = None;
        }
        true
    }

    /// Its order was lifted before it began: it is a relapse after that, and another suspension. Whoever finds
    /// that out gives it the same name.
    pub fn rename(&mut self, seen: &Suspension) {
        let is_it = |kept: &&mut Box<Suspension>| kept.id == seen.id && kept.since == seen.since;
        let Some(kept) = self.suspension.as_mut().filter(is_it) else { return };
        if let Ok(id) = OrderId::parse(ulid("hld", seen.since, seen.id.as_str())) {
            kept.id = id;
        }
    }

    /// Whether an attempt that ended so changes anything here: what does not is not worth a write.
    pub fn heeds(&self, rules: &SuspendRules, heard: &Heard) -> bool {
        let mut after = self.clone();
        after.hear(rules, &Book::Across, heard, heard.started_at);
        after != *self
    }

    /// An attempt is over. To be told of it once more changes nothing.
    pub fn hear(&mut self, rules: &SuspendRules, book: &Book, heard: &Heard, now: TimeMs) {
        if let Some(suspension) = self.suspension.as_deref_mut().filter(|it| it.lifted_at.is_none()) {
            let is_probe = suspension.probe.as_ref().is_some_and(|p| p.token.as_ref() == Some(&heard.token));
            if heard.sign == Some(Sign::Took) && (is_probe || heard.started_at > suspension.since) {
                suspension.lifted_at = Some(now);
                suspension.probe = None;
                self.row = None;
            } else if is_probe {
                suspension.probe = None;
                // Where nothing was sent, nothing was learnt: the next one need not wait for long.
                let pauses = if heard.sign.is_some() { suspension.probes } else { 0 };
                suspension.next_probe_at = now.plus(pause_after(pauses));
            }
            return;
        }
        let Some(sign) = heard.sign else { return };
        let cause = match sign {
            Sign::Refused => Some(Cause::Refused),
            Sign::Gone if rules.on_gone => Some(Cause::Gone),
            Sign::Unreachable => Some(Cause::Unreachable),
            Sign::Gone | Sign::Took | Sign::Answered => None,
        };
        match cause {
            None => self.row = None,
            Some(cause) => self.count(cause, rules, book, heard, now),
        }
    }

    fn count(&mut self, cause: Cause, rules: &SuspendRules, book: &Book, heard: &Heard, now: TimeMs) {
        let row = match self.row.take() {
            Some(row) if row.cause == cause => row,
            _ => Row { cause, failures: 0, last: Vec::new() },
        };
        let row = self.row.insert(row);
        if row.last.contains(&heard.token) {
            return;
        }
        row.failures = row.failures.saturating_add(1);
        row.last.push(heard.token.clone());
        if row.last.len() > REMEMBERED {
            row.last.remove(0);
        }
        let failures = row.failures;
        if cause == Cause::Gone || rules.after.is_some_and(|after| failures >= after) {
            self.suspend(cause, failures, book, heard, now);
        }
    }

    /// A relapse before the end of the last suspension was entered is that suspension, going on.
    fn suspend(&mut self, cause: Cause, failures: u32, book: &Book, heard: &Heard, now: TimeMs) {
        self.row = None;
        let next_probe_at = now.plus(pause_after(0));
        let (id, book) = match self.suspension.take() {
            Some(last) => (last.id, last.book),
            None => {
                let Ok(id) = OrderId::parse(ulid("hld", now, heard.token.as_str())) else { return };
                (id, book.clone())
            }
        };
        self.suspension = Some(Box::new(Suspension {
            id,
            book,
            since: now,
            cause,
            failures,
            probes: 0,
            next_probe_at,
            probe: None,
            lifted_at: None,
        }));
    }

    /// Whether an attempt at this delivery may begin under this token.
    pub fn gate(&self, delivery: &DeliveryId, token: &WriteToken, now: TimeMs) -> Gate {
        let Some(suspension) = self.suspension() else { return Gate::Open };
        match suspension.live_probe(now) {
            Some(Probe { token: Some(of), .. }) if of == token => Gate::Probe,
            Some(Probe { token: None, delivery: chosen, .. }) if chosen == delivery => Gate::Probe,
            None if now >= suspension.next_probe_at => Gate::Probe,
            Some(_) | None => Gate::Shut,
        }
    }

    /// The probe begins, to be over by `until`. If it never reports back, the next one waits for as long
    /// as if it had failed.
    pub fn begin_probe(&mut self, delivery: &DeliveryId, token: &WriteToken, until: TimeMs) {
        let Some(suspension) = &mut self.suspension else { return };
        let is_begun = suspension.probe.as_ref().is_some_and(|probe| probe.token.as_ref() == Some(token));
        if !is_begun {
            suspension.probe = Some(Probe { delivery: delivery.clone(), token: Some(token.clone()), until });
            suspension.probes = suspension.probes.saturating_add(1);
            suspension.next_probe_at = until.plus(pause_after(suspension.probes));
        }
    }

    /// When the next probe may go, if that is at most so far `ahead` and none is under way.
    pub fn next_probe(&self, now: TimeMs, ahead: DurationMs) -> Option<TimeMs> {
        let suspension = self.suspension()?;
        let is_near = suspension.next_probe_at <= now.plus(ahead);
        (is_near && !suspension.is_probing(now)).then(|| suspension.next_probe_at.max(now))
    }

    /// Chooses a held delivery as the next probe, to go at `at`.
    pub fn choose_probe(&mut self, delivery: &DeliveryId, at: TimeMs) {
        if let Some(suspension) = &mut self.suspension {
            let until = at.plus(WAITED_FOR);
            suspension.probe = Some(Probe { delivery: delivery.clone(), token: None, until });
        }
    }
}
