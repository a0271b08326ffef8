//! A destination's budget: how many requests may be with its recipient at once, and how many may
//! start in a span of time.
//!
//! A slot is leased by a claim's token and lapses with its lease: what crashed gives it back by
//! itself, and a second release finds nothing to free. A slot may be *reserved* for a held delivery
//! before its wake-up is sent, so that what is released gets what it was released for. Of slots and
//! of rate, redrives get at most half, and at least one. Taking, reserving and releasing may be
//! repeated: what stands already is granted again and charged once.

mod answer;
mod pace;

use serde::{Deserialize, Serialize};

pub use self::answer::Answer;
use self::pace::Pace;
pub use self::pace::{RATE_RULE, Rate};
use crate::identity::{DeliveryId, WriteToken};
use crate::suspension::Health;
use crate::time::{DurationMs, TimeMs};

/// What a destination may be asked to bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// How many requests at once; at least 1.
    pub concurrency: u32,
    /// How many may start in a span of time.
    pub rate: Option<Rate>,
}

impl Budget {
    /// The most requests at once that a budget can be asked to count.
    pub const MOST_CONCURRENCY: u32 = 1000;

    /// How many requests at once where only a rate is configured.
    pub const USUAL_CONCURRENCY: u32 = 16;

    /// Whatever comes: for a destination that is counted for its suspension alone. Nothing of it is kept,
    /// so that a healthy one costs no write.
    pub const UNBOUNDED: Self = Self { concurrency: u32::MAX, rate: None };

    /// The budget of a destination that is configured so; none where it is not configured at all.
    pub fn of(concurrency: Option<u32>, rate: Option<Rate>) -> Option<Self> {
        match (concurrency, rate) {
            (None, None) => None,
            _ => Some(Self { concurrency: concurrency.unwrap_or(Self::USUAL_CONCURRENCY).max(1), rate }),
        }
    }

    /// The same with so many requests at once at most; where there is `none`, with just so many.
    pub fn at_most(own: Option<Self>, concurrency: u32) -> Self {
        let most = concurrency.max(1);
        own.map_or(Self { concurrency: most, rate: None }, |own| Self {
            concurrency: own.concurrency.min(most),
            ..own
        })
    }

    /// Whether anything may come.
    pub fn is_unbounded(&self) -> bool {
        *self == Self::UNBOUNDED
    }

    /// How many of the slots redrives may have.
    fn redrives(&self) -> usize {
        (self.concurrency / 2).max(1) as usize
    }
}

/// The longest time ahead for which a start is reserved: beyond the reconciler's next round, which
/// reserves whatever comes later. What is reserved keeps its time, also where the rate is raised
/// meanwhile.
const MOST_AHEAD: DurationMs = DurationMs::from_secs(90);

/// How far ahead starts are reserved while others are under way that will reserve the next.
const USUALLY_AHEAD: DurationMs = DurationMs::from_secs(1);

/// How long a reserved slot waits for its wake-up to be worked for.
const RESERVED_FOR: DurationMs = DurationMs::from_secs(30);

/// How long after the last refusal, beyond the longest attempt, whoever frees a slot looks for what
/// is held.
const LOOKED_FOR: DurationMs = DurationMs::from_secs(60);

/// A slot that a claim's token leases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Slot {
    #[serde(rename = "t")]
    token: WriteToken,
    #[serde(rename = "u")]
    until: TimeMs,
    #[serde(rename = "r", default, skip_serializing_if = "is_false")]
    is_redrive: bool,
}

/// A slot that waits for a delivery whose wake-up is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Reservation {
    #[serde(rename = "d")]
    delivery: DeliveryId,
    #[serde(rename = "f")]
    from: TimeMs,
    #[serde(rename = "u")]
    until: TimeMs,
    #[serde(rename = "r", default, skip_serializing_if = "is_false")]
    is_redrive: bool,
}

/// Who asks for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The token of the claim that is about to be made.
    pub token: WriteToken,
    /// For which delivery.
    pub delivery: DeliveryId,
    /// Whether a redrive run released it.
    pub is_redrive: bool,
}

/// What is used of a destination's budget: one small item, changed by compare-and-set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slots: Vec<Slot>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reserved: Vec<Reservation>,
    /// Until when whoever frees a slot looks for what is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wanted_until: Option<TimeMs>,
    #[serde(default, skip_serializing_if = "Pace::is_empty")]
    pace: Pace,
    #[serde(default, skip_serializing_if = "Pace::is_empty")]
    redrive_pace: Pace,
    /// Under which rate the paces were charged, as microseconds between two starts; 0 before the first.
    #[serde(default, skip_serializing_if = "is_nothing")]
    spacing_us: i64,
    /// Whether the destination is suspended, or about to be.
    #[serde(default, skip_serializing_if = "Health::is_empty")]
    pub health: Health,
}

impl Usage {
    /// Leases a slot to each of `wanted` for as long as there is room, in order: until when, or none.
    /// What is refused is remembered, so that whoever frees a slot looks for what is held.
    #[must_use]
    pub fn take(
        &mut self,
        budget: &Budget,
        wanted: &[Wanted],
        now: TimeMs,
        lease: DurationMs,
    ) -> Vec<Option<TimeMs>> {
        self.adapt(budget, now);
        self.drop_lapsed(now);
        let granted: Vec<_> = wanted.iter().map(|one| self.take_one(budget, one, now, lease)).collect();
        if granted.contains(&None) {
            self.someone_waits(now, lease);
        }
        granted
    }

    fn take_one(
        &mut self,
        budget: &Budget,
        wanted: &Wanted,
        now: TimeMs,
        lease: DurationMs,
    ) -> Option<TimeMs> {
        if let Some(own) = self.slots.iter().find(|slot| slot.token == wanted.token) {
            return Some(own.until);
        }
        if budget.is_unbounded() {
            return Some(now.plus(lease));
        }
        let Wanted { token, delivery, is_redrive } = wanted.clone();
        match self.reserved.iter().position(|reservation| reservation.delivery == delivery) {
            // Counted and charged when it was reserved; by now fewer may go at once, where a limit was lowered.
            Some(at) => {
                self.reserved.swap_remove(at);
                if self.slots.len() >= budget.concurrency as usize {
                    return None;
                }
            }
            None if self.has_slot(budget, is_redrive) && self.earliest(budget, is_redrive, now) <= now => {
                self.charge(budget, is_redrive, now, now);
            }
            None => return None,
        }
        let until = now.plus(lease);
        self.slots.push(Slot { token, until, is_redrive });
        Some(until)
    }

    /// Gives slots back. Tokens that lease none free none.
    pub fn release(&mut self, tokens: &[WriteToken]) {
        self.slots.retain(|slot| !tokens.contains(&slot.token));
    }

    /// Reserves a slot for a held delivery that is about to be released: from when on it may start, or
    /// none if there is no room, or if somebody has reserved for it.
    ///
    /// A start within the rate may lie ahead: a moment, or beyond the reconciler's next round where
    /// nobody else is under way who would release the next.
    #[must_use]
    pub fn reserve(
        &mut self,
        budget: &Budget,
        delivery: &DeliveryId,
        is_redrive: bool,
        now: TimeMs,
    ) -> Option<TimeMs> {
        self.adapt(budget, now);
        self.drop_lapsed(now);
        if budget.is_unbounded() {
            return Some(now);
        }
        if self.is_reserved(delivery) || !self.has_slot(budget, is_redrive) {
            return None;
        }
        let ahead = if self.used() == 0 { MOST_AHEAD } else { USUALLY_AHEAD };
        let from = self.earliest(budget, is_redrive, now);
        if from > now.plus(ahead) {
            return None;
        }
        self.charge(budget, is_redrive, from, now);
        let until = from.plus(RESERVED_FOR);
        self.reserved.push(Reservation { delivery: delivery.clone(), from, until, is_redrive });
        Some(from)
    }

    /// Nobody comes for these: what was reserved for them was released by somebody else meanwhile.
    pub fn unreserve(&mut self, deliveries: &[DeliveryId]) {
        self.reserved.retain(|reservation| !deliveries.contains(&reservation.delivery));
    }

    /// More is held than there was room for: whoever frees a slot looks for it. Not moved at every call,
    /// so that a refusal alone is rarely worth a write.
    pub fn someone_waits(&mut self, now: TimeMs, lease: DurationMs) {
        let until = now.plus(lease).plus(LOOKED_FOR);
        let is_long_enough = |at: &TimeMs| (until.minus(DurationMs::from_secs(20))..=until).contains(at);
        self.wanted_until = self.wanted_until.filter(is_long_enough).or(Some(until));
    }

    /// Whether something may be held for want of room.
    pub fn is_wanted(&self, now: TimeMs) -> bool {
        self.wanted_until.is_some_and(|until| now < until)
    }

    /// Whether a slot waits for this delivery.
    pub fn is_reserved(&self, delivery: &DeliveryId) -> bool {
        self.reserved.iter().any(|reservation| reservation.delivery == *delivery)
    }

    /// How many slots are free, lapsed ones among them.
    pub fn free(&self, budget: &Budget, now: TimeMs) -> usize {
        (budget.concurrency as usize).saturating_sub(self.in_use(now))
    }

    /// How many slots are leased or reserved.
    pub fn in_use(&self, now: TimeMs) -> usize {
        self.slots.iter().filter(|slot| slot.until > now).count()
            + self.reserved.iter().filter(|reservation| reservation.until > now).count()
    }

    /// How many slots wait for a wake-up.
    pub fn reservations(&self) -> usize {
        self.reserved.len()
    }

    /// How many slots claims lease, lapsed ones among them.
    pub fn leased(&self) -> usize {
        self.slots.len()
    }

    /// Another rate than the one that starts were charged under: what that would have asked to wait for is
    /// not waited for, and a start that was reserved ahead keeps no slot.
    fn adapt(&mut self, budget: &Budget, now: TimeMs) {
        let spacing_us = budget.rate.map_or(0, Rate::spacing_us);
        if self.spacing_us != 0 && self.spacing_us != spacing_us {
            (self.pace, self.redrive_pace) = (Pace::default(), Pace::default());
            self.reserved.retain(|reservation| reservation.from <= now);
        }
        self.spacing_us = spacing_us;
    }

    fn drop_lapsed(&mut self, now: TimeMs) {
        self.slots.retain(|slot| slot.until > now);
        self.reserved.retain(|reservation| reservation.until > now);
    }

    fn used(&self) -> usize {
        self.slots.len() + self.reserved.len()
    }

    fn has_slot(&self, budget: &Budget, is_redrive: bool) -> bool {
        let redrives = self.slots.iter().filter(|slot| slot.is_redrive).count()
            + self.reserved.iter().filter(|reservation| reservation.is_redrive).count();
        self.used() < budget.concurrency as usize && (!is_redrive || redrives < budget.redrives())
    }

    /// When the next one may start by the rate, at `now` or later.
    pub fn earliest(&self, budget: &Budget, is_redrive: bool, now: TimeMs) -> TimeMs {
        let Some(rate) = budget.rate else { return now };
        let any = self.pace.earliest(rate, now);
        if is_redrive { any.max(self.redrive_pace.earliest(rate.half(), now)) } else { any }
    }

    fn charge(&mut self, budget: &Budget, is_redrive: bool, at: TimeMs, now: TimeMs) {
        let Some(rate) = budget.rate else { return };
        self.pace.charge(rate, at, now);
        if is_redrive {
            self.redrive_pace.charge(rate.half(), at, now);
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_nothing(number: &i64) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(flag: &bool) -> bool {
    !flag
}
