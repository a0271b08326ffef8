//! A wake-up's way: `load → admit → claim → send → settle → hand off → acknowledge`.
//!
//! This is the one place where that order is written. A crash between any two steps is repaired by
//! the redelivered copy or by the reconciler; a condition that fails for any reason but our own
//! token is a lost race: load and admit again, never acknowledge because of it.

mod budgeted;
mod settling;

use std::sync::Arc;

use bytes::Bytes;
use waybill_domain::admit::{Admission, Scene, Suppressed, admit};
use waybill_domain::attempt::{Phase, SendReport, SendWindow, Sending};
use waybill_domain::delivery::{Change, Record, State};
use waybill_domain::destination::Destination;
use waybill_domain::envelope::{DeadLetter, Decoded, WakeUp, decode};
use waybill_domain::hold::Held;
use waybill_domain::identity::{AttemptNumber, MessageId, WriteToken};
use waybill_domain::outcome::{Seen, classify};
use waybill_domain::settle::Terms;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_domain::transition::Writer;

use crate::config::Config;
use crate::desk::{Approach, Slot};
use crate::look_up::ask_then_send;
use crate::ports::{Burial, Clock, Dice, Ledger, PortResult, Ports, Queue, Recipient, Request};
use crate::release::{goes_at, usable_until};
use crate::steps::{Landing, MOST_ROUNDS, hand_over, legal, write};
use crate::{instruments, notes};

/// A message as it came from the queue.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// Its identifier, shared by its redeliveries.
    pub message_id: &'a MessageId,
    /// Its body.
    pub body: &'a str,
}

/// What is to be done with the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Delete it: it owes nothing any more.
    Acknowledge,
    /// Leave it: it comes again by itself.
    Leave {
        /// Until when it may as well stay hidden.
        hidden_until: Option<TimeMs>,
    },
}

const LEAVE: Verdict = Verdict::Leave { hidden_until: None };

/// Works for one message at a time; many may run side by side.
#[derive(Debug)]
pub struct Consumer<'a, L, Q, R, C, D> {
    /// Its ports.
    pub ports: &'a Ports<L, Q, R, C, D>,
}

/// What a wake-up is worked on with: the same in every round.
#[derive(Clone, Copy)]
struct Errand<'a> {
    config: &'a Config,
    message_id: &'a MessageId,
    wakeup: &'a WakeUp,
    /// The way to its destination's budget, where there is one.
    approach: Option<&'a Approach>,
}

/// What an attempt begins with.
struct Beginning<'a> {
    attempt: AttemptNumber,
    timeout: DurationMs,
    payload: Option<Bytes>,
    token: WriteToken,
    /// Leased of its destination's budget, where it has one.
    slot: Option<&'a Slot>,
}

/// What one round of a wake-up came to.
enum Round {
    Done(Verdict),
    /// The record changed under us, or we changed it: load and admit again.
    Again,
}

impl<L: Ledger, Q: Queue, R: Recipient, C: Clock, D: Dice> Consumer<'_, L, Q, R, C, D> {
    /// Does what the message asks for, as far as the ledger allows. `time_left` is how long this
    /// worker still runs.
    pub async fn consume(&self, config: &Config, message: Incoming<'_>, time_left: DurationMs) -> Verdict {
        let started_at = self.ports.clock.now();
        let answer = match decode(message.body) {
            Decoded::WakeUp(wakeup) => self.wake(config, message, &wakeup, started_at, time_left).await,
            Decoded::DeadLetter(letter) => self.put_back(message, &letter).await,
            Decoded::Newer(version) => {
                tracing::warn!(message_id = %message.message_id, version, reason = "newer_version", "left");
                Ok(LEAVE)
            }
            Decoded::Undecodable(why) => self.bury_raw(message, &why).await,
        };
        answer.unwrap_or_else(|error| {
            tracing::error!(message_id = %message.message_id, error = error.in_full(), "left");
            LEAVE
        })
    }

    async fn wake(
        &self,
        config: &Config,
        message: Incoming<'_>,
        wakeup: &WakeUp,
        started_at: TimeMs,
        time_left: DurationMs,
    ) -> PortResult<Verdict> {
        let key = wakeup.facts.key();
        let approach = self.approach(config, wakeup).await;
        let approach = approach.as_ref();
        let errand = Errand { config, message_id: message.message_id, wakeup, approach };
        for _ in 0..MOST_ROUNDS {
            let Some(record) = self.ports.ledger.load(&key).await? else {
                tracing::warn!(delivery_id = %key.delivery_id, tenant = %key.tenant, reason = "unknown", "left");
                return Ok(LEAVE);
            };
            let spent = self.ports.clock.now().since(started_at);
            let time_left = DurationMs::from_ms(time_left.as_ms().saturating_sub(spent.as_ms()));
            match self.round(errand, &record, time_left).await? {
                Round::Done(verdict) => return Ok(verdict),
                Round::Again => {}
            }
        }
        tracing::warn!(delivery_id = %key.delivery_id, tenant = %key.tenant, reason = "contended", "left");
        Ok(LEAVE)
    }

    async fn round(&self, errand: Errand<'_>, record: &Record, time_left: DurationMs) -> PortResult<Round> {
        let Errand { config, message_id, wakeup, .. } = errand;
        let destination = config.destination_of(&record.delivery);
        let destination = destination.as_ref();
        let scene = Scene {
            destination: destination.map(Arc::as_ref),
            holds: &config.holds,
            time_left,
            now: self.ports.clock.now(),
        };
        let terms = self.terms(config, destination);
        let admission = admit(record, wakeup, message_id, scene);
        let writer = || Writer {
            message_id: Some(message_id.clone()),
            token: self.ports.dice.token(),
            now: scene.now,
        };
        match admission {
            Admission::Acknowledge(why) => {
                notes::suppressed(record, why);
                instruments::suppressed(config, record);
                Ok(Round::Done(Verdict::Acknowledge))
            }
            Admission::RepeatHandOff(why) => {
                notes::suppressed(record, why);
                instruments::suppressed(config, record);
                self.hand_off(record).await
            }
            Admission::Leave(why) => {
                notes::left(record, why);
                Ok(Round::Done(Verdict::Leave { hidden_until: why.hidden_until() }))
            }
            Admission::Wait => self.hand_off(record).await,
            Admission::Lift => {
                let goes_at = goes_at(record, config);
                let change = legal(record.lift_not_before(goes_at, scene.now, &terms.look))?;
                write(&self.ports.ledger, &change, |_| false).await?;
                Ok(Round::Again)
            }
            Admission::Hold(reason) => {
                let by = writer();
                let change = legal(record.hold(&by, Held { reason, since: scene.now }))?;
                self.conclude_unsent(errand, destination, record, change, &by).await
            }
            Admission::End(ending) => {
                let by = writer();
                let change = legal(record.end(&by, ending, &terms.look))?;
                self.conclude_unsent(errand, destination, record, change, &by).await
            }
            Admission::SettleInterrupted => {
                let by = writer();
                let change = self.settle_lapsed(record, &terms, &by).await?;
                self.conclude(config, record, change, &by).await
            }
            Admission::Claim { attempt, timeout } => match destination {
                Some(destination) => {
                    self.begin(errand, destination, record, attempt, timeout, time_left).await
                }
                None => Ok(Round::Again),
            },
        }
    }

    /// Writes a conclusion that needs no request, then hands off and acknowledges.
    async fn conclude(
        &self,
        config: &Config,
        before: &Record,
        change: Change,
        by: &Writer,
    ) -> PortResult<Round> {
        let is_ours = |stored: &Record| stored.settled_token.as_ref() == Some(&by.token);
        match write(&self.ports.ledger, &change, is_ours).await? {
            Landing::Landed(after) => {
                notes::decision(&after);
                instruments::decided(config, before.attempts_made, &after);
                self.hand_off(&after).await
            }
            Landing::Lost(_) => Ok(Round::Again),
        }
    }

    async fn hand_off(&self, record: &Record) -> PortResult<Round> {
        let ports = self.ports;
        hand_over(&ports.ledger, &ports.queue, &ports.clock, record).await?;
        Ok(Round::Done(Verdict::Acknowledge))
    }

    /// Claim, send, settle: `token` is the claim's, and nothing is sent that could last beyond the slot.
    async fn attempt(
        &self,
        Errand { config, message_id, .. }: Errand<'_>,
        destination: &Arc<Destination>,
        record: &Record,
        Beginning { attempt, timeout, payload, token, slot }: Beginning<'_>,
    ) -> PortResult<Round> {
        let is_probe = slot.is_some_and(Slot::is_probe);
        let terms = Terms { is_probe, ..self.terms(config, Some(destination)) };
        let now = self.ports.clock.now();
        let change =
            legal(record.claim(message_id.clone(), token.clone(), now, timeout, config.revision.clone()))?;
        let is_ours = |stored: &Record| stored.claim.as_ref().is_some_and(|claim| claim.token == token);
        let claimed = match write(&self.ports.ledger, &change, is_ours).await? {
            Landing::Landed(claimed) => claimed,
            Landing::Lost(_) => return Ok(Round::Again),
        };
        let Some(claim) = claimed.claim.clone() else { return Ok(Round::Again) };

        let window = SendWindow {
            lease_until: slot.map_or(claim.lease_until, |slot| usable_until(slot).min(claim.lease_until)),
            limit_at: claimed.limit(now).at,
            timeout,
            started_at: now,
        };
        let sending = match payload {
            Some(body) => {
                let request = Request::of(destination, &claimed, attempt, body);
                ask_then_send(&self.ports.recipient, &claimed, request, window).await
            }
            None => Sending::Attempted(payload_missing(destination, now)),
        };
        let by = Writer { message_id: Some(message_id.clone()), token, now: self.ports.clock.now() };
        match sending {
            Sending::NotSent(why) => {
                notes::not_sent(&claimed, attempt, why);
                let settle = |record: &Record| record.settle_not_sent(&by, why, &terms.look);
                self.settle_until_known(config, *claimed, &by, settle).await
            }
            Sending::Attempted(report) => {
                notes::attempt(&claimed, &claim, &report);
                instruments::attempted(config, &claimed, &report);
                if let Some(slot) = slot {
                    slot.tell(&report);
                }
                self.settle_report(config, *claimed, &claim, &report, &terms, &by).await
            }
        }
    }

    /// A body that is no envelope of ours: kept as it is, where an operator looks.
    async fn bury_raw(&self, message: Incoming<'_>, why: &str) -> PortResult<Verdict> {
        let attributes = vec![("reason", "undecodable".to_owned())];
        self.ports.queue.bury(Burial { body: message.body.to_owned(), attributes }).await?;
        tracing::warn!(message_id = %message.message_id, reason = "undecodable", why, "dead-lettered");
        Ok(Verdict::Acknowledge)
    }

    /// A dead letter (or an expired delivery's) on the main queue came from a console's redrive, which
    /// releases nothing: back into the DLQ with it.
    async fn put_back(&self, message: Incoming<'_>, letter: &DeadLetter) -> PortResult<Verdict> {
        let key = letter.facts.key();
        let Some(record) = self.ports.ledger.load(&key).await? else {
            tracing::warn!(delivery_id = %key.delivery_id, tenant = %key.tenant, reason = "unknown", "left");
            return Ok(LEAVE);
        };
        if matches!(record.state, State::DeadLettered | State::Expired) {
            let body = message.body.to_owned();
            self.ports.queue.bury(Burial { body, ..Burial::of(letter) }).await?;
        }
        notes::suppressed(&record, Suppressed::DeadLettered);
        Ok(Verdict::Acknowledge)
    }

    fn terms(&self, config: &Config, destination: Option<&Arc<Destination>>) -> Terms {
        Terms {
            policy: destination.map(|d| d.policy).unwrap_or_default(),
            on_ambiguous: destination.map(|d| d.on_ambiguous).unwrap_or_default(),
            keep_result: destination.is_some_and(|d| d.keep_result),
            fingerprint: destination.map(|d| d.fingerprint()),
            look: config.look_rules(self.ports.queue.window()),
            is_probe: false,
        }
    }
}

fn payload_missing(destination: &Destination, now: TimeMs) -> SendReport {
    SendReport {
        outcome: classify(Seen::PayloadMissing, &destination.statuses),
        phase: Phase::Prepare,
        status: None,
        retry_after: None,
        excerpt: None,
        note: "the payload is not in the store any more; nothing was sent".to_owned(),
        started_at: now,
        ended_at: now,
    }
}
