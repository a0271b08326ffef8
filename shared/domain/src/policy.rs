//! How often, how long and how far apart automation tries.
//!
//! `tests/vectors/backoff.json` is the oracle of [`Backoff::delay`].

use crate::fault::InvalidField;
use crate::identity::AttemptNumber;
use crate::time::DurationMs;

/// Capped exponential backoff with full jitter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The ceiling of the delay after attempt 1.
    pub base: DurationMs,
    /// By how much the ceiling grows with each attempt; 1 or more.
    pub factor: f64,
    /// Where the ceiling stops growing.
    pub max: DurationMs,
}

impl Backoff {
    /// The longest delay that jitter may draw after `attempt`: `min(base * factor^(attempt-1), max)`.
    pub fn ceiling(&self, attempt: AttemptNumber) -> DurationMs {
        // 0 * infinity is not a number; without a base there is no delay at any attempt.
        if self.base == DurationMs::ZERO {
            return DurationMs::ZERO;
        }
        let grown = self.base.as_ms() as f64 * self.factor.powf(f64::from(attempt.get() - 1));
        DurationMs::from_ms(grown.min(self.max.as_ms() as f64) as u64)
    }

    /// The delay after `attempt`, where `unit` in [0, 1) was drawn outside: full jitter, rounded down.
    ///
    /// ```
    /// use waybill_domain::identity::AttemptNumber;
    /// use waybill_domain::policy::Policy;
    /// use waybill_domain::time::DurationMs;
    ///
    /// let backoff = Policy::default().backoff;
    /// // The third attempt failed: up to 4 s, of which chance takes a half.
    /// assert_eq!(backoff.delay(AttemptNumber::after(2), 0.5), DurationMs::from_secs(2));
    /// ```
    pub fn delay(&self, attempt: AttemptNumber, unit: f64) -> DurationMs {
        let ceiling = self.ceiling(attempt).as_ms() as f64;
        DurationMs::from_ms((unit.clamp(0.0, 1.0) * ceiling).floor() as u64)
    }
}

/// A retry policy, valid since [`Policy::new`] made it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Policy(PolicyTerms);

/// What a policy says. Defaults: 7 attempts, 1 s, factor 2, cap 15 min, horizon 24 h, window 2 s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicyTerms {
    /// How many requests may be sent before automation ends; counts sends, from 1 to 1,000.
    pub max_attempts: u32,
    /// How far apart they are.
    pub backoff: Backoff,
    /// How long after the first queueing (or a release) automation goes on.
    pub horizon: DurationMs,
    /// The least time before the deadline in which an attempt is still worth starting.
    pub minimum_window: DurationMs,
}

impl Default for PolicyTerms {
    fn default() -> Self {
        Self {
            max_attempts: 7,
            backoff: Backoff {
                base: DurationMs::from_secs(1),
                factor: 2.0,
                max: DurationMs::from_secs(15 * 60),
            },
            horizon: DurationMs::from_secs(24 * 3600),
            minimum_window: DurationMs::from_secs(2),
        }
    }
}

/// What [`Policy::new`] takes as `max_attempts`, for error texts.
pub const ATTEMPTS_RULE: &str = "from 1 to 1000";
/// The same of `factor`.
pub const FACTOR_RULE: &str = "from 1 to 100";
/// The same of `horizon`.
pub const HORIZON_RULE: &str = "longer than minimum_window, or nothing could ever be sent";

impl Policy {
    /// Takes terms that make sense, and says of the first that does not what is wrong with it.
    pub fn new(terms: PolicyTerms) -> Result<Self, InvalidField> {
        let refuse = |field: &str, fault: String, rule: &str| Err(InvalidField::new(field, fault, rule));
        let Backoff { factor, .. } = terms.backoff;
        if !(1..=1000).contains(&terms.max_attempts) {
            return refuse("max_attempts", format!("is {}", terms.max_attempts), ATTEMPTS_RULE);
        }
        if !(factor.is_finite() && (1.0..=100.0).contains(&factor)) {
            return refuse("factor", format!("is {factor}"), FACTOR_RULE);
        }
        if terms.horizon <= terms.minimum_window {
            let fault =
                format!("{} is not longer than minimum_window {}", terms.horizon, terms.minimum_window);
            return refuse("horizon", fault, HORIZON_RULE);
        }
        Ok(Self(terms))
    }
}

impl std::ops::Deref for Policy {
    type Target = PolicyTerms;
    fn deref(&self) -> &PolicyTerms {
        &self.0
    }
}
