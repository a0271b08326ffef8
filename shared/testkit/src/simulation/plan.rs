//! What a history is about, drawn from its seed: deliveries, destinations, reactions, and which
//! faults it knows. Each seed knows another subset of faults, so that no fault hides another.

use bytes::Bytes;
use waybill_domain::address::Locality;
use waybill_domain::budget::{Budget, Rate};
use waybill_domain::destination::{Destination, OnAmbiguous};
use waybill_domain::identity::{DestinationName, EventId, TenantId};
use waybill_domain::look_up::StatusUrl;
use waybill_domain::policy::{Backoff, PolicyTerms};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::event::Event;

use crate::clock::VirtualClock;
use crate::dice::Lots;
use crate::memory::QueueRules;
use crate::scripted::{LookUpReaction, Reaction};

use super::world::{TENANT, destination, event_type};

/// One history before it happens.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How the queue behaves.
    pub queue: QueueRules,
    /// Who may be written to.
    pub destinations: Vec<Destination>,
    /// What is published, and when first.
    pub events: Vec<PlannedEvent>,
    /// How many workers there are.
    pub workers: usize,
    /// Whether workers hide what they leave exactly as long as they may.
    pub hides: bool,
    /// How long a received message is hidden; longer than a lease.
    pub visibility: DurationMs,
    /// How wrong the clocks of the machines are, in milliseconds: workers, producer, reconciler.
    pub skews: Vec<i64>,
    /// Which faults may happen.
    pub faults: Vec<Fault>,
    /// In how many of 100 steps one does.
    pub fault_percent: u64,
    /// In how many of 100 calls the store fails or repeats itself.
    pub call_percent: u64,
    /// After how many steps the faults stop.
    pub fault_steps: usize,
}

/// One event, and how its recipient reacts.
#[derive(Debug, Clone)]
pub struct PlannedEvent {
    /// The event.
    pub event: Event,
    /// When its producer first publishes it.
    pub at: TimeMs,
    /// What the recipient does, request by request; then it answers 200.
    pub reactions: Vec<Reaction>,
    /// How the recipient reacts to the first look-ups of it; then it tells the truth.
    pub look_ups: Vec<LookUpReaction>,
}

/// What may happen between two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An actor dies where it stands.
    Crash,
    /// An actor stands still for up to twenty minutes.
    Freeze,
    /// A message is delivered twice, or comes back after it was deleted.
    Duplicate,
    /// A message is gone.
    Lose,
    /// Every message is gone.
    Purge,
    /// A machine's clock jumps, within what is tolerated.
    ClockJump,
    /// The queue moves a message into its dead-letter queue.
    NativeMove,
    /// Somebody redrives the dead-letter queue from the console.
    ConsoleRedrive,
    /// An operator adds a hold, or lifts all.
    Hold,
    /// A destination is removed from the configuration.
    RemoveDestination,
    /// An operator releases a dead letter.
    Release,
    /// A second reconciler ticks.
    SecondReconciler,
    /// The indexes lag behind the records, or no longer.
    IndexLag,
    /// A message that is no wake-up of ours.
    Stray,
    /// Time passes while nobody moves.
    TimePasses,
    /// The producer publishes an accepted event again.
    PublishAgain,
}

const ALL_FAULTS: [Fault; 16] = [
    Fault::Crash,
    Fault::Freeze,
    Fault::Duplicate,
    Fault::Lose,
    Fault::Purge,
    Fault::ClockJump,
    Fault::NativeMove,
    Fault::ConsoleRedrive,
    Fault::Hold,
    Fault::RemoveDestination,
    Fault::Release,
    Fault::SecondReconciler,
    Fault::IndexLag,
    Fault::Stray,
    Fault::TimePasses,
    Fault::PublishAgain,
];

/// How wrong a clock may be, in milliseconds.
pub const TOLERATED_SKEW_MS: i64 = 2_000;

/// How wrong a machine's clock is.
pub fn skew(lots: &mut Lots) -> i64 {
    match lots.below(4) {
        0 => 0,
        1 => -TOLERATED_SKEW_MS,
        2 => TOLERATED_SKEW_MS,
        _ => lots.between(-TOLERATED_SKEW_MS, TOLERATED_SKEW_MS),
    }
}

impl Plan {
    /// Draws a history.
    pub fn draw(lots: &mut Lots) -> Self {
        let mut faults: Vec<Fault> = ALL_FAULTS.into_iter().filter(|_| lots.chance(45)).collect();
        if lots.chance(70) {
            faults.extend([Fault::Crash, Fault::Duplicate, Fault::Freeze]);
        }
        let max_receives = lots.chance(50).then_some(6);
        if max_receives.is_none() {
            // Nothing but the redrive policy ever ends a message that nobody can read.
            faults.retain(|fault| *fault != Fault::Stray);
        }
        let workers = 2 + lots.below(2) as usize;
        Self {
            queue: QueueRules {
                max_receives,
                stale_receipts_delete: lots.chance(50),
                ..QueueRules::default()
            },
            destinations: destinations(),
            events: events(lots),
            workers,
            hides: lots.chance(50),
            visibility: DurationMs::from_secs(*lots.pick(&[30, 60, 360]).unwrap_or(&360)),
            skews: (0..workers + 2).map(|_| if lots.chance(40) { skew(lots) } else { 0 }).collect(),
            fault_percent: if faults.is_empty() { 0 } else { 1 + lots.below(12) },
            faults,
            call_percent: if lots.chance(60) { lots.below(8) } else { 0 },
            fault_steps: 50 + lots.below(450) as usize,
        }
    }
}

const STATUS_URL: &str = "https://recipient.example/status/{delivery_id}?event={event_id}";

fn destinations() -> Vec<Destination> {
    let usual = PolicyTerms::default();
    let slow = Backoff { base: DurationMs::from_secs(30), factor: 2.0, max: DurationMs::from_secs(3600) };
    let mut doubtful = destination("doubtful", PolicyTerms { max_attempts: 4, ..usual });
    doubtful.on_ambiguous = OnAmbiguous::Hold;
    let mut narrow = destination("narrow", usual);
    narrow.budget = Budget::of(Some(1), None);
    let mut shared = destination("shared", usual);
    shared.budget = Budget::of(Some(2), Rate::parse("rate", "20/m").ok());
    let mut asked = destination("asked", PolicyTerms { max_attempts: 6, ..usual });
    asked.on_ambiguous = OnAmbiguous::Query;
    asked.status_url = StatusUrl::parse("status_url", STATUS_URL, Locality::PublicOnly).ok();
    vec![
        destination("usual", usual),
        destination("tight", PolicyTerms { max_attempts: 2, ..usual }),
        destination("single", PolicyTerms { max_attempts: 1, ..usual }),
        destination(
            "brief",
            PolicyTerms { horizon: DurationMs::from_secs(120), max_attempts: 5, backoff: slow, ..usual },
        ),
        destination("nightly", PolicyTerms { max_attempts: 6, backoff: slow, ..usual }),
        doubtful,
        narrow,
        shared,
        asked,
    ]
}

fn events(lots: &mut Lots) -> Vec<PlannedEvent> {
    // Now and then more of them, and all to one budget.
    let crowded = lots.chance(25).then(|| if lots.chance(50) { "narrow" } else { "shared" });
    let most = if crowded.is_some() { 5 } else { 3 };
    (0..2 + lots.below(most)).map(|n| event(lots, n, crowded)).collect()
}

fn event(lots: &mut Lots, n: u64, crowded: Option<&str>) -> PlannedEvent {
    let seconds = |lots: &mut Lots, least: i64, most: i64| {
        DurationMs::from_ms(lots.between(least * 1000, most * 1000).unsigned_abs())
    };
    let span = if crowded.is_some() { 20 } else { 90 };
    let at = VirtualClock::T0.plus(seconds(lots, 0, span));
    let not_before = lots.chance(20).then(|| at.plus(seconds(lots, 5, 2400)));
    let deadline = lots.chance(40).then(|| {
        let most = *lots.pick(&[10, 60, 700, 4000]).unwrap_or(&60);
        not_before.unwrap_or(at).plus(seconds(lots, 4, most))
    });
    let names =
        ["usual", "usual", "tight", "single", "brief", "nightly", "doubtful", "narrow", "shared", "asked"];
    let name = crowded.or(lots.pick(&names).copied()).unwrap_or("usual");
    let event = Event {
        event_id: EventId::parse(format!("event-{n}")).expect("an event ID"),
        tenant: TenantId::parse(TENANT).expect("a tenant"),
        event_type: event_type(lots.chance(50)),
        destination: Some(DestinationName::parse(name).expect("a destination")),
        scope: None,
        deadline,
        not_before,
        policy: None,
        payload_version: None,
        content_type: "application/json".to_owned(),
        payload: Bytes::from(format!("{{\"n\":{n}}}")),
    };
    let reactions = (0..lots.below(7)).map(|_| reaction(lots)).collect();
    let look_ups = (0..lots.below(4)).map(|_| look_up(lots)).collect();
    PlannedEvent { event, at, reactions, look_ups }
}

fn look_up(lots: &mut Lots) -> LookUpReaction {
    match lots.below(4) {
        0 => LookUpReaction::Answer(503),
        1 => LookUpReaction::Silence,
        _ => LookUpReaction::Truth,
    }
}

fn reaction(lots: &mut Lots) -> Reaction {
    let taking = DurationMs::from_ms(lots.below(20_000));
    let drawn = match lots.below(16) {
        0..3 => Reaction::answer(500).applying(),
        3..5 => Reaction::answer(503),
        5 => Reaction::answer(503).asking("20"),
        6 => Reaction::answer(429).asking("1500"),
        7 => Reaction::answer(429).asking("5000"),
        8 => Reaction::answer(if lots.chance(50) { 400 } else { 401 }),
        9 => Reaction::silence().applying(),
        10 => Reaction::silence(),
        11 => Reaction::lost_before(),
        12 => Reaction::lost_after(),
        13 => Reaction::lost_after().applying(),
        _ => Reaction::answer(200),
    };
    match lots.below(3) {
        0 => drawn.taking(taking),
        1 => drawn.connecting_for(DurationMs::from_ms(lots.below(8_000))),
        _ => drawn,
    }
}
