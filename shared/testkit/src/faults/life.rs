//! What befalls the calls of a process that nobody drives by hand.

use std::fmt;

use waybill_domain::time::DurationMs;

use super::{Call, Order};
use crate::clock::VirtualClock;

type Meanwhile = Box<dyn FnOnce() + Send>;

/// How many calls are left, what each takes, and what somebody else does in between.
pub(super) struct Life {
    pub(super) left: usize,
    pub(super) pace: Option<(VirtualClock, DurationMs)>,
    pub(super) meanwhile: Option<(Moment, Meanwhile)>,
}

/// When somebody else does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Right before the first call of this kind.
    Before(Call),
    /// After so many calls.
    After(usize),
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Life {
    pub(super) fn of(calls: usize) -> Self {
        Self { left: calls, pace: None, meanwhile: None }
    }

    /// Takes the time of a call, and says what becomes of it.
    pub(super) fn spend(&mut self) -> Order {
        if let Some((clock, each)) = &self.pace {
            clock.advance(*each);
        }
        if self.left == 0 {
            return Order::FailBefore;
        }
        self.left -= 1;
        Order::Go
    }

    /// What is done right before this call, which was counted already, if it is the one.
    pub(super) fn overtaken_at(&mut self, call: Call) -> Option<Meanwhile> {
        let made = usize::MAX - self.left - 1;
        let is_now = |moment: Moment| match moment {
            Moment::Before(one) => one == call,
            Moment::After(calls) => calls == made,
        };
        let (_, meanwhile) = self.meanwhile.take_if(|(moment, _)| is_now(*moment))?;
        Some(meanwhile)
    }
}
