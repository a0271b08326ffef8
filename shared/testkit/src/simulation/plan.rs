//! What a history is about, drawn from its seed: deliveries, destinations, reactions, and which
//! faults it knows. Each seed knows another subset of faults, so that no fault hides another.

pub(super) mod events;

use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::event::Event;

use crate::dice::Lots;
use crate::memory::QueueRules;
use crate::scripted::{LookUpReaction, Reaction};

use super::document::{self, Settings};

/// What a history is chiefly about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Deliveries of every kind.
    Usual,
    /// One budget for all of them.
    Crowded(&'static str),
    /// Dead letters, and what operators do with them.
    Recovery,
    /// More dead letters than a run looks at before it halts itself.
    Relapse,
    /// Recipients that refuse whoever asks, or that nobody reaches, until somebody mends them.
    Suspended,
    /// Holds that are lifted a little before they are lifted.
    Eased,
}

/// One history before it happens.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What it is chiefly about.
    pub theme: Theme,
    /// How the queue behaves.
    pub queue: QueueRules,
    /// The configuration at the beginning.
    pub settings: Settings,
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
    /// Whether it posts it over HTTP, through the door of `ingest`.
    pub over_http: bool,
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
    /// An operator adds a hold, or lifts one.
    Hold,
    /// An operator lets some of what is held go, a few at once, or another few, or holds everything again.
    Ease,
    /// An operator puts another configuration in force: a destination is gone or back, a budget is another,
    /// a secret was rotated.
    Configure,
    /// An operator starts a redrive run.
    Redrive,
    /// An operator stops a run, at the worst moment if there is one, or lets a stopped one go on.
    StopRun,
    /// An operator closes or resolves a dead letter.
    EndDeadLetter,
    /// A second reconciler makes its round.
    SecondReconciler,
    /// The DLQ is swept.
    Sweep,
    /// A message comes later than it should, and so after others.
    Postpone,
    /// The stores cannot be asked for up to two minutes.
    StoreDown,
    /// The indexes lag behind the records, or no longer.
    IndexLag,
    /// A message that is no wake-up of ours.
    Stray,
    /// Time passes while nobody moves.
    TimePasses,
    /// The producer publishes an accepted event again.
    PublishAgain,
    /// A recipient takes nothing from anybody from now on, or is mended.
    Refuse,
}

impl Fault {
    /// Every fault.
    pub const ALL: &[Fault] = &[
        Fault::Crash,
        Fault::Freeze,
        Fault::Duplicate,
        Fault::Lose,
        Fault::Purge,
        Fault::ClockJump,
        Fault::NativeMove,
        Fault::ConsoleRedrive,
        Fault::Hold,
        Fault::Ease,
        Fault::Configure,
        Fault::Redrive,
        Fault::StopRun,
        Fault::EndDeadLetter,
        Fault::SecondReconciler,
        Fault::Sweep,
        Fault::Postpone,
        Fault::StoreDown,
        Fault::IndexLag,
        Fault::Stray,
        Fault::TimePasses,
        Fault::PublishAgain,
        Fault::Refuse,
    ];
}

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

/// The one kind of fault that a history is to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// None: what recipients do by themselves.
    Nothing,
    /// This one.
    Fault(Fault),
    /// Calls that fail, or whose answer is lost, or that are made twice.
    Calls,
}

impl Plan {
    /// The same history with one kind of fault, or none.
    pub fn with_only(mut self, only: Only) -> Self {
        self.skews.iter_mut().for_each(|skew| *skew = 0);
        self.call_percent = if only == Only::Calls { 5 } else { 0 };
        self.faults = match only {
            Only::Fault(fault) => vec![fault],
            Only::Calls | Only::Nothing => Vec::new(),
        };
        self.fault_percent = if matches!(only, Only::Fault(_)) { 8 } else { 0 };
        if only == Only::Fault(Fault::Stray) {
            // Nothing but the redrive policy ever ends a message that nobody can read.
            self.queue.max_receives = Some(6);
        }
        self
    }

    /// Draws a history.
    pub fn draw(lots: &mut Lots) -> Self {
        let mut faults: Vec<Fault> = Fault::ALL.iter().copied().filter(|_| lots.chance(45)).collect();
        if lots.chance(70) {
            faults.extend([Fault::Crash, Fault::Duplicate, Fault::Freeze]);
        }
        let theme = Theme::draw(lots);
        match theme {
            Theme::Usual | Theme::Crowded(_) => {}
            Theme::Recovery => faults.extend([Fault::Redrive, Fault::Redrive, Fault::StopRun]),
            Theme::Relapse => {
                faults = vec![Fault::Redrive, Fault::StopRun, Fault::Crash, Fault::PublishAgain]
            }
            Theme::Suspended => faults.extend([Fault::Refuse, Fault::Refuse, Fault::Hold, Fault::Configure]),
            Theme::Eased => faults.extend([Fault::Ease, Fault::Ease, Fault::Ease, Fault::Hold]),
        }
        let max_receives = lots.chance(50).then_some(6);
        if max_receives.is_none() {
            // Nothing but the redrive policy ever ends a message that nobody can read.
            faults.retain(|fault| *fault != Fault::Stray);
        }
        let workers = 2 + lots.below(2) as usize;
        Self {
            theme,
            queue: QueueRules {
                max_receives,
                stale_receipts_delete: lots.chance(50),
                ..QueueRules::default()
            },
            settings: settings(lots, theme),
            events: events::draw(lots, theme),
            workers,
            hides: lots.chance(50),
            visibility: DurationMs::from_secs(*lots.pick(&[30, 60, 360]).unwrap_or(&360)),
            skews: (0..workers + 2).map(|_| if lots.chance(40) { skew(lots) } else { 0 }).collect(),
            fault_percent: match theme {
                _ if faults.is_empty() => 0,
                Theme::Relapse => 1,
                _ => 1 + lots.below(12),
            },
            faults,
            call_percent: if lots.chance(60) { lots.below(8) } else { 0 },
            fault_steps: match theme {
                Theme::Relapse => 3_000,
                _ => 50 + lots.below(450) as usize,
            },
        }
    }
}

fn settings(lots: &mut Lots, theme: Theme) -> Settings {
    // Most schedules have fired for yesterday already when a history begins, and fire again soon.
    let schedule = lots.chance(15).then(|| lots.below(30));
    let is_suspending = theme == Theme::Suspended || lots.chance(20);
    Settings {
        schedule,
        is_refused: schedule.is_some() && lots.chance(40),
        policy: lots.chance(40).then(|| document::own_policy(lots)).flatten(),
        suspending: if is_suspending { document::suspending(lots) } else { "" },
        ..Settings::default()
    }
}
