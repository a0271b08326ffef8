//! The use cases as actors: each a future over staged ports, begun when the scheduler says so.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use waybill_domain::destination::SecretRef;
use waybill_domain::envelope::{Decoded, decode};
use waybill_domain::handoff::{HandOff, hand_off};
use waybill_domain::identity::DeliveryKey;
use waybill_domain::time::DurationMs;
use waybill_domain::verify::headers::Headers;
use waybill_service::authorize::Vault;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::desk::Desk;
use waybill_service::event::Event;
use waybill_service::ingest::{self, Head, Inlet};
use waybill_service::ports::{
    Applied, Burial, Clock, Inbox, Ledger, Outgoing, PortResult, Ports, Queue, Received,
};
use waybill_service::publish::{PublishError, Published, Publisher};
use waybill_service::reconcile::{Reconciler, TickLimits, TickReport};
use waybill_service::round::{Round, RoundReport};
use waybill_service::schedule::Learned;
use waybill_service::sweep::sweep;

use crate::clock::SkewedClock;
use crate::dice::SeededDice;
use crate::faults::{Actor, Stage, Staged};
use crate::memory::MemoryQueue;
use crate::next_version::Versioned;

use super::sabotage::{Hand, Sabotaged, StagedLedger};
use super::sabotage_of_holds::misread;
use super::sight::{OnAdmission, Sight, Watched};
use super::world::World;

/// What an actor brings back, once it is done.
pub type Answer<T> = Arc<Mutex<Option<T>>>;

/// How a worker works.
#[derive(Clone)]
pub struct WorkerTerms {
    /// How long it still runs when it takes up a message.
    pub time_left: DurationMs,
    /// Whether it hides a message that it leaves exactly as long as it may, as `serve` does; or
    /// leaves that to the visibility timeout, as Lambda does.
    pub hides: bool,
    /// Told of every admission.
    pub told: Option<OnAdmission>,
}

impl std::fmt::Debug for WorkerTerms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerTerms").field("hides", &self.hides).finish_non_exhaustive()
    }
}

impl Default for WorkerTerms {
    fn default() -> Self {
        Self { time_left: DurationMs::from_secs(60), hides: true, told: None }
    }
}

/// What a producer heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It is accepted, durably.
    Accepted,
    /// Nobody knows how far it came: it is to be published again.
    AskedToRepeat,
    /// It is not accepted, and why.
    Refused(String),
}

/// Every secret is its own name.
struct Names;

impl Vault for Names {
    async fn secret(&self, reference: &SecretRef) -> Option<String> {
        reference.to_string().strip_prefix("env:").map(str::to_owned)
    }
}

/// An event as its producer writes it.
fn written(event: &Event) -> Bytes {
    let mut text = format!(
        "{{\"event_id\":{:?},\"tenant\":{:?},\"type\":{:?}",
        event.event_id.as_str(),
        event.tenant.as_str(),
        event.event_type.as_str()
    );
    if let Some(destination) = &event.destination {
        text += &format!(",\"destination\":{:?}", destination.as_str());
    }
    for (name, at) in [("deadline", event.deadline), ("not_before", event.not_before)] {
        text += &at.map_or(String::new(), |at| format!(",\"{name}\":\"{at}\""));
    }
    let payload = String::from_utf8_lossy(&event.payload);
    Bytes::from(format!("{text},\"payload\":{payload}}}"))
}

impl World {
    /// A worker receives one message and works for it.
    pub fn worker(&self, name: &str, clock: &SkewedClock, seed: u64, terms: WorkerTerms) -> Actor {
        let (stage, hand) = (Stage::default(), Hand::default());
        let config = misread(self.config(), self.sabotage);
        let sight = Sight::new(clock, &config, terms.told.clone());
        let queue = self.staged_queue(&stage, &hand);
        let recipient = self.recipient.reached_by(name, clock.clone());
        let ports = Ports {
            ledger: Watched::new(self.staged_ledger(&stage, &hand), &sight),
            queue: queue.clone(),
            recipient: Sabotaged::new(Staged::new(recipient, &stage), self.sabotage, &hand),
            clock: clock.clone(),
            dice: SeededDice::new(name, seed),
            desk: Desk::default(),
        };
        let visibility = self.visibility;
        Actor::new(name, stage, async move {
            let Ok(received) = queue.receive(1, visibility).await else { return };
            for message in received {
                hand.take(message.clone());
                if let Decoded::WakeUp(wakeup) = decode(&message.body) {
                    sight.take_up(&message.message_id, wakeup, terms.time_left);
                }
                let incoming = Incoming { message_id: &message.message_id, body: &message.body };
                let consumer = Consumer { ports: &ports };
                let verdict = consumer.consume(&config, incoming, terms.time_left).await;
                // What cannot be acknowledged comes again.
                let _ = conclude(&queue, &message, verdict, terms.hides).await;
            }
        })
    }

    /// A producer publishes one event; its answer stands in what is returned, once it came.
    pub fn producer(
        &self,
        name: &str,
        clock: &SkewedClock,
        event: Event,
    ) -> (Actor, Answer<Result<Vec<Published>, PublishError>>) {
        let (stage, config, answer) = (Stage::default(), self.config(), Answer::default());
        let (ledger, queue, clock) = (
            Staged::new(self.ledger.clone(), &stage),
            Versioned::new(Staged::new(self.queue.clone(), &stage), self.is_next),
            clock.clone(),
        );
        let told = answer.clone();
        let play = async move {
            let publisher = Publisher { ledger: &ledger, queue: &queue, clock: &clock };
            let published = publisher.publish(&config, event).await;
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(published);
        };
        (Actor::new(name, stage, play), answer)
    }

    /// The reconciler's tick; its report stands in what is returned, once it came.
    pub fn reconciler(
        &self,
        name: &str,
        clock: &SkewedClock,
        seed: u64,
        limits: TickLimits,
    ) -> (Actor, Answer<PortResult<TickReport>>) {
        let (stage, config, answer) = (Stage::default(), self.config(), Answer::default());
        let hand = Hand::default();
        let ledger = self.staged_ledger(&stage, &hand);
        let queue = self.staged_queue(&stage, &hand);
        let (clock, dice, told) = (clock.clone(), SeededDice::new(name, seed), answer.clone());
        let play = async move {
            let reconciler = Reconciler { ledger: &ledger, queue: &queue, clock: &clock, dice: &dice };
            let report = reconciler.tick(&config, limits).await;
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        };
        (Actor::new(name, stage, play), answer)
    }

    /// An operator releases a dead letter: the change first, then the hand-off.
    pub fn operator_releasing(&self, name: &str, key: &DeliveryKey, run: &str) -> Actor {
        let (stage, config) = (Stage::default(), self.config());
        let (ledger, queue, clock) = (
            Staged::new(self.ledger.clone(), &stage),
            Versioned::new(Staged::new(self.queue.clone(), &stage), self.is_next),
            self.right_clock(),
        );
        let (key, run) = (key.clone(), run.to_owned());
        Actor::new(name, stage, async move {
            let _ = async {
                let Some(record) = ledger.load(&key).await? else { return Ok(()) };
                let destination = config.destination_of(&record.delivery);
                let policy = destination.map(|destination| destination.policy).unwrap_or_default();
                let (now, rules) = (clock.now(), config.look_rules(Queue::window(&queue)));
                let Ok(change) = record.release(run, &policy, now, now, &rules) else { return Ok(()) };
                if ledger.apply(&change).await? == Applied::Landed {
                    tell(&queue, &clock, change.after()).await?;
                }
                PortResult::Ok(())
            }
            .await;
        })
    }

    /// The reconciler's whole round; its report stands in what is returned, once it came.
    pub fn round(
        &self,
        name: &str,
        clock: &SkewedClock,
        seed: u64,
        limits: TickLimits,
        learned: &Arc<Learned>,
    ) -> (Actor, Answer<PortResult<RoundReport>>) {
        let (stage, config, answer) = (Stage::default(), self.config(), Answer::default());
        let hand = Hand::default();
        let ledger = self.staged_ledger(&stage, &hand);
        let queue = self.staged_queue(&stage, &hand);
        let office = Sabotaged::new(Staged::new(self.office.clone(), &stage), self.sabotage, &hand);
        let (clock, dice, told) = (clock.clone(), SeededDice::new(name, seed), answer.clone());
        let learned = learned.clone();
        let play = async move {
            let (ledger, queue, office) = (&ledger, &queue, &office);
            let round = Round { ledger, queue, office, clock: &clock, dice: &dice };
            let report = round.run(&config, &learned, limits).await;
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        };
        (Actor::new(name, stage, play), answer)
    }

    /// The hourly sweep of the DLQ, whatever the hour.
    pub fn sweeper(&self, name: &str, clock: &SkewedClock) -> Actor {
        let (stage, config, clock) = (Stage::default(), self.config(), clock.clone());
        let ledger = Staged::new(self.ledger.clone(), &stage);
        let queue = Versioned::new(Staged::new(self.queue.clone(), &stage), self.is_next);
        Actor::new(name, stage, async move {
            let _ = sweep(&ledger, &queue, &clock, &config, None).await;
        })
    }

    /// A producer posts one event over HTTP; what it heard stands in what is returned, once it came.
    pub fn caller(&self, name: &str, clock: &SkewedClock, event: &Event) -> (Actor, Answer<Heard>) {
        let (stage, config, answer) = (Stage::default(), self.config(), Answer::default());
        let (ledger, queue, clock) = (
            Staged::new(self.ledger.clone(), &stage),
            Versioned::new(Staged::new(self.queue.clone(), &stage), self.is_next),
            clock.clone(),
        );
        let (body, told) = (written(event), answer.clone());
        let play = async move {
            let headers = [("authorization", "Bearer TOKEN"), ("content-type", "application/json")];
            let headers: Headers = headers.into_iter().collect();
            let head = Head { headers: &headers, is_local: false, now: clock.now() };
            let publisher = Publisher { ledger: &ledger, queue: &queue, clock: &clock };
            let published = async {
                let body = std::future::ready(Ok(body));
                let event = ingest::receive(&config, Inlet::Events, head, &Names, body).await?;
                ingest::publish(&publisher, &config, event).await
            };
            let heard = match published.await {
                Ok(_) => Heard::Accepted,
                Err(refusal) if refusal.code.status() == 503 => Heard::AskedToRepeat,
                Err(refusal) => Heard::Refused(refusal.message),
            };
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(heard);
        };
        (Actor::new(name, stage, play), answer)
    }

    fn staged_queue(&self, stage: &Stage, hand: &Hand) -> Versioned<Sabotaged<Staged<MemoryQueue>>> {
        let staged = Staged::new(self.queue.clone(), stage);
        Versioned::new(Sabotaged::new(staged, self.sabotage, hand), self.is_next)
    }

    fn staged_ledger(&self, stage: &Stage, hand: &Hand) -> Sabotaged<StagedLedger> {
        let bare = self.ledger.clone();
        Sabotaged::new(StagedLedger { staged: Staged::new(bare.clone(), stage), bare }, self.sabotage, hand)
    }
}

async fn conclude(inbox: &impl Inbox, message: &Received, verdict: Verdict, hides: bool) -> PortResult<()> {
    match verdict {
        Verdict::Acknowledge => inbox.acknowledge(&message.receipt).await,
        Verdict::Leave { hidden_until: Some(until) } if hides => {
            inbox.hide_until(&message.receipt, until).await
        }
        Verdict::Leave { .. } => Ok(()),
    }
}

async fn tell(
    queue: &impl Queue,
    clock: &impl Clock,
    record: &waybill_domain::delivery::Record,
) -> PortResult<()> {
    match hand_off(record, queue.window(), clock.now()) {
        HandOff::WakeUp { wakeup, delay } => {
            queue.send(Outgoing { body: wakeup.encode(), delay }).await.map(drop)
        }
        HandOff::TellDlq(letter) => {
            queue.bury(Burial { body: letter.encode(), attributes: Vec::new() }).await.map(drop)
        }
        HandOff::Nothing | HandOff::Parked => Ok(()),
    }
}
