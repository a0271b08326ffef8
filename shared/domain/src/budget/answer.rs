//! What is answered to who asks for a slot of a destination that may be suspended.

use super::{Budget, Usage, Wanted};
use crate::suspension::Gate;
use crate::time::{DurationMs, TimeMs};

/// What is answered to who asks for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A slot, leased until then.
    Slot {
        /// Until when.
        until: TimeMs,
        /// Whether it is for a probe of a suspended destination.
        is_probe: bool,
    },
    /// There is no room.
    Full,
    /// The destination is suspended.
    Suspended,
}

impl Usage {
    /// Answers each of `wanted`, in order, where the destination may be suspended: then nobody but its
    /// probe gets a slot.
    #[must_use]
    pub fn answer(
        &mut self,
        budget: &Budget,
        wanted: &[Wanted],
        now: TimeMs,
        lease: DurationMs,
    ) -> Vec<Answer> {
        // What lapsed goes, whether or not anybody asks.
        self.adapt(budget, now);
        self.drop_lapsed(now);
        let answers = wanted.iter().map(|one| {
            let gate = self.health.gate(&one.delivery, &one.token, now);
            if gate == Gate::Shut {
                return Answer::Suspended;
            }
            let Some(until) = self.take(budget, std::slice::from_ref(one), now, lease)[0] else {
                return Answer::Full;
            };
            if gate == Gate::Probe {
                self.health.begin_probe(&one.delivery, &one.token, until);
            }
            Answer::Slot { until, is_probe: gate == Gate::Probe }
        });
        let answers: Vec<Answer> = answers.collect();
        if answers.contains(&Answer::Suspended) {
            self.someone_waits(now, lease);
        }
        answers
    }
}
