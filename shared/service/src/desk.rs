//! The desk: where all that one process works on meets to take and give back what budgets lease, and to
//! tell how their destinations do.
//!
//! Whoever comes first writes for everybody who is there; so a batch takes its slots of a destination
//! in one write. Slots that are done with are given back at once where somebody may wait for them, and
//! otherwise when they are as many as those still at work: ten slots come back in four writes at most.
//! Nothing is lost if whoever writes goes away in the middle: what was asked for stays until it is
//! answered, and to ask again changes nothing. What is never given back lapses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures::channel::oneshot;
use futures::future::join_all;
use waybill_domain::attempt::SendReport;
use waybill_domain::budget::{Answer, Wanted};
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{DestinationName, WriteToken};
use waybill_domain::suspension::{Heard, Sign, SuspendRules};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::ports::{Cursor, KeptUsage};

/// Takes and gives back slots; one for a process. Costs nothing where no destination has a budget.
#[derive(Debug, Default)]
pub struct Desk {
    counters: Mutex<BTreeMap<DestinationName, Arc<Counter>>>,
}

impl Desk {
    /// The counter of one destination.
    pub(crate) fn counter(&self, destination: &DestinationName) -> Arc<Counter> {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters.entry(destination.clone()).or_default().clone()
    }
}

/// One destination's counter.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    /// Held by whoever writes.
    pub(crate) turn: futures::lock::Mutex<()>,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    /// Ends when somebody who is on the way has come, or has turned elsewhere.
    on_their_way: Vec<oneshot::Receiver<()>>,
    wanted: Vec<Wanted>,
    answers: BTreeMap<String, Answer>,
    at_work: usize,
    finished: Vec<Heard>,
    /// As this process saw it last.
    kept: Option<Kept>,
    /// Up to where all that is held was seen to be kept back by holds.
    passed: Option<Passed>,
}

#[derive(Debug)]
struct Passed {
    to: Cursor,
    under: Vec<HoldRule>,
    until: TimeMs,
}

/// How long a process begins to look behind what it saw kept back: what is held there meanwhile waits so long.
const PASSED_FOR: DurationMs = DurationMs::from_secs(60);

#[derive(Debug)]
struct Kept {
    usage: KeptUsage,
    seen_at: TimeMs,
}

/// How long a process goes by what it saw of a destination for which nothing is written as long as it is
/// healthy: others may have seen it fail meanwhile.
const BELIEVED_FOR: DurationMs = DurationMs::from_secs(5);

impl Counter {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody sets out who will probably want a slot: whoever writes next waits for them.
    pub(crate) fn approach(&self) -> Approach {
        let (coming, arrival) = oneshot::channel();
        let mut book = self.book();
        // Those who came before anybody waited for them are forgotten.
        book.on_their_way.retain_mut(|arrival| matches!(arrival.try_recv(), Ok(None)));
        book.on_their_way.push(arrival);
        Approach { coming: Mutex::new(Some(coming)) }
    }

    /// Waits until all have come, or turned elsewhere, who are on their way now.
    pub(crate) async fn all_arrived(&self) {
        let on_their_way = std::mem::take(&mut self.book().on_their_way);
        join_all(on_their_way).await;
    }

    /// Asks for a slot. What is not collected is withdrawn.
    pub(crate) fn ask(self: &Arc<Self>, wanted: Wanted) -> Asking {
        let token = wanted.token.clone();
        self.book().wanted.push(wanted);
        Asking { counter: self.clone(), token }
    }

    /// What is to be written: who wants a slot, and what is done with.
    pub(crate) fn open_business(&self) -> (Vec<Wanted>, Vec<Heard>) {
        let book = self.book();
        (book.wanted.clone(), book.finished.clone())
    }

    /// It is written: each gets an answer, and what was given back is forgotten.
    pub(crate) fn close(&self, wanted: &[Wanted], answers: Vec<Answer>, finished: &[Heard]) {
        let mut book = self.book();
        book.finished.retain(|heard| !finished.contains(heard));
        for (one, answer) in wanted.iter().zip(answers) {
            let before = book.wanted.len();
            book.wanted.retain(|still| still.token != one.token);
            if book.wanted.len() < before {
                book.answers.insert(one.token.as_str().to_owned(), answer);
                book.at_work += usize::from(is_slot(answer));
            } else if is_slot(answer) {
                // Withdrawn meanwhile: nobody will use it.
                book.finished.push(unused(&one.token));
            }
        }
    }

    /// What this process saw last; reading it again is not needed to write.
    pub(crate) fn kept(&self) -> Option<KeptUsage> {
        self.book().kept.as_ref().map(|kept| kept.usage.clone())
    }

    /// The same, if it was seen a moment ago.
    pub(crate) fn kept_lately(&self, now: TimeMs) -> Option<KeptUsage> {
        let book = self.book();
        let lately = book.kept.as_ref().filter(|kept| now < kept.seen_at.plus(BELIEVED_FOR));
        lately.map(|kept| kept.usage.clone())
    }

    /// Nobody here knows what is stored.
    pub(crate) fn forget(&self) {
        self.book().kept = None;
    }

    /// What is stored, as far as anybody here knows.
    pub(crate) fn keep(&self, usage: KeptUsage, seen_at: TimeMs) {
        self.book().kept = Some(Kept { usage, seen_at });
    }

    /// Everything that is held up to here is kept back by these holds; `None`: the end was reached.
    pub(crate) fn pass(&self, to: Option<Cursor>, under: &[HoldRule], now: TimeMs) {
        let mut book = self.book();
        let until = match &book.passed {
            Some(passed) if passed.under == under && now < passed.until => passed.until,
            _ => now.plus(PASSED_FOR),
        };
        book.passed = to.map(|to| Passed { to, under: under.to_vec(), until });
    }

    /// From where on something may go, as far as this process knows under these holds.
    pub(crate) fn passed(&self, under: &[HoldRule], now: TimeMs) -> Option<Cursor> {
        let book = self.book();
        let passed = book.passed.as_ref().filter(|passed| passed.under == under && now < passed.until);
        passed.map(|passed| passed.to.clone())
    }

    /// Whether what is done with is to be given back now: somebody may wait for it, it tells something of
    /// the destination, or it is as much as is still at work.
    pub(crate) fn is_worth_a_write(&self, rules: Option<&SuspendRules>, now: TimeMs) -> bool {
        let book = self.book();
        let Some(kept) = book.kept.as_ref().map(|kept| &kept.usage.usage) else {
            return !book.finished.is_empty();
        };
        let tells = |rules: &SuspendRules| book.finished.iter().any(|it| kept.health.heeds(rules, it));
        let is_much = book.finished.len() >= book.at_work;
        !book.finished.is_empty() && (is_much || kept.is_wanted(now) || rules.is_some_and(tells))
    }
}

/// Somebody on the way to a counter.
#[derive(Debug)]
pub(crate) struct Approach {
    coming: Mutex<Option<oneshot::Sender<()>>>,
}

impl Approach {
    /// They have come.
    pub(crate) fn arrive(&self) {
        drop(self.coming.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Somebody who has asked for a slot.
#[derive(Debug)]
pub(crate) struct Asking {
    counter: Arc<Counter>,
    token: WriteToken,
}

impl Asking {
    /// Whether somebody has written for them.
    pub(crate) fn is_answered(&self) -> bool {
        self.counter.book().answers.contains_key(self.token.as_str())
    }

    /// The slot, or why there is none. Who was not answered finds no room.
    pub(crate) fn collect(self) -> Result<Slot, Refused> {
        let answer = self.counter.book().answers.remove(self.token.as_str());
        match answer {
            Some(Answer::Slot { until, is_probe }) => {
                let (counter, token) = (self.counter.clone(), Some(self.token.clone()));
                Ok(Slot { counter, token, until, is_probe, told: OnceLock::new() })
            }
            Some(Answer::Suspended) => Err(Refused::Suspended),
            Some(Answer::Full) | None => Err(Refused::Full),
        }
    }
}

/// Why there is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The budget is full.
    Full,
    /// The destination is suspended.
    Suspended,
}

fn is_slot(answer: Answer) -> bool {
    matches!(answer, Answer::Slot { .. })
}

/// A slot under which nothing was sent.
fn unused(token: &WriteToken) -> Heard {
    Heard { token: token.clone(), sign: None, started_at: TimeMs::from_unix_ms(0) }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut book = self.counter.book();
        book.wanted.retain(|wanted| wanted.token != self.token);
        if book.answers.remove(self.token.as_str()).is_some_and(is_slot) {
            book.at_work -= 1;
            book.finished.push(unused(&self.token));
        }
    }
}

/// A slot that is leased. Dropped without being finished (its work was cut off, and its request may
/// still be with the recipient), it lapses.
#[derive(Debug)]
pub(crate) struct Slot {
    counter: Arc<Counter>,
    token: Option<WriteToken>,
    until: TimeMs,
    is_probe: bool,
    told: OnceLock<(Option<Sign>, TimeMs)>,
}

impl Slot {
    /// Until when it is leased.
    pub(crate) fn until(&self) -> TimeMs {
        self.until
    }

    /// Whether the attempt only tries whether a suspended destination takes something again.
    pub(crate) fn is_probe(&self) -> bool {
        self.is_probe
    }

    /// What the attempt under it came to.
    pub(crate) fn tell(&self, report: &SendReport) {
        // One attempt is made under a slot: a second report there is none.
        let _ = self.told.set((Sign::of(report), report.started_at));
    }

    /// It is done with.
    pub(crate) fn finish(mut self) -> Arc<Counter> {
        let token = self.token.take();
        let told = self.told.get().copied();
        let heard = token.map(|token| match told {
            Some((sign, started_at)) => Heard { token, sign, started_at },
            None => unused(&token),
        });
        let mut book = self.counter.book();
        book.at_work -= 1;
        book.finished.extend(heard);
        drop(book);
        self.counter.clone()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.token.is_some() {
            self.counter.book().at_work -= 1;
        }
    }
}
