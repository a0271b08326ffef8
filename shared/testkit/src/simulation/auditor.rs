//! What must hold after every step, and at the end, whatever happened in between.
//!
//! The auditor sees what was written, sent and requested; it never asks the code under test.

mod budgets;
mod carried;
mod ending;
mod held;
mod orders;
mod requests;
mod suspensions;
mod tally;
mod turns;
mod view;
mod writes;

pub use tally::Tally;
pub use view::View;

use self::held::Waiting;
use self::suspensions::Suspensions;
use self::turns::Turns;
use self::view::Known;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use waybill_domain::delivery::Record;
use waybill_domain::envelope::{Decoded, decode};
use waybill_domain::identity::{AttemptNumber, DeliveryKey, DestinationName, MessageId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::event::Event;
use waybill_service::ports::Clock;

use crate::memory::QueueEvent;

use super::chronicle::Chronicle;
use super::coverage;
use super::plan::TOLERATED_SKEW_MS;
use super::world::World;

/// A promise that was broken, in one sentence.
pub type Broken = String;

/// How wrong a clock may be.
const SKEW: DurationMs = DurationMs::from_ms(TOLERATED_SKEW_MS as u64);

/// Watches one history.
#[derive(Debug)]
pub struct Auditor {
    world: World,
    chronicle: Chronicle,
    wards: BTreeMap<DeliveryKey, Ward>,
    /// Messages that a fault took: what they carried may wait for the reconciler.
    lost: BTreeSet<MessageId>,
    open_requests: Vec<OpenRequest>,
    seen_requests: usize,
    is_calm: bool,
    undecodable: usize,
    moving: String,
    /// What each run released.
    releases: BTreeMap<String, u64>,
    /// The run that released something in this step.
    released_now: Option<String>,
    /// What each process knows of what may go.
    known: BTreeMap<String, Known>,
    /// What whoever reads the orders knows, and as of which write of the office.
    last_view: Option<(u64, Arc<View>)>,
    /// What is held.
    waiting: BTreeMap<DeliveryKey, Waiting>,
    turns: Turns,
    is_budget_written: bool,
    /// Closed windows of schedules: when they are fired for, and whose delivery each becomes, under one of the
    /// event IDs that its schedule comes to have.
    windows: Vec<(TimeMs, Vec<DeliveryKey>)>,
    suspensions: Suspensions,
    /// Where anything of this history goes.
    destinations: BTreeSet<DestinationName>,
}

#[derive(Debug)]
struct OpenRequest {
    sender: Arc<str>,
    key: DeliveryKey,
    over_at: TimeMs,
}

/// What the auditor knows of one delivery.
#[derive(Debug, Default)]
struct Ward {
    name: String,
    payload: Bytes,
    is_accepted: bool,
    messages: Vec<Message>,
    attempts_sent: BTreeSet<AttemptNumber>,
    asked_until: Option<TimeMs>,
    /// Somebody redrove its dead letter from the console, and a fault took it on the main queue.
    is_letter_lost: bool,
    /// A write says that somebody is about to send what carries it; the reconciler helps if not.
    is_excused: bool,
    /// The record works for a message that was deleted before it did.
    orphaned_by: Option<MessageId>,
    /// Since which revision the record works for the copy that it works for now.
    works_since: u64,
    sent_when_calm: u32,
    requested_when_calm: u32,
}

#[derive(Debug)]
struct Message {
    id: MessageId,
    attempt: AttemptNumber,
    due_at: TimeMs,
}

impl Auditor {
    /// An auditor of a world in which nothing happened yet.
    pub fn new(world: &World, chronicle: &Chronicle) -> Self {
        Self {
            world: world.clone(),
            chronicle: chronicle.clone(),
            wards: BTreeMap::new(),
            lost: BTreeSet::new(),
            open_requests: Vec::new(),
            seen_requests: 0,
            is_calm: false,
            undecodable: 0,
            moving: String::new(),
            releases: BTreeMap::new(),
            released_now: None,
            known: BTreeMap::new(),
            last_view: None,
            waiting: BTreeMap::new(),
            turns: Turns::default(),
            is_budget_written: false,
            windows: Vec::new(),
            suspensions: Suspensions::default(),
            destinations: BTreeSet::new(),
        }
    }

    /// What a producer is about to publish.
    pub fn expect(&mut self, key: &DeliveryKey, event: &Event) {
        let name = event.event_id.to_string();
        let ward = Ward { name, payload: event.payload.clone(), ..Ward::default() };
        self.wards.insert(key.clone(), ward);
        self.destinations.extend(event.destination.clone());
    }

    /// A producer was told that its event is accepted.
    pub fn accepted(&mut self, key: &DeliveryKey) {
        if let Some(ward) = self.wards.get_mut(key) {
            ward.is_accepted = true;
        }
    }

    /// A fault took a message.
    pub fn lost(&mut self, message_id: &MessageId, body: &str) {
        self.lost.insert(message_id.clone());
        match decode(body) {
            Decoded::Undecodable(_) => self.undecodable = self.undecodable.saturating_sub(1),
            Decoded::DeadLetter(letter) => {
                if let Some(ward) = self.wards.get_mut(&letter.facts.key()) {
                    ward.is_letter_lost = true;
                }
            }
            Decoded::WakeUp(_) | Decoded::Newer(_) => {}
        }
    }

    /// Whose step comes next, and whether a call of its ever failed.
    pub fn moves(&mut self, actor: &str, is_harmed: bool) {
        actor.clone_into(&mut self.moving);
        if let Some(known) = self.known.get_mut(actor) {
            known.is_harmed = is_harmed;
        }
    }

    /// A fault put a body into the queue that nobody can read.
    pub fn strayed_undecodable(&mut self) {
        self.undecodable += 1;
    }

    /// The sender of a request has its answer, or died.
    pub fn request_over(&mut self, sender: &str) {
        self.open_requests.retain(|request| &*request.sender != sender);
    }

    /// The faults stop.
    pub fn calm(&mut self) {
        self.is_calm = true;
    }

    /// Looks at everything that happened since the last step.
    pub fn after_step(&mut self) -> Result<(), Broken> {
        let writes = self.world.ledger.take_journal();
        let events = self.world.queue.take_journal();
        self.released_now = None;
        for write in &writes {
            let name = coverage::write(write);
            self.chronicle.count(name);
            self.chronicle.note(|| describe(name, &write.after));
            self.check_write(write)?;
            self.chronicle.saw(&self.moving, &write.after);
            self.note_success(write);
            self.note_held(write);
        }
        for event in &events {
            self.queue_event(event);
        }
        self.check_orders()?;
        self.check_turns()?;
        self.check_let_go()?;
        self.note_suspensions();
        self.check_requests()?;
        if let Some((key, _)) = self.world.ledger.take_altered_evidence().first() {
            return Err(format!("evidence of {key} was altered"));
        }
        if writes.is_empty() && events.is_empty() {
            return Ok(());
        }
        self.check_carried()
    }

    /// Wake-ups that are sent for one delivery once the faults have stopped, beyond one for each request,
    /// at most: fixed, and above what was ever seen.
    pub const MOST_SPARE_WAKE_UPS: u32 = 20;

    /// Wake-ups sent since the faults stopped, beyond one per request made since then: the most for
    /// any delivery.
    pub fn most_spare_wake_ups(&self) -> u32 {
        let spare = |ward: &Ward| ward.sent_when_calm.saturating_sub(ward.requested_when_calm);
        self.wards.values().map(spare).max().unwrap_or(0)
    }

    /// Wake-ups sent since the faults stopped: the most for any delivery.
    pub fn most_wake_ups(&self) -> u32 {
        self.wards.values().map(|ward| ward.sent_when_calm).max().unwrap_or(0)
    }

    fn queue_event(&mut self, event: &QueueEvent) {
        match event {
            QueueEvent::Sent { message_id, body, visible_at } => {
                let Decoded::WakeUp(wakeup) = decode(body) else { return };
                let key = wakeup.facts.key();
                self.chronicle.note(|| {
                    let (attempt, due_at) = (wakeup.attempt, wakeup.due_at);
                    format!("  sent {message_id} for attempt {attempt} due {due_at}, visible {visible_at}")
                });
                let is_calm = self.is_calm;
                let is_for =
                    self.world.ledger.inspect(&key, |record| record.state.is_open() && wakeup.is_for(record));
                let Some(ward) = self.wards.get_mut(&key) else { return };
                ward.is_excused &= is_for == Some(false);
                ward.sent_when_calm += u32::from(is_calm);
                let (attempt, due_at) = (wakeup.attempt, wakeup.due_at);
                ward.messages.push(Message { id: message_id.clone(), attempt, due_at });
            }
            QueueEvent::Buried(buried) => {
                self.chronicle
                    .note(|| format!("  buried as {} natively={}", buried.message_id, buried.natively));
                if buried.natively {
                    self.lost.insert(buried.message_id.clone());
                }
            }
            QueueEvent::Deleted(message_id) => {
                self.chronicle.note(|| format!("  deleted {message_id}"));
                self.excuse_an_older_view(message_id);
            }
        }
    }

    fn now(&self) -> TimeMs {
        self.world.clock.now()
    }
}

fn describe(name: &str, after: &Record) -> String {
    let look_at = after.look_at.map_or("never".to_owned(), |at| at.to_string());
    format!(
        "  {name}: {} {} made={} rev={} due={} look={look_at} copy={} held={} told={}",
        after.delivery.event_id,
        after.state,
        after.attempts_made,
        after.revision,
        after.due_at,
        after.copy.as_ref().map_or("-", |copy| copy.as_str()),
        after.hold.is_some(),
        after.dlq_told,
    )
}
