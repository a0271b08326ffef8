//! A run: how fast, how far, and when it halts itself.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::{Fate, Pauses, Reviews, Selection};
use crate::delivery::{Record, State};
use crate::fault::InvalidField;
use crate::identity::{DeliveryKey, DestinationName};
use crate::order::Signed;
use crate::time::{DurationMs, TimeMs};

/// How fast a run releases, for each destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReleaseRate {
    count: u32,
    per: DurationMs,
}

impl ReleaseRate {
    /// Reads `20/s`, `600/m` or `1000/h`: at least one, at most 1,000 a second.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidField> {
        let rule = "a number and /s, /m or /h, such as 20/s; at least 1, at most 1000/s";
        let refuse = |fault: String| Err(InvalidField::new(field, fault, rule));
        let Some((count, unit)) = text.split_once('/') else {
            return refuse(format!("{text:?} is not a rate"));
        };
        let per = match unit {
            "s" => DurationMs::from_secs(1),
            "m" => DurationMs::from_secs(60),
            "h" => DurationMs::from_secs(3600),
            _ => return refuse(format!("{text:?} names no unit of time")),
        };
        match count.parse::<u32>() {
            Ok(count) if count > 0 && u64::from(count) <= per.as_ms() => Ok(Self { count, per }),
            Ok(count) => refuse(format!("is {count}/{unit}")),
            Err(_) => refuse(format!("{text:?} is not a rate")),
        }
    }

    /// The time that `n` releases take.
    pub fn span_of(self, n: u64) -> DurationMs {
        DurationMs::from_ms((n * self.per.as_ms()).div_ceil(u64::from(self.count)))
    }
}

impl std::fmt::Display for ReleaseRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = match self.per.as_ms() {
            1000 => "s",
            60_000 => "m",
            _ => "h",
        };
        write!(f, "{}/{unit}", self.count)
    }
}

impl TryFrom<String> for ReleaseRate {
    type Error = InvalidField;
    fn try_from(text: String) -> Result<Self, InvalidField> {
        Self::parse("rate", &text)
    }
}

impl From<ReleaseRate> for String {
    fn from(rate: ReleaseRate) -> String {
        rate.to_string()
    }
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It releases.
    Running,
    /// A person stopped it: what it released and is not sent yet is held.
    Stopped(Signed),
    /// It stopped itself, because most of its last outcomes failed again; likewise.
    Halted(Signed),
    /// It released its sample, and waits for a person to have reviewed that. Holds nothing.
    Sampled(TimeMs),
    /// Everything that was planned was judged.
    Finished(TimeMs),
}

impl Standing {
    /// The standing as it is written everywhere.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Standing::Running => "running",
            Standing::Stopped(_) => "stopped",
            Standing::Halted(_) => "halted",
            Standing::Sampled(_) => "sampled",
            Standing::Finished(_) => "finished",
        }
    }
}

/// How far a run has come with one destination.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Where the next page of its dead letters begins; opaque.
    pub from: Option<String>,
    /// When its next release is due at the earliest.
    pub next_at: Option<TimeMs>,
    /// Whether all of it was judged.
    pub done: bool,
    /// When it stood still.
    #[serde(default, skip_serializing_if = "Pauses::is_empty")]
    pub pauses: Pauses,
}

/// A released delivery whose outcome the run looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Which one.
    pub delivery: DeliveryKey,
    /// How many attempts it had when it was released.
    pub attempts_before: u32,
}

/// A dead letter that the run has taken in hand: its fate was judged, and is being carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InHand {
    /// Which one.
    pub delivery: DeliveryKey,
    /// When its next attempt is due; `None` where it expires instead.
    pub due_at: Option<TimeMs>,
}

/// What a run counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Released.
    pub released: u64,
    /// Expired instead: their deadline had passed.
    pub expired: u64,
    /// Left as they are.
    pub blocked: u64,
}

/// A redrive run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Which dead letters.
    pub selection: Selection,
    /// How many the plan counted as releasable.
    pub planned: u64,
    /// Who started it.
    pub started: Signed,
    /// How fast, for each destination.
    pub rate: ReleaseRate,
    /// After how many releases it waits for a review.
    pub sample: Option<u64>,
    /// Not before this time.
    pub not_before: Option<TimeMs>,
    /// What the reviewer took upon themselves.
    pub reviews: Reviews,
    /// Where it stands.
    pub standing: Standing,
    /// When it was last resumed: outcomes are looked at anew since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<TimeMs>,
    /// How far it has come.
    pub lanes: BTreeMap<DestinationName, Lane>,
    /// What it is carrying out. Written before anything of it is done, so that whoever finds it after a
    /// crash does the rest, and counts each once.
    pub in_hand: Vec<InHand>,
    /// Whose dead letters are in hand: a page is of one lane.
    #[serde(default)]
    pub hand_of: Option<DestinationName>,
    /// What it counted.
    pub tally: Tally,
    /// Whose outcomes it waits for.
    pub watched: Vec<Watched>,
    /// Its last outcomes, oldest first: whether each was delivered.
    pub outcomes: VecDeque<bool>,
}

/// A run halts by this many outcomes.
pub const OUTCOMES: usize = 20;
/// How many released deliveries it watches at once: enough that outcomes keep coming in while slow
/// ones are waited for.
pub const WATCHED: usize = 60;

impl Run {
    /// Whether nothing is left to be done.
    pub fn is_finished(&self) -> bool {
        matches!(self.standing, Standing::Finished(_))
    }

    /// Whether what it released must not go now.
    pub fn holds_what_it_released(&self) -> bool {
        matches!(self.standing, Standing::Stopped(_) | Standing::Halted(_))
    }

    /// Whether it may release at `now`.
    pub fn releases(&self, now: TimeMs) -> bool {
        self.standing == Standing::Running && self.not_before.is_none_or(|at| now >= at)
    }

    /// How many it may release now: of its sample, and, until it has seen enough outcomes to halt by,
    /// no more than it can watch for that.
    pub fn room(&self) -> usize {
        let of_sample = self.sample.map(|sample| sample.saturating_sub(self.tally.released));
        let of_sample = of_sample.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        match self.outcomes.len() < OUTCOMES {
            true => of_sample.min(OUTCOMES.saturating_sub(self.watched.len())),
            false => of_sample,
        }
    }

    /// The destination whose turn it is: of those with dead letters left to be judged that nothing holds,
    /// the one whose next release is due first, if that is before `until`.
    pub fn next_lane(
        &self,
        until: TimeMs,
        is_held: impl Fn(&DestinationName) -> bool,
    ) -> Option<(&DestinationName, &Lane)> {
        let open = self.lanes.iter().filter(|(name, lane)| !lane.done && !is_held(name));
        open.filter(|(_, lane)| lane.next_at.is_none_or(|at| at < until)).min_by_key(|(_, lane)| lane.next_at)
    }

    /// Judges a page of one lane, and takes in hand what of it can be released before `until`. Where
    /// that is not all, the page is read again later; `next` is where the page after it begins.
    pub fn take_page(
        &mut self,
        destination: &DestinationName,
        page: &[(DeliveryKey, Fate)],
        next: Option<String>,
        now: TimeMs,
        until: TimeMs,
    ) {
        let (rate, room) = (self.rate, self.room());
        self.hand_of = Some(destination.clone());
        let lane = self.lanes.entry(destination.clone()).or_default();
        let begin = lane.next_at.map_or(now, |at| at.max(now));
        let (mut released, mut blocked) = (0_u64, 0_u64);
        let mut is_whole = true;
        for (delivery, fate) in page {
            let due_at = match fate {
                Fate::Blocked(_) => {
                    blocked += 1;
                    continue;
                }
                Fate::Expire => None,
                Fate::Release => {
                    let due_at = begin.plus(rate.span_of(released));
                    if due_at >= until || released as usize >= room {
                        is_whole = false;
                        break;
                    }
                    released += 1;
                    Some(due_at)
                }
            };
            self.in_hand.push(InHand { delivery: delivery.clone(), due_at });
        }
        if released > 0 {
            lane.next_at = Some(begin.plus(rate.span_of(released)));
        }
        if is_whole {
            self.tally.blocked += blocked;
            lane.done = next.is_none();
            lane.from = next;
        }
    }

    /// Whether everything was judged and carried out, and the last release is due: until then it can
    /// still be stopped, or halt.
    pub fn is_through(&self, now: TimeMs) -> bool {
        let is_over = |lane: &Lane| lane.done && lane.next_at.is_none_or(|at| at <= now);
        self.in_hand.is_empty() && self.lanes.values().all(is_over)
    }

    /// Keeps a released delivery in view, if there is room.
    pub fn watch(&mut self, record: &Record) {
        if self.watched.len() < WATCHED {
            let watched =
                Watched { delivery: record.delivery.key(), attempts_before: record.attempts_before };
            self.watched.push(watched);
        }
    }

    /// Notes an outcome.
    pub fn note(&mut self, delivered: bool) {
        self.outcomes.push_back(delivered);
        while self.outcomes.len() > OUTCOMES {
            self.outcomes.pop_front();
        }
    }

    /// Whether more than half of its last [`OUTCOMES`] failed again.
    pub fn must_halt(&self) -> bool {
        let failed = self.outcomes.iter().filter(|delivered| !**delivered).count();
        self.outcomes.len() == OUTCOMES && 2 * failed > OUTCOMES
    }

    /// What is in hand could not be carried out in time, and goes so much later: what its lane releases
    /// next goes after that, and nothing is caught up.
    pub fn delay_hand(&mut self, late: DurationMs) {
        let lane = self.hand_of.as_ref().and_then(|name| self.lanes.get_mut(name));
        if let Some(next_at) = lane.and_then(|lane| lane.next_at.as_mut()) {
            *next_at = next_at.plus(late);
        }
    }

    /// When what is in hand, and was to go at `due_at`, goes by the pauses of its lane.
    pub fn hand_goes_at(&self, due_at: TimeMs) -> TimeMs {
        let lane = self.hand_of.as_ref().and_then(|name| self.lanes.get(name));
        lane.map_or(due_at, |lane| lane.pauses.moved(due_at))
    }

    /// Lets it go on: with a fresh view of its outcomes, and no further sample. What a stop had held
    /// goes as much later as the run stood still.
    pub fn resume(&mut self, now: TimeMs) {
        if let Standing::Stopped(signed) | Standing::Halted(signed) = &self.standing {
            let begun = self.lanes.values_mut().filter(|lane| lane.next_at.is_some());
            for lane in begun {
                lane.next_at = lane.next_at.map(|next_at| lane.pauses.add(signed.at, now, next_at));
            }
        }
        self.standing = Standing::Running;
        self.sample = None;
        self.resumed_at = Some(now);
        // What was seen to fail before somebody looked into it says nothing of what goes from here on.
        self.watched.clear();
        self.outcomes.clear();
    }
}

/// What a watched delivery came to since its release by run `run`: delivered, failed again, or `None`
/// while nothing is known. `Err` where it is not this run's any more.
pub fn outcome_of(watched: &Watched, record: &Record, run: &str) -> Result<Option<bool>, NotOurs> {
    if record.redrive_run.as_deref() != Some(run) {
        return Err(NotOurs);
    }
    Ok(match record.state {
        State::Succeeded => Some(true),
        State::DeadLettered | State::Expired => Some(false),
        State::Pending | State::Retryable => {
            (record.attempts_made > watched.attempts_before).then_some(false)
        }
    })
}

/// Another run released it since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotOurs;
