//! The desk: where all that one process works on meets to take and give back what budgets lease.
//!
//! Whoever comes first writes for everybody who is there; so a batch takes its slots of a destination
//! in one write. Slots that are done with are given back at once where somebody may wait for them, and
//! otherwise when they are as many as those still at work: ten slots come back in four writes at most.
//! Nothing is lost if whoever writes goes away in the middle: what was asked for stays until it is
//! answered, and to ask again changes nothing. What is never given back lapses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;
use futures::future::join_all;
use waybill_domain::budget::Wanted;
use waybill_domain::identity::{DestinationName, WriteToken};
use waybill_domain::time::TimeMs;

use crate::ports::KeptUsage;

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
    answers: BTreeMap<String, Option<TimeMs>>,
    at_work: usize,
    finished: Vec<WriteToken>,
    /// As this process saw it last.
    kept: Option<KeptUsage>,
}

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
    pub(crate) fn open_business(&self) -> (Vec<Wanted>, Vec<WriteToken>) {
        let book = self.book();
        (book.wanted.clone(), book.finished.clone())
    }

    /// It is written: each gets an answer, and what was given back is forgotten.
    pub(crate) fn close(&self, wanted: &[Wanted], answers: Vec<Option<TimeMs>>, finished: &[WriteToken]) {
        let mut book = self.book();
        book.finished.retain(|token| !finished.contains(token));
        for (one, answer) in wanted.iter().zip(answers) {
            let before = book.wanted.len();
            book.wanted.retain(|still| still.token != one.token);
            if book.wanted.len() < before {
                book.answers.insert(one.token.as_str().to_owned(), answer);
                book.at_work += usize::from(answer.is_some());
            } else if answer.is_some() {
                // Withdrawn meanwhile: nobody will use it.
                book.finished.push(one.token.clone());
            }
        }
    }

    /// What this process saw last; reading it again is not needed to write.
    pub(crate) fn kept(&self) -> Option<KeptUsage> {
        self.book().kept.clone()
    }

    /// What is stored, as far as anybody here knows.
    pub(crate) fn keep(&self, kept: Option<KeptUsage>) {
        self.book().kept = kept;
    }

    /// Whether what is done with is to be given back now.
    pub(crate) fn is_worth_a_write(&self, now: TimeMs) -> bool {
        let book = self.book();
        let is_wanted = book.kept.as_ref().is_none_or(|kept| kept.usage.is_wanted(now));
        !book.finished.is_empty() && (is_wanted || book.finished.len() >= book.at_work)
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

    /// The slot, or none where there is no room.
    pub(crate) fn collect(self) -> Option<Slot> {
        let until = self.counter.book().answers.remove(self.token.as_str())??;
        Some(Slot { counter: self.counter.clone(), token: Some(self.token.clone()), until })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut book = self.counter.book();
        book.wanted.retain(|wanted| wanted.token != self.token);
        if let Some(Some(_)) = book.answers.remove(self.token.as_str()) {
            book.at_work -= 1;
            book.finished.push(self.token.clone());
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
}

impl Slot {
    /// Until when it is leased.
    pub(crate) fn until(&self) -> TimeMs {
        self.until
    }

    /// It is done with.
    pub(crate) fn finish(mut self) -> Arc<Counter> {
        let token = self.token.take();
        let mut book = self.counter.book();
        book.at_work -= 1;
        book.finished.extend(token);
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
