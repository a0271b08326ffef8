//! Chance that repeats itself: the same seed, the same draws, on every machine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use waybill_domain::identity::WriteToken;
use waybill_service::ports::Dice;

/// SplitMix64 (Steele, Lea, Flood 2014): eight bytes of state, good enough for choosing histories.
#[derive(Debug, Clone)]
pub struct Lots {
    state: u64,
}

impl Lots {
    /// Lots that are drawn from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number in [0, n); 0 if n is 0. The bias is below n / 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(n);
        (product >> 64) as u64
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        let span = u64::try_from(most.saturating_sub(least)).unwrap_or(0);
        least.saturating_add_unsigned(self.below(span.saturating_add(1)))
    }

    /// True in `percent` of 100 draws.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the items; `None` of none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(usize::try_from(self.below(items.len() as u64)).unwrap_or(0))
    }
}

/// Dice for one actor: its tokens begin with its name, so that a write tells who made it.
#[derive(Debug)]
pub struct SeededDice {
    owner: String,
    state: Mutex<(Lots, u64)>,
}

impl SeededDice {
    /// Dice of `owner` that are thrown from `seed`.
    pub fn new(owner: impl Into<String>, seed: u64) -> Self {
        Self { owner: owner.into(), state: Mutex::new((Lots::new(seed), 0)) }
    }
}

impl Dice for SeededDice {
    fn unit(&self) -> f64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0.unit()
    }

    fn token(&self) -> WriteToken {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 += 1;
        token(&self.owner, state.1)
    }
}

/// Dice that always show the same number, for expected delays that are exact.
#[derive(Debug)]
pub struct FixedDice {
    unit: f64,
    tokens: AtomicU64,
}

impl FixedDice {
    /// Dice that show `unit`, in [0, 1), and count their tokens.
    pub const fn showing(unit: f64) -> Self {
        Self { unit, tokens: AtomicU64::new(0) }
    }
}

impl Dice for FixedDice {
    fn unit(&self) -> f64 {
        self.unit
    }

    fn token(&self) -> WriteToken {
        token("fixed", self.tokens.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

fn token(owner: &str, count: u64) -> WriteToken {
    WriteToken::parse(format!("{owner}-{count}")).expect("an owner is a short printable name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_lots() {
        let draws = |seed| {
            let mut lots = Lots::new(seed);
            [lots.bits(), lots.bits(), lots.below(10), lots.below(10)]
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
    }

    #[test]
    fn splitmix_gives_the_published_first_number_of_seed_zero() {
        assert_eq!(Lots::new(0).bits(), 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn a_number_between_includes_both_ends() {
        let mut lots = Lots::new(1);
        let drawn: std::collections::BTreeSet<i64> = (0..200).map(|_| lots.between(-2, 2)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [-2, -1, 0, 1, 2]);
    }
}
