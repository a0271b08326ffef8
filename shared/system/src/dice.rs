//! Chance, from the operating system.

use waybill_domain::identity::WriteToken;
use waybill_service::ports::Dice;

/// The operating system's source of randomness. If it has none, the record that asked is left for
/// later: a guessable token would be worse.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDice;

const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

impl Dice for SystemDice {
    fn unit(&self) -> f64 {
        let drawn = getrandom::u64().expect("the operating system gives random bytes");
        // The 53 bits that a double holds exactly: evenly spread, and never 1.
        (drawn >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn token(&self) -> WriteToken {
        let mut drawn = [0_u8; 26];
        getrandom::fill(&mut drawn).expect("the operating system gives random bytes");
        let digits: String = drawn.iter().map(|byte| char::from(DIGITS[usize::from(byte % 32)])).collect();
        WriteToken::parse(digits).expect("26 digits are a token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_from_zero_to_below_one_and_tokens_differ() {
        let units: Vec<f64> = (0..1000).map(|_| SystemDice.unit()).collect();
        assert!(units.iter().all(|unit| (0.0..1.0).contains(unit)));
        let mean = units.iter().sum::<f64>() / 1000.0;
        assert!((0.4..0.6).contains(&mean), "mean {mean}");
        assert_ne!(SystemDice.token(), SystemDice.token());
        assert_eq!(SystemDice.token().as_str().len(), 26);
    }
}
