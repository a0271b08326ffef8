//! What a worker does under a claim: the request, and the settle that follows it.

use waybill_domain::attempt::{NotSent, Phase, SendReport, SendWindow};
use waybill_domain::delivery::{Claim, Record};
use waybill_domain::outcome::{Seen, classify};
use waybill_domain::settle::{Terms, settle};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_domain::transition::Writer;

use crate::ground::{Ground, message_id};
use crate::scopes::Plant;
use crate::state::{Broken, Errand, Id, Reaction, State, Worker};
use crate::store::Written;
use crate::worker::seen;

/// Jitter draws the middle, always.
pub(crate) const UNIT: f64 = 0.5;

/// Under which claim, on which view of the record, and what the recipient did; `None` if nothing was sent.
pub(crate) struct Outcome {
    pub(crate) claimed: Id,
    pub(crate) current: Id,
    pub(crate) reaction: Option<Reaction>,
    pub(crate) ended_at: TimeMs,
}

impl State {
    pub(crate) fn request(
        mut self,
        ground: &mut Ground,
        n: usize,
        errand: Errand,
        claimed: Id,
    ) -> Result<Vec<State>, Broken> {
        let record = ground.record(claimed);
        let claim = claim_of(record).clone();
        let window = SendWindow {
            lease_until: claim.lease_until,
            limit_at: record.limit(claim.claimed_at).at,
            timeout: DurationMs::from_ms(
                claim.lease_until.minus(Claim::MARGIN).since(claim.claimed_at).as_ms(),
            ),
            started_at: claim.claimed_at,
        };
        let rest = match window.check(self.now) {
            Ok(rest) => rest,
            Err(_) => {
                let (current, ended_at) = (claimed, self.now);
                self.workers[n] = Worker::Settles { errand, claimed, current, reaction: None, ended_at };
                return Ok(vec![self]);
            }
        };
        self.check_request(ground, n, &claim)?;
        self.sent |= 1 << claim.attempt.get();
        let reacting = |reaction, is_applied| {
            let mut next = self.clone();
            next.is_applied |= is_applied;
            next.workers[n] = Worker::Waits { errand, claimed, reaction, over_at: self.now.plus(rest) };
            next
        };
        Ok(vec![
            reacting(Reaction::Delivered, true),
            reacting(Reaction::Refused, false),
            reacting(Reaction::Silent, true),
        ])
    }

    pub(crate) fn settle_claim(
        &mut self,
        ground: &mut Ground,
        errand: Errand,
        Outcome { claimed, current, reaction, ended_at }: Outcome,
        again: bool,
    ) -> Result<Worker, Broken> {
        let (record, by) = (ground.record(current).clone(), own(ground, claimed, errand, ended_at));
        let change = match reaction {
            Some(reaction) => {
                let report = report(ground, ground.record(claimed), reaction, ended_at);
                settle(&record, &report, &terms(ground), &by, UNIT).map(|settlement| settlement.change)
            }
            None => {
                let why = NotSent::LeaseTooShort;
                record.settle_not_sent(&by, why, &ground.look)
            }
        };
        let lost = match reaction {
            Some(Reaction::Delivered) => Worker::LoadsLate { errand, claimed, ended_at },
            _ => Worker::Loads(errand),
        };
        let Ok(change) = change else { return Ok(lost) };
        let after = ground.keep(change.into_after());
        let written = self.write(ground, current, after, true, again)?;
        let stored = match written {
            Written::Landed(record) => {
                return Ok(Worker::HandsOff { errand: seen(ground, errand, record), record });
            }
            Written::Lost(stored) => stored,
        };
        let is_still_ours = ground.record(stored).claim.as_ref().is_some_and(|claim| claim.token == by.token);
        let is_taken_for_landed = is_still_ours && ground.plant == Some(Plant::SettleTakenForLanded);
        if ground.record(stored).settled_token.as_ref() == Some(&by.token) || is_taken_for_landed {
            return Ok(Worker::HandsOff { errand: seen(ground, errand, stored), record: stored });
        }
        Ok(match is_still_ours {
            true => {
                let errand = seen(ground, errand, stored);
                Worker::Settles { errand, claimed, current: stored, reaction, ended_at }
            }
            false => lost,
        })
    }
}

pub(crate) fn claim_of(record: &Record) -> &Claim {
    record.claim.as_ref().expect("a claimed record")
}

/// The writer that settles its own claim.
pub(crate) fn own(ground: &Ground, claimed: Id, errand: Errand, now: TimeMs) -> Writer {
    let token = claim_of(ground.record(claimed)).token.clone();
    Writer { message_id: Some(message_id(errand.message)), token, now }
}

pub(crate) fn terms(ground: &Ground) -> Terms {
    let to = &ground.destination;
    Terms {
        policy: to.policy,
        on_ambiguous: to.on_ambiguous,
        keep_result: false,
        fingerprint: None,
        look: ground.look,
        is_probe: false,
    }
}

pub(crate) fn report(ground: &Ground, claimed: &Record, reaction: Reaction, ended_at: TimeMs) -> SendReport {
    let (seen, status) = match reaction {
        Reaction::Delivered => (Seen::Status(200), Some(200)),
        Reaction::Refused => (Seen::Status(503), Some(503)),
        Reaction::Silent => (Seen::AnswerTimedOut, None),
    };
    SendReport {
        outcome: classify(seen, &ground.destination.statuses),
        phase: Phase::Request,
        status,
        retry_after: None,
        excerpt: None,
        note: String::new(),
        started_at: claim_of(claimed).claimed_at,
        ended_at,
    }
}
