//! A recipient that does what its script says, in virtual time, and keeps account.
//!
//! It honours [`SendWindow::check`] right before the first byte, as every adapter must; it records
//! every request that reached it, and counts effects by idempotency key as a recipient does that
//! deduplicates.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use waybill_domain::address::RecipientUrl;
use waybill_domain::attempt::{Excerpt, Phase, RetryAfter, SendReport, SendWindow, Sending};
use waybill_domain::identity::{AttemptNumber, DeliveryId, DestinationName, EventId};
use waybill_domain::look_up::{Finding, judge};
use waybill_domain::outcome::{Seen, classify};
use waybill_domain::retry_after;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Clock, Recipient, Request};

use crate::clock::VirtualClock;

/// What a recipient does with one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaction {
    connecting: DurationMs,
    applies: bool,
    ends: Ends,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Ends {
    Answered { status: u16, retry_after: Option<String>, after: DurationMs },
    LostBeforeRequest,
    LostAfterRequest,
    NeverAnswered,
}

impl Reaction {
    /// It answers at once with this status; a 2xx has its effect.
    pub fn answer(status: u16) -> Self {
        let ends = Ends::Answered { status, retry_after: None, after: DurationMs::ZERO };
        Self { connecting: DurationMs::ZERO, applies: (200..300).contains(&status), ends }
    }

    /// The connection ends before the first byte of the request.
    pub fn lost_before() -> Self {
        Self { connecting: DurationMs::ZERO, applies: false, ends: Ends::LostBeforeRequest }
    }

    /// The connection ends after the request was written; without effect unless [`applying`](Self::applying).
    pub fn lost_after() -> Self {
        Self { ends: Ends::LostAfterRequest, ..Self::lost_before() }
    }

    /// It reads the request and never answers; without effect unless [`applying`](Self::applying).
    pub fn silence() -> Self {
        Self { ends: Ends::NeverAnswered, ..Self::lost_before() }
    }

    /// The same, and the request has its effect.
    pub fn applying(self) -> Self {
        Self { applies: true, ..self }
    }

    /// The same after so long on the way to the first byte.
    pub fn connecting_for(self, connecting: DurationMs) -> Self {
        Self { connecting, ..self }
    }

    /// The same, where it answers, so long after the first byte.
    pub fn taking(mut self, span: DurationMs) -> Self {
        if let Ends::Answered { after, .. } = &mut self.ends {
            *after = span;
        }
        self
    }

    /// The same, where it answers, with this `Retry-After` field.
    pub fn asking(mut self, field: impl Into<String>) -> Self {
        if let Ends::Answered { retry_after, .. } = &mut self.ends {
            *retry_after = Some(field.into());
        }
        self
    }
}

/// A request whose first byte reached the recipient.
#[derive(Debug, Clone)]
pub struct Received {
    /// Who sent it.
    pub sender: Arc<str>,
    /// `webhook-id`.
    pub delivery_id: DeliveryId,
    /// `waybill-event-id`.
    pub event_id: EventId,
    /// To whom, as the sender's configuration names it.
    pub destination: DestinationName,
    /// `waybill-attempt`.
    pub attempt: AttemptNumber,
    /// Where it was sent.
    pub url: RecipientUrl,
    /// The bytes.
    pub body: Bytes,
    /// When, in truth.
    pub at: TimeMs,
    /// When, by the sender's clock.
    pub at_sender: TimeMs,
    /// The right under which it was sent.
    pub window: SendWindow,
    /// When, in truth, the sender's time for an answer is over.
    pub over_at: TimeMs,
}

/// One recipient, as one sender with its own clock reaches it.
#[derive(Debug, Clone)]
pub struct ScriptedRecipient<C> {
    truth: VirtualClock,
    clock: C,
    sender: Arc<str>,
    desk: Arc<Mutex<Desk>>,
}

/// What a recipient does with one status look-up. Without a script it tells the truth: 200 where it
/// applied a request of the delivery, 404 where it did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookUpReaction {
    /// It tells the truth.
    Truth,
    /// It answers this status, and knows nothing.
    Answer(u16),
    /// It never answers.
    Silence,
}

#[derive(Debug, Default)]
struct Desk {
    scripts: BTreeMap<DeliveryId, VecDeque<Reaction>>,
    look_up_scripts: BTreeMap<DeliveryId, VecDeque<LookUpReaction>>,
    looked_up: Vec<(DeliveryId, RecipientUrl)>,
    requests: Vec<Received>,
    applied: BTreeMap<DeliveryId, u32>,
    moods: BTreeMap<DestinationName, Reaction>,
}

impl ScriptedRecipient<VirtualClock> {
    /// A recipient that has no script yet: it answers 200 to everything.
    pub fn new(truth: &VirtualClock) -> Self {
        let (truth, clock) = (truth.clone(), truth.clone());
        Self { truth, clock, sender: "sender".into(), desk: Arc::default() }
    }
}

impl<C> ScriptedRecipient<C> {
    /// The same recipient for a sender whose clock is its own.
    pub fn reached_by<D: Clock>(&self, sender: impl Into<Arc<str>>, clock: D) -> ScriptedRecipient<D> {
        ScriptedRecipient { truth: self.truth.clone(), clock, sender: sender.into(), desk: self.desk.clone() }
    }

    /// How it reacts to the next requests for a delivery, one after the other; then it answers 200.
    pub fn react(&self, delivery_id: &DeliveryId, reactions: impl IntoIterator<Item = Reaction>) {
        self.desk().scripts.entry(delivery_id.clone()).or_default().extend(reactions);
    }

    /// How a destination reacts from now on to whatever has no script.
    pub fn turn(&self, destination: &DestinationName, reaction: Reaction) {
        self.desk().moods.insert(destination.clone(), reaction);
    }

    /// How it reacts to the next look-ups of a delivery; then it tells the truth.
    pub fn react_to_look_ups(
        &self,
        delivery_id: &DeliveryId,
        reactions: impl IntoIterator<Item = LookUpReaction>,
    ) {
        self.desk().look_up_scripts.entry(delivery_id.clone()).or_default().extend(reactions);
    }

    /// Every look-up that reached it, in order: of which delivery, and where it was asked.
    pub fn look_ups(&self) -> Vec<(DeliveryId, RecipientUrl)> {
        self.desk().looked_up.clone()
    }

    /// Every request that reached it, in order.
    pub fn requests(&self) -> Vec<Received> {
        self.desk().requests.clone()
    }

    /// The requests after the first `seen` ones.
    pub fn requests_after(&self, seen: usize) -> Vec<Received> {
        self.desk().requests.get(seen..).unwrap_or_default().to_vec()
    }

    /// How many effects a delivery had, at a recipient that deduplicates: 0 or 1.
    pub fn effects(&self, delivery_id: &DeliveryId) -> u32 {
        self.applications(delivery_id).min(1)
    }

    /// How many requests for a delivery were applied, or would have been without deduplication.
    pub fn applications(&self, delivery_id: &DeliveryId) -> u32 {
        self.desk().applied.get(delivery_id).copied().unwrap_or(0)
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Clock> ScriptedRecipient<C> {
    fn next_reaction(&self, request: &Request) -> Reaction {
        let mut desk = self.desk();
        let scripted = desk.scripts.get_mut(&request.delivery_id).and_then(VecDeque::pop_front);
        let usual = || desk.moods.get(&request.destination.name).cloned();
        scripted.or_else(usual).unwrap_or_else(|| Reaction::answer(200))
    }

    fn first_byte(&self, request: &Request, window: SendWindow, rest: DurationMs, applies: bool) {
        let at = self.truth.now();
        let mut desk = self.desk();
        desk.requests.push(Received {
            sender: self.sender.clone(),
            delivery_id: request.delivery_id.clone(),
            event_id: request.event_id.clone(),
            destination: request.destination.name.clone(),
            attempt: request.attempt,
            url: request.destination.url.clone(),
            body: request.body.clone(),
            at,
            at_sender: self.clock.now(),
            window,
            over_at: at.plus(rest),
        });
        if applies {
            *desk.applied.entry(request.delivery_id.clone()).or_default() += 1;
        }
    }

    async fn wait(&self, span: DurationMs) {
        self.truth.reached(self.truth.now().plus(span)).await;
    }

    fn report(&self, request: &Request, window: SendWindow, seen: Seen, phase: Phase) -> SendReport {
        SendReport {
            outcome: classify(seen, &request.destination.statuses),
            phase,
            status: match seen {
                Seen::Status(status) => Some(status),
                _ => None,
            },
            retry_after: None,
            excerpt: None,
            note: format!("the script says {seen:?}"),
            started_at: window.started_at,
            ended_at: self.clock.now(),
        }
    }
}

impl<C: Clock> Recipient for ScriptedRecipient<C> {
    async fn send(&self, request: Request, window: SendWindow) -> Sending {
        let reaction = self.next_reaction(&request);
        if reaction.connecting > DurationMs::ZERO {
            self.wait(reaction.connecting).await;
        }
        let rest = match window.check(self.clock.now()) {
            Ok(rest) => rest,
            Err(why) => return Sending::NotSent(why),
        };
        if reaction.ends == Ends::LostBeforeRequest {
            return Sending::Attempted(self.report(&request, window, Seen::NotConnected, Phase::Connect));
        }
        self.first_byte(&request, window, rest, reaction.applies);
        let report = match reaction.ends {
            Ends::Answered { status, retry_after, after } if after <= rest => {
                self.wait(after).await;
                let mut report = self.report(&request, window, Seen::Status(status), Phase::Answer);
                report.retry_after = retry_after.map(|received| RetryAfter {
                    wait: retry_after::parse(&received, report.ended_at),
                    received,
                });
                let bytes = status.to_string().into_bytes();
                report.excerpt = Some(Excerpt { full_length: bytes.len() as u64, bytes, complete: true });
                report
            }
            Ends::LostAfterRequest => self.report(&request, window, Seen::LostAfterRequest, Phase::Request),
            _ => {
                self.wait(rest).await;
                self.report(&request, window, Seen::AnswerTimedOut, Phase::Request)
            }
        };
        Sending::Attempted(report)
    }

    async fn look_up(&self, request: Request, url: RecipientUrl, window: SendWindow) -> Finding {
        let rest = match window.check(self.clock.now()) {
            Ok(rest) => rest,
            Err(why) => return Finding::NotAsked(why),
        };
        let (reaction, is_applied) = {
            let mut desk = self.desk();
            desk.looked_up.push((request.delivery_id.clone(), url));
            let script = desk.look_up_scripts.get_mut(&request.delivery_id);
            let reaction = script.and_then(VecDeque::pop_front).unwrap_or(LookUpReaction::Truth);
            (reaction, desk.applied.contains_key(&request.delivery_id))
        };
        let seen = match reaction {
            LookUpReaction::Truth => Seen::Status(if is_applied { 200 } else { 404 }),
            LookUpReaction::Answer(status) => Seen::Status(status),
            LookUpReaction::Silence => {
                self.wait(DurationMs::from_ms(rest.as_ms() / 2)).await;
                Seen::AnswerTimedOut
            }
        };
        let Some(outcome) = judge(seen) else { return Finding::NotApplied };
        let mut report = SendReport { outcome, ..self.report(&request, window, seen, Phase::LookUp) };
        report.excerpt = report.status.map(|status| {
            let bytes = format!("looked up: {status}").into_bytes();
            Excerpt { full_length: bytes.len() as u64, bytes, complete: true }
        });
        Finding::Settles(report)
    }
}
