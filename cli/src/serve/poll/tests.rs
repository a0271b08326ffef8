//! The consumer loop on a real store, with recipients that misbehave.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::attempt::{Phase, SendReport, SendWindow, Sending};
use waybill_domain::delivery::State;
use waybill_domain::look_up::Finding;
use waybill_domain::outcome::Outcome;
use waybill_domain::time::DurationMs;
use waybill_service::acts::Desk;
use waybill_service::config_file::Rules;
use waybill_service::desk::Desk as Budgets;
use waybill_service::event::Event;
use waybill_service::ports::{
    Catalogue as _, Clock as _, Filter, Inbox as _, Outgoing, Ports, Queue as _, Recipient, Request,
};
use waybill_service::publish::Publisher;

use super::Poller;
use crate::backend::{Store, open_file};
use crate::serve::Source;
use crate::serve::patience::Patience;
use crate::serve::stop::Stop;
use waybill_system::{SystemClock, SystemDice};

const CONFIG: &str = "[destinations.d]\ntenants = [\"t\"]\nurl = \"https://d.example.com/\"\n\
                      secrets = [\"env:S\"]\nevent_types = [\"*\"]\ntimeout = \"1s\"\n";

/// Panics on the event `panics`, never answers the event `hangs`, answers `meets-…` once three were there at
/// once, and takes a while for all others.
#[derive(Clone, Default)]
struct Moody {
    at_once: Arc<AtomicUsize>,
    most_at_once: Arc<AtomicUsize>,
}

impl Recipient for Moody {
    async fn look_up(&self, _: Request, _: RecipientUrl, _: SendWindow) -> Finding {
        Finding::NotApplied
    }

    async fn send(&self, request: Request, window: SendWindow) -> Sending {
        match request.event_id.as_str() {
            "panics" => panic!("a bug in the adapter"),
            "hangs" => std::future::pending().await,
            _ => {}
        }
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        while request.event_id.as_str().starts_with("meets-") && self.most_at_once.load(Ordering::SeqCst) < 3
        {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        Sending::Attempted(SendReport {
            outcome: Outcome::Delivered,
            phase: Phase::Answer,
            status: Some(200),
            retry_after: None,
            excerpt: None,
            note: "answered 200".to_owned(),
            started_at: window.started_at,
            ended_at: window.started_at,
        })
    }
}

async fn apply(store: &Store, document: &str) {
    let desk = Desk { office: store, clock: &SystemClock, dice: &SystemDice };
    desk.apply(document, Rules::from(Locality::PublicOnly), "test", "a test").await.unwrap();
}

/// A store of its own with a poller at work on it.
struct Bench {
    store: Store,
    source: Arc<Source>,
    patience: Patience,
    recipient: Moody,
    stop: watch::Sender<bool>,
    polling: tokio::task::JoinHandle<usize>,
    dir: Arc<tempfile::TempDir>,
}

impl Bench {
    async fn start(concurrency: usize, settling: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open_file(&dir.path().join("waybill.db")).unwrap();
        apply(&store, CONFIG).await;
        let rules = Rules::from(Locality::PublicOnly);
        let source = Arc::new(Source::new(store.clone(), rules, SystemClock, DurationMs::ZERO));
        let recipient = Moody::default();
        let ports = Ports {
            ledger: store.clone(),
            queue: store.clone(),
            recipient: recipient.clone(),
            clock: SystemClock,
            dice: SystemDice,
            desk: Budgets::default(),
        };
        let (sender, stop) = Stop::new();
        let concurrency = NonZeroUsize::new(concurrency).unwrap();
        let patience = Patience::new(settling);
        let poller = Poller::new(Arc::new(ports), source.clone(), concurrency, patience.clone());
        let polling = tokio::spawn(poller.run(store.arrivals(), stop));
        Self { store, source, patience, recipient, stop: sender, polling, dir: Arc::new(dir) }
    }

    async fn publish(&self, event_id: &str) {
        let event = format!(r#"{{"event_id":"{event_id}","tenant":"t","type":"x","payload":1}}"#);
        let publisher = Publisher { ledger: &self.store, queue: &self.store, clock: &SystemClock };
        let config = self.source.current().await.unwrap();
        publisher.publish(&config, Event::parse(event.as_bytes()).unwrap()).await.unwrap();
    }

    async fn count(&self, state: State) -> usize {
        let filter = Filter { state: Some(state), ..Filter::default() };
        self.store.list(&filter, 100, None).await.unwrap().items.len()
    }

    async fn wait_for(&self, succeeded: usize) {
        let waiting = async {
            while self.count(State::Succeeded).await < succeeded {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("they are delivered in time");
    }

    async fn stop(self) -> usize {
        self.stop.send(true).unwrap();
        self.polling.await.unwrap()
    }
}

#[tokio::test]
async fn a_panic_in_one_record_fails_that_record_alone() {
    let bench = Bench::start(1, Duration::from_secs(5)).await;
    bench.publish("panics").await;
    for nth in 0..3 {
        bench.publish(&format!("good-{nth}")).await;
    }
    bench.wait_for(3).await;
    assert_eq!(bench.count(State::Pending).await, 1);
    assert_eq!(bench.stop().await, 0);
}

#[tokio::test]
async fn no_more_are_worked_on_at_once_than_there_is_room_for() {
    let bench = Bench::start(3, Duration::from_secs(5)).await;
    for nth in 0..20 {
        let name = if nth < 3 { "meets" } else { "good" };
        bench.publish(&format!("{name}-{nth}")).await;
    }
    bench.wait_for(20).await;
    assert_eq!(bench.recipient.most_at_once.load(Ordering::SeqCst), 3);
    assert_eq!(bench.stop().await, 0);
}

#[tokio::test]
async fn told_to_stop_it_waits_only_as_long_as_it_has_patience_and_says_what_is_left() {
    let bench = Bench::start(4, Duration::from_millis(200)).await;
    bench.publish("hangs").await;
    bench.publish("good").await;
    bench.wait_for(1).await;
    assert_eq!(bench.stop().await, 1);
}

/// When the only message comes again, in ms from now, once it was received.
async fn comes_again_in(bench: &Bench) -> u64 {
    let waiting = async {
        loop {
            let next = bench.store.next_visible_at().await.unwrap().expect("the message is not deleted");
            let rest = next.since(SystemClock.now()).as_ms();
            if rest > 0 {
                return rest;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("it is received in time")
}

#[tokio::test]
async fn a_message_stays_hidden_for_longer_than_any_claim_that_its_worker_can_take() {
    let bench = Bench::start(1, Duration::from_millis(1)).await;
    bench.publish("hangs").await;
    let lease_ms = 1_000 + 5_000;
    let rest = comes_again_in(&bench).await;
    assert!(rest > lease_ms + 5_000, "it comes again in {rest} ms");
    bench.stop().await;
}

#[tokio::test]
async fn hiding_and_patience_follow_the_configuration_in_force() {
    let bench = Bench::start(1, Duration::from_millis(1)).await;
    apply(&bench.store, &CONFIG.replace("timeout = \"1s\"", "timeout = \"40s\"")).await;
    bench.publish("hangs").await;
    let rest = comes_again_in(&bench).await;
    assert!(rest > 40_000 + 10_000, "it comes again in {rest} ms");
    // What is under way has 40 s; another configuration does not shorten that.
    apply(&bench.store, &CONFIG.replace("timeout = \"1s\"", "timeout = \"2s\"")).await;
    assert!(bench.patience.span() > Duration::from_secs(40));
    bench.polling.abort();
}

#[tokio::test]
async fn a_message_that_is_left_is_not_deleted() {
    let bench = Bench::start(1, Duration::from_secs(5)).await;
    let newer = r#"{"waybill":99,"kind":"wake_up"}"#.to_owned();
    bench.store.send(Outgoing { body: newer, delay: DurationMs::ZERO }).await.unwrap();
    bench.publish("good").await;
    bench.wait_for(1).await;
    let (store, _dir) = (bench.store.clone(), bench.dir.clone());
    // Drained, so that the good one's message is deleted for sure.
    assert_eq!(bench.stop().await, 0);
    assert!(store.next_visible_at().await.unwrap().is_some(), "the message is gone");
}
