//! A use case that is polled by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::{Call, Order, Place, Side, Stage};

/// What one poll came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It stands at a fault point.
    At(Place),
    /// It waits for the clock.
    Waiting,
    /// It is done.
    Done,
}

/// A future and the stage that it plays on.
pub struct Actor {
    name: String,
    stage: Stage,
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    flag: Arc<Flag>,
    waker: Waker,
}

#[derive(Debug)]
struct Flag {
    woken: AtomicBool,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
    }
}

impl std::fmt::Debug for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Actor")
            .field("name", &self.name)
            .field("place", &self.place())
            .finish_non_exhaustive()
    }
}

impl Actor {
    /// An actor that has not begun.
    pub fn new(
        name: impl Into<String>,
        stage: Stage,
        play: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let flag = Arc::new(Flag { woken: AtomicBool::new(true) });
        let waker = Waker::from(flag.clone());
        Self { name: name.into(), stage, future: Box::pin(play), flag, waker }
    }

    /// Its name in traces.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it stands, if it stands at a fault point.
    pub fn place(&self) -> Option<Place> {
        self.stage.place()
    }

    /// Whether a poll would bring it further: it does not wait for the clock.
    pub fn is_ready(&self) -> bool {
        self.flag.woken.load(Ordering::SeqCst)
    }

    /// Takes its next step, carrying out `order` at the call that it stands before.
    pub fn step(&mut self, order: Order) -> Progress {
        self.stage.order(order);
        self.flag.woken.store(false, Ordering::SeqCst);
        match self.future.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(()) => Progress::Done,
            Poll::Pending => self.stage.place().map_or(Progress::Waiting, Progress::At),
        }
    }

    /// Steps until it stands at a place.
    ///
    /// # Panics
    /// If it ends or waits for the clock before it comes there.
    pub fn run_to(&mut self, call: Call, side: Side) -> &mut Self {
        let wanted = Place { call, side };
        for _ in 0..MOST_STEPS {
            match self.step(Order::Go) {
                Progress::At(place) if place == wanted => return self,
                Progress::At(_) => {}
                Progress::Waiting if self.is_ready() => {}
                progress => panic!("{} came to {progress:?} before {wanted:?}", self.name),
            }
        }
        panic!("{} never came to {wanted:?}", self.name)
    }

    /// Steps until it waits for the clock.
    ///
    /// # Panics
    /// If it ends before it waits.
    pub fn run_to_wait(&mut self) -> &mut Self {
        for _ in 0..MOST_STEPS {
            match self.step(Order::Go) {
                Progress::Waiting => return self,
                Progress::At(_) => {}
                Progress::Done => panic!("{} ended and did not wait", self.name),
            }
        }
        panic!("{} never waited", self.name)
    }

    /// Steps to its end.
    ///
    /// # Panics
    /// If it waits for the clock.
    pub fn run(mut self) {
        for _ in 0..MOST_STEPS {
            match self.step(Order::Go) {
                Progress::Done => return,
                Progress::At(_) => {}
                Progress::Waiting if self.is_ready() => {}
                Progress::Waiting => panic!("{} waits for the clock", self.name),
            }
        }
        panic!("{} never ended", self.name)
    }

    /// It dies where it stands.
    pub fn crash(self) {}
}

/// More steps than any use case takes.
const MOST_STEPS: usize = 10_000;
