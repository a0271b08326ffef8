//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use waybill_domain::time::TimeMs;
use waybill_service::ports::Clock;

/// The operating system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> TimeMs {
        let ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
        };
        TimeMs::from_unix_ms(ms)
    }
}
