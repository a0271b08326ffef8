//! Schedules: which business days are closed, and when that is to be acted on.
//!
//! A schedule fires at wall-clock times of its zone. Each firing closes a **window**: the business day
//! before it. What is due is a function of (schedule, now) alone; whether it was done is for the ledger
//! to say. The zones are those of the database that was compiled in.
//!
//! - A wall-clock time that does not exist fires right after the gap; one that exists twice fires once, at
//!   the first.
//! - A day that a zone skipped altogether (Pacific/Apia, 2011-12-30) had no business, and is no window.

use std::fmt;

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::{Date, Time};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use crate::fault::InvalidField;
use crate::time::{DurationMs, TimeMs};

/// The longest that missed windows may be caught up. Deliveries are kept for 90 days after their end, and
/// the ledger can only tell what was done while they are.
pub const LONGEST_CATCH_UP: DurationMs = DurationMs::from_secs(89 * 86_400);

/// When a schedule fires: a cron pattern of five fields in a zone.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    cron: Cron,
    zone: Zone,
}

#[derive(Debug, Clone)]
struct Cron {
    text: String,
    pattern: croner::Cron,
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// A zone of the IANA database.
#[derive(Debug, Clone, PartialEq)]
struct Zone(TimeZone);

/// One closed business day, and when its schedule fired for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The business day.
    pub day: BusinessDay,
    /// When it began.
    pub from: TimeMs,
    /// When it ended: the beginning of the next day that the zone has.
    pub to: TimeMs,
    /// When the schedule fired for it: not before its end.
    pub fires_at: TimeMs,
}

/// A window that a schedule will fire for, and what the clocks on the wall do then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coming {
    /// The window.
    pub window: Window,
    /// Whether the time at which it is to fire exists.
    pub clocks: Clocks,
}

/// What the clocks of a zone do at a time of day that a pattern names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocks {
    /// They show it once.
    Show,
    /// They skip it: the schedule fires right after the gap.
    Skip,
    /// They show it twice: the schedule fires at the first.
    Repeat,
}

/// A date of the calendar, printed as `2026-08-09`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BusinessDay(Date);

impl fmt::Display for BusinessDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// As `30 2 * * * in America/New_York`.
impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.cron.text, self.zone.0.iana_name().unwrap_or("UTC"))
    }
}

impl Timing {
    /// Reads a pattern (minute, hour, day of month, month, day of week) and the name of a zone.
    pub fn parse(cron: &str, zone: &str) -> Result<Self, InvalidField> {
        Ok(Self { cron: Cron::parse(cron)?, zone: Zone::parse(zone)? })
    }

    /// The windows that were closed and fired for up to `now`, and not longer ago than `catch_up`, each
    /// once, the oldest first. Several firings on one day are for one window, at the first of them.
    pub fn closed_windows(&self, catch_up: DurationMs, now: TimeMs) -> Vec<Window> {
        let since = now.minus(catch_up);
        let (Some(first), Some(last)) = (self.zone.date(since), self.zone.date(now)) else {
            return Vec::new();
        };
        let mut windows = Vec::new();
        // A day earlier: a gap may move a firing past midnight.
        let mut day = first.yesterday().ok();
        while let Some(today) = day.filter(|day| *day <= last) {
            if let Some(window) = self.window_closed_on(today)
                && window.fires_at > since
                && window.fires_at <= now
            {
                windows.push(window);
            }
            day = today.tomorrow().ok();
        }
        windows
    }

    /// What it will fire for after `now`, the soonest first, in the `days` to come.
    pub fn coming(&self, now: TimeMs, days: usize) -> impl Iterator<Item = Coming> {
        // A day earlier: a gap may move a firing past midnight.
        let first = self.zone.date(now).and_then(|day| day.yesterday().ok());
        let dates = std::iter::successors(first, |day| day.tomorrow().ok()).take(days.saturating_add(2));
        dates.filter_map(|today| self.closed_on(today)).filter(move |coming| coming.window.fires_at > now)
    }

    /// The window that the firing of `today`, by the wall clock, closes.
    fn window_closed_on(&self, today: Date) -> Option<Window> {
        self.closed_on(today).map(|coming| coming.window)
    }

    fn closed_on(&self, today: Date) -> Option<Coming> {
        let at = self.cron.first_on(today)?;
        let (fires_at, clocks) = self.zone.shown(today, at)?;
        let day = today.yesterday().ok()?;
        let (from, to) = (self.zone.begin(day)?, self.zone.begin(today)?);
        let window = Window { day: BusinessDay(day), from, to, fires_at };
        (from < to).then_some(Coming { window, clocks })
    }
}

/// The fields of a pattern, in their order.
const FIELDS: [&str; 5] = ["minute", "hour", "day of month", "month", "day of week"];

impl Cron {
    fn parse(text: &str) -> Result<Self, InvalidField> {
        let rule = "minute, hour, day of month, month, day of week, such as \"30 2 * * *\"";
        let invalid = |fault: String| InvalidField::new("cron", fault, rule);
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        if fields.len() != FIELDS.len() {
            return Err(invalid("has not five fields".to_owned()));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        // Each by itself first: what is said of the whole does not say which one it is about.
        for (place, (name, field)) in FIELDS.iter().zip(&fields).enumerate() {
            let mut alone = ["*"; FIELDS.len()];
            alone[place] = field;
            parser.parse(&alone.join(" ")).map_err(|fault| invalid(format!("{name} {field:?}: {fault}")))?;
        }
        let pattern = parser.parse(text).map_err(|fault| invalid(format!("is not a pattern: {fault}")))?;
        let cron = Self { text: text.to_owned(), pattern };
        // In 28 years every date falls on every weekday.
        let mut day = Some(jiff::civil::date(2024, 1, 1));
        for _ in 0..366 * 29 {
            match day {
                Some(date) if cron.first_on(date).is_some() => return Ok(cron),
                Some(date) => day = date.tomorrow().ok(),
                None => break,
            }
        }
        Err(invalid("names no day that ever comes".to_owned()))
    }

    /// The first time of day at which it fires on `date`, if it does.
    fn first_on(&self, date: Date) -> Option<Time> {
        let pattern = &self.pattern.pattern;
        let (month, day) = (u32::from(date.month().unsigned_abs()), u32::from(date.day().unsigned_abs()));
        let weekday = weekday(date);
        let is_day = pattern.month_match(month).ok()?
            && pattern.day_match(i32::from(date.year()), month, day, weekday).ok()?;
        if !is_day {
            return None;
        }
        let hour = (0..24).find(|hour| pattern.hour_match(*hour).unwrap_or(false))?;
        let minute = (0..60).find(|minute| pattern.minute_match(*minute).unwrap_or(false))?;
        Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0).ok()
    }
}

fn weekday(date: Date) -> croner::Weekday {
    use croner::Weekday as W;
    match date.weekday() {
        jiff::civil::Weekday::Monday => W::Monday,
        jiff::civil::Weekday::Tuesday => W::Tuesday,
        jiff::civil::Weekday::Wednesday => W::Wednesday,
        jiff::civil::Weekday::Thursday => W::Thursday,
        jiff::civil::Weekday::Friday => W::Friday,
        jiff::civil::Weekday::Saturday => W::Saturday,
        jiff::civil::Weekday::Sunday => W::Sunday,
    }
}

impl Zone {
    fn parse(name: &str) -> Result<Self, InvalidField> {
        let found = TimeZoneDatabase::bundled().get(name);
        found.map(Self).map_err(|_| {
            let shown: String = name.chars().filter(|c| !c.is_control()).take(40).collect();
            let rule = "a name of the IANA time zone database, such as \"America/New_York\"";
            InvalidField::new("timezone", format!("{shown:?} is not a time zone"), rule)
        })
    }

    /// The date that the zone's calendars show.
    fn date(&self, at: TimeMs) -> Option<Date> {
        let at = Timestamp::from_millisecond(at.as_unix_ms()).ok()?;
        Some(self.0.to_datetime(at).date())
    }

    /// The first moment of a day; of one that the zone skipped, that of the next which it has.
    fn begin(&self, date: Date) -> Option<TimeMs> {
        self.instant(date, Time::midnight())
    }

    /// When a wall clock shows this: the first time, or, if never, the moment right after the gap.
    fn instant(&self, date: Date, time: Time) -> Option<TimeMs> {
        self.shown(date, time).map(|(at, _)| at)
    }

    /// The same, and how often it does.
    fn shown(&self, date: Date, time: Time) -> Option<(TimeMs, Clocks)> {
        let wall = date.to_datetime(time);
        let (at, clocks) = match self.0.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => (offset.to_timestamp(wall).ok()?, Clocks::Show),
            AmbiguousOffset::Fold { before, .. } => (before.to_timestamp(wall).ok()?, Clocks::Repeat),
            // By the offset that held before the gap, the wall time lies behind its end.
            AmbiguousOffset::Gap { before, .. } => {
                let inside =
                    before.to_timestamp(wall).ok()?.checked_add(SignedDuration::from_nanos(1)).ok()?;
                (self.0.preceding(inside).next()?.timestamp(), Clocks::Skip)
            }
        };
        Some((TimeMs::from_unix_ms(at.as_millisecond()), clocks))
    }
}

/// What a schedule owes, of `windows` that are closed (the oldest first) and of each whether the ledger
/// has its delivery: those without one.
///
/// A schedule starts with the first window that it fires for after `since`, from when on it is in force
/// without a gap. Where that is not known, `applied_at` counts, when the configuration in force was
/// applied; an older window is then caught up only behind one that has its delivery: the schedule was in
/// force by then, whatever was applied since. Where neither is known it was always in force.
pub fn owed(windows: &[(Window, bool)], since: Option<TimeMs>, applied_at: Option<TimeMs>) -> Vec<Window> {
    if let Some(since) = since {
        let after = windows.iter().filter(|(window, is_published)| !is_published && window.fires_at > since);
        return after.map(|(window, _)| *window).collect();
    }
    let mut has_started = false;
    let mut owed = Vec::new();
    for (window, is_published) in windows {
        has_started |= *is_published || applied_at.is_none_or(|applied_at| window.fires_at > applied_at);
        if has_started && !is_published {
            owed.push(*window);
        }
    }
    owed
}
