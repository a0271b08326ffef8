//! A wall clock that moves only when a test says so, and views on it that are wrong on purpose.
//!
//! Nothing here reads the real time. Whoever waits for a virtual time ([`VirtualClock::reached`])
//! is woken when the clock is moved there, under any executor.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::Clock;

/// A wall clock that everybody who holds a copy of it shares.
#[derive(Debug, Clone)]
pub struct VirtualClock {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    now: TimeMs,
    waiting: Vec<(TimeMs, Waker)>,
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::at(Self::T0)
    }
}

impl VirtualClock {
    /// Where virtual clocks begin unless a test says otherwise: 2026-08-10T06:00:00Z.
    pub const T0: TimeMs = TimeMs::from_unix_ms(1_786_341_600_000);

    /// A clock that stands at `now`.
    pub fn at(now: TimeMs) -> Self {
        Self { state: Arc::new(Mutex::new(State { now, waiting: Vec::new() })) }
    }

    /// Moves it forward.
    pub fn advance(&self, by: DurationMs) {
        let now = self.now().plus(by);
        self.set(now);
    }

    /// Sets it, backwards too: wall clocks do that.
    pub fn set(&self, now: TimeMs) {
        let mut due = Vec::new();
        {
            let mut state = self.state();
            state.now = now;
            state.waiting.retain(|(at, waker)| {
                let is_due = *at <= now;
                if is_due {
                    due.push(waker.clone());
                }
                !is_due
            });
        }
        due.into_iter().for_each(Waker::wake);
    }

    /// Ready once the clock stands at `at` or later.
    pub fn reached(&self, at: TimeMs) -> Reached {
        Reached { clock: self.clone(), at }
    }

    /// The earliest time that somebody waits for.
    pub fn next_wait(&self) -> Option<TimeMs> {
        self.state().waiting.iter().map(|(at, _)| *at).min()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> TimeMs {
        self.state().now
    }
}

/// See [`VirtualClock::reached`].
#[derive(Debug)]
pub struct Reached {
    clock: VirtualClock,
    at: TimeMs,
}

impl Future for Reached {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.state();
        if state.now >= self.at {
            return Poll::Ready(());
        }
        let waker = context.waker();
        if !state.waiting.iter().any(|(at, waiting)| *at == self.at && waiting.will_wake(waker)) {
            state.waiting.push((self.at, waker.clone()));
        }
        Poll::Pending
    }
}

/// One machine's wrong view of a [`VirtualClock`].
#[derive(Debug, Clone)]
pub struct SkewedClock {
    truth: VirtualClock,
    offset_ms: Arc<AtomicI64>,
}

impl SkewedClock {
    /// A view that is `offset_ms` ahead of the truth, or behind it.
    pub fn of(truth: &VirtualClock, offset_ms: i64) -> Self {
        Self { truth: truth.clone(), offset_ms: Arc::new(AtomicI64::new(offset_ms)) }
    }

    /// The clock jumps: from now on it is `offset_ms` ahead.
    pub fn jump_to(&self, offset_ms: i64) {
        self.offset_ms.store(offset_ms, Ordering::SeqCst);
    }

    /// How far it is ahead of the truth, in milliseconds.
    pub fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::SeqCst)
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> TimeMs {
        TimeMs::from_unix_ms(self.truth.now().as_unix_ms().saturating_add(self.offset_ms()))
    }
}
