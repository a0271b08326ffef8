//! Capacity: whether a backlog that an outage left is delivered before its deadline, and what comes first
//! where it is not.
//!
//! While the recipient is down, arrivals wait. From when it is back, `concurrency / service_time` requests
//! leave per second (fewer where a rate bounds them), of which new arrivals take their part; some
//! deliveries need more than one request (`duplicates`). What is left drains the backlog. A fluid model: no
//! jitter, and nothing that waits out a backoff; a destination that is held or suspended during its outage
//! behaves so. What it reckons from is assumed, or [`measured`].

mod hand_over;
pub mod measured;

use crate::time::DurationMs;

/// What is known, or assumed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Deliveries that come in, per second; more than 0.
    pub arrivals_per_s: f64,
    /// How long the recipient was down, or is expected to be.
    pub outage: DurationMs,
    /// How long a request takes; more than 0.
    pub service_time: DurationMs,
    /// Requests at once as things stand; at least 1.
    pub concurrency: u32,
    /// Requests at once that the recipient can bear; at least `concurrency`.
    pub safe_concurrency: u32,
    /// Requests that may start per second, where a rate bounds that; more than 0.
    pub rate_per_s: Option<f64>,
    /// Requests beyond one for each delivery, in percent of the deliveries: retries and duplicates.
    pub duplicates_percent: f64,
    /// From the recipient's return to the deadline of what waits; more than 0.
    pub deadline: DurationMs,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// What waits when the recipient is back.
    pub backlog: u64,
    /// Until nothing of it waits any more; `None` where new arrivals take all there is.
    pub drain_ms: Option<u64>,
    /// What is left to the deadline then, negative where it comes first; `None` like `drain_ms`.
    pub slack_ms: Option<i64>,
    /// The fewest requests at once with which all is delivered by the deadline.
    pub needed_concurrency: u64,
    /// How long the outage may last with the same deadline and nothing is late.
    pub longest_outage_ms: u64,
    /// How many cannot be delivered by the deadline, by `safe_concurrency` at once.
    pub too_many: u64,
    /// What to do first.
    pub first: First,
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// Nothing: it could take twice as long.
    Nothing,
    /// Page a person: it is in time, but only just; another failure has no room.
    Page,
    /// More consumers: the recipient bears as many as are needed.
    MoreConsumers,
    /// Shedding: what the recipient bears, or its rate, is too little for all, so what matters least is held.
    Shed,
}

impl First {
    /// As it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            First::Nothing => "nothing",
            First::Page => "page",
            First::MoreConsumers => "more_consumers",
            First::Shed => "shed",
        }
    }
}

/// How it stands at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Since the outage began, in seconds.
    pub at_s: f64,
    /// What waits.
    pub backlog: f64,
    /// What would be left to the deadline if the recipient were back from here on, in seconds.
    pub slack_s: f64,
}

impl Load {
    /// What follows from it.
    pub fn outlook(&self) -> Outlook {
        let (backlog, deadline_s) = (self.backlog(), seconds(self.deadline));
        let drain_s = self.drain_s(backlog);
        let needed = (self.arrivals_per_s + backlog / deadline_s) * self.cost_s();
        // What is a whole number but for the last bits of a float is that number.
        let needed_concurrency = ((needed - 1e-9).ceil().max(1.0)) as u64;
        let by_deadline = self.per_s_of(self.safe_concurrency) * deadline_s;
        let too_many = backlog + self.arrivals_per_s * deadline_s - by_deadline;
        let too_many = (too_many - 1e-9).ceil().max(0.0) as u64;
        let first = match drain_s {
            Some(drain_s) if 2.0 * drain_s <= deadline_s => First::Nothing,
            Some(drain_s) if drain_s <= deadline_s => First::Page,
            _ if too_many == 0 => First::MoreConsumers,
            _ => First::Shed,
        };
        let until_deadline_s = seconds(self.outage) + deadline_s;
        let longest_s = until_deadline_s * (1.0 - self.arrivals_per_s / self.per_s()).max(0.0);
        Outlook {
            backlog: (backlog - 1e-9).ceil().max(0.0) as u64,
            drain_ms: drain_s.map(|drain_s| (drain_s * 1000.0).round() as u64),
            slack_ms: drain_s.map(|drain_s| ((deadline_s - drain_s) * 1000.0).round() as i64),
            needed_concurrency,
            longest_outage_ms: (longest_s * 1000.0).round() as u64,
            too_many,
            first,
        }
    }

    /// How it stands from the beginning of the outage until the backlog is gone or its deadline comes, at
    /// the moments where the lines bend. Empty where the backlog never drains.
    pub fn course(&self) -> Vec<Moment> {
        let (outage_s, deadline_s) = (seconds(self.outage), seconds(self.deadline));
        let end_s = outage_s + deadline_s;
        let Some(drain_s) = self.drain_s(self.backlog()) else { return Vec::new() };
        let slack_s = deadline_s - drain_s;
        let left = self.backlog() * (1.0 - deadline_s / drain_s.max(f64::MIN_POSITIVE)).max(0.0);
        let gone_s = outage_s + drain_s.min(deadline_s);
        vec![
            Moment { at_s: 0.0, backlog: 0.0, slack_s: end_s },
            Moment { at_s: outage_s, backlog: self.backlog(), slack_s },
            Moment { at_s: gone_s, backlog: left, slack_s },
        ]
    }

    fn backlog(&self) -> f64 {
        self.arrivals_per_s * seconds(self.outage)
    }

    /// How long one delivery keeps a request's place.
    fn cost_s(&self) -> f64 {
        seconds(self.service_time) * (1.0 + self.duplicates_percent / 100.0)
    }

    /// Deliveries per second.
    fn per_s(&self) -> f64 {
        self.per_s_of(self.concurrency)
    }

    /// Deliveries per second by so many requests at once.
    fn per_s_of(&self, concurrency: u32) -> f64 {
        let by_concurrency = f64::from(concurrency) / self.cost_s();
        let by_rate = |rate_per_s| rate_per_s / (1.0 + self.duplicates_percent / 100.0);
        self.rate_per_s.map_or(by_concurrency, |rate_per_s| by_concurrency.min(by_rate(rate_per_s)))
    }

    fn drain_s(&self, backlog: f64) -> Option<f64> {
        match self.per_s() - self.arrivals_per_s {
            // More than the last bits of a float.
            net @ 1e-9.. => Some(backlog / net),
            _ => None,
        }
    }
}

fn seconds(span: DurationMs) -> f64 {
    span.as_ms() as f64 / 1000.0
}
