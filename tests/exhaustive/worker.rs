//! A worker's next step: `load → admit → claim → send → settle → hand off → acknowledge`.

use waybill_domain::admit::{Admission, Left, Scene, Suppressed, admit};
use waybill_domain::attempt::Attempt;
use waybill_domain::delivery::Change;
use waybill_domain::hold::Held;
use waybill_domain::settle::{interrupted, settle, settle_by, settle_late, standing_evidence};
use waybill_domain::time::DurationMs;
use waybill_domain::transition::{ClaimEnd, Writer};

use crate::attempt::{Outcome, UNIT, claim_of, own, report, terms};
use crate::ground::{Ground, config_revision, message_id, token};
use crate::scopes::Plant;
use crate::state::{Broken, Errand, Id, Lies, Reaction, State, VISIBILITY, Worker};
use crate::store::{Handed, Written};

impl State {
    /// The step of worker `n`; one state for each way in which the recipient may react.
    pub(crate) fn step_worker(
        mut self,
        ground: &mut Ground,
        n: usize,
        again: bool,
    ) -> Result<Vec<State>, Broken> {
        let next = match self.workers[n] {
            Worker::Idle => return Ok(Vec::new()),
            Worker::Loads(errand) => self.load(ground, n, errand),
            Worker::Writes { errand, base, after, is_lift } => {
                match self.write(ground, base, after, !is_lift, again)? {
                    Written::Lost(stored) if is_lift || !is_same_settle(ground, stored, after) => {
                        Worker::Loads(errand)
                    }
                    _ if is_lift => Worker::Loads(errand),
                    Written::Landed(record) | Written::Lost(record)
                        if was_found_lapsed(ground, base)
                            && ground.plant == Some(Plant::FinderOwesNothing) =>
                    {
                        Worker::Deletes(seen(ground, errand, record))
                    }
                    Written::Landed(record) | Written::Lost(record) => {
                        Worker::HandsOff { errand: seen(ground, errand, record), record }
                    }
                }
            }
            Worker::Testifies { errand, base } => self.testify(ground, n, errand, base),
            Worker::Claims { errand, base, after } => {
                let token = |id: Id| ground.record(id).claim.as_ref().map(|claim| claim.token.clone());
                match self.write(ground, base, after, true, again)? {
                    Written::Lost(stored) if token(stored) != token(after) => Worker::Loads(errand),
                    Written::Landed(claimed) | Written::Lost(claimed) => {
                        Worker::Sends { errand: seen(ground, errand, claimed), claimed }
                    }
                }
            }
            Worker::Sends { errand, claimed } => return self.request(ground, n, errand, claimed),
            Worker::Waits { errand, claimed, reaction, over_at } => {
                if reaction == Reaction::Silent && self.now < over_at {
                    return Ok(Vec::new());
                }
                let ended_at = self.now;
                match reaction {
                    Reaction::Delivered => {
                        let reaction = Some(reaction);
                        Worker::Settles { errand, claimed, current: claimed, reaction, ended_at }
                    }
                    _ => Worker::WritesEvidence { errand, claimed, reaction, ended_at },
                }
            }
            Worker::WritesEvidence { errand, claimed, reaction, ended_at } => {
                let (record, by) = (ground.record(claimed), own(ground, claimed, errand, ended_at));
                let report = report(ground, record, reaction, ended_at);
                let settlement = settle(record, &report, &terms(ground), &by, UNIT).expect("its own claim");
                self.add_evidence(ground, settlement.attempt.expect("a failure leaves evidence"));
                Worker::Settles { errand, claimed, current: claimed, reaction: Some(reaction), ended_at }
            }
            Worker::Settles { errand, claimed, current, reaction, ended_at } => {
                self.settle_claim(ground, errand, Outcome { claimed, current, reaction, ended_at }, again)?
            }
            Worker::LoadsLate { errand, claimed, ended_at } => {
                let base = self.record;
                let errand = seen(ground, errand, base);
                let by = own(ground, claimed, errand, ended_at);
                let report = report(ground, ground.record(claimed), Reaction::Delivered, ended_at);
                let attempt = claim_of(ground.record(claimed)).attempt;
                match settle_late(ground.record(base), attempt, &report, &terms(ground), &by) {
                    Ok(change) => {
                        Worker::WritesLate { errand, base, after: ground.keep(change.into_after()) }
                    }
                    Err(_) => Worker::Loads(errand),
                }
            }
            Worker::WritesLate { errand, base, after } => {
                self.write(ground, base, after, true, again)?;
                // Whether it landed or not shows when the record is loaded again.
                Worker::Loads(errand)
            }
            Worker::HandsOff { errand, record } => match self.hand_off(ground, record) {
                Handed::Done => Worker::Deletes(errand),
                Handed::Told => Worker::Tells { errand, of: record, current: record },
            },
            Worker::Tells { errand, of, current } => match self.tell(ground, of, current, again)? {
                Some(current) => Worker::Tells { errand, of, current },
                None => Worker::Deletes(errand),
            },
            Worker::Deletes(errand) => {
                self.delete(ground, errand.message, errand.view);
                Worker::Idle
            }
        };
        self.workers[n] = next;
        Ok(vec![self])
    }

    /// Takes a message; a hidden or deleted one where it is delivered twice.
    pub(crate) fn receive(mut self, ground: &Ground, n: usize, id: u8) -> State {
        let (now, is_held, is_stopped) = (self.now, self.is_held, self.is_stopped);
        let view = ground.record(self.record).revision;
        let message = self.message_mut(id);
        let is_doubled = std::mem::take(&mut message.is_doubled);
        // SQS may count the receipts of a duplicate anew.
        let is_first = !message.was_received || is_doubled;
        message.was_received = true;
        message.place = Lies::Here;
        message.visible_at = now.plus(VISIBILITY);
        let errand = Errand { message: id, is_first, sees_hold: is_held, sees_stop: is_stopped, view };
        self.workers[n] = Worker::Loads(errand);
        self
    }

    fn load(&mut self, ground: &mut Ground, n: usize, errand: Errand) -> Worker {
        let base = self.record;
        let errand = seen(ground, errand, base);
        let record = ground.record(base).clone();
        let (id, now) = (message_id(errand.message), self.now);
        let holds = ground.holds(errand.sees_hold, errand.sees_stop);
        let time_left = DurationMs::from_secs(60);
        let scene = Scene { destination: Some(&ground.destination), holds: &holds, time_left, now };
        let admission = admit(&record, &ground.wakeup(self.message(errand.message)), &id, scene);
        let by = Writer {
            message_id: Some(id.clone()),
            token: token(format!("w{n}-{}-{}", record.revision, now.as_unix_s())),
            now,
        };
        let (plant, look) = (ground.plant, ground.look);
        let mut writes = |change: Change, is_lift| {
            let after = ground.keep(change.into_after());
            Worker::Writes { errand, base, after, is_lift }
        };
        match planted(plant, admission, errand) {
            Admission::Acknowledge(_) => Worker::Deletes(errand),
            Admission::RepeatHandOff(_) | Admission::Wait => Worker::HandsOff { errand, record: base },
            Admission::Leave(Left::OwnClaim { until }) => {
                self.message_mut(errand.message).visible_at = until;
                Worker::Idle
            }
            Admission::Leave(Left::TimeShort) => unreachable!("a worker has a minute"),
            Admission::SettleInterrupted => Worker::Testifies { errand, base },
            Admission::End(ending) => writes(record.end(&by, ending, &look).unwrap(), false),
            Admission::Hold(reason) => writes(record.hold(&by, Held { reason, since: now }).unwrap(), false),
            Admission::Lift => writes(record.lift(now, &look).unwrap(), true),
            Admission::Claim { timeout, .. } => {
                let change = record.claim(id, by.token, now, timeout, config_revision()).unwrap();
                Worker::Claims { errand, base, after: ground.keep(change.into_after()) }
            }
        }
    }

    /// Settles a lapsed claim by the evidence that stands, or first writes that it was interrupted.
    fn testify(&mut self, ground: &mut Ground, n: usize, errand: Errand, base: Id) -> Worker {
        let record = ground.record(base).clone();
        let now = self.now;
        let token = token(format!("w{n}-{}-{}", record.revision, now.as_unix_s()));
        let by = Writer { message_id: Some(message_id(errand.message)), token, now };
        let terms = terms(ground);
        let stands = |state: &State, ground: &Ground| {
            let all: Vec<_> = state.evidence.iter().map(|id| ground.attempt(*id).clone()).collect();
            standing_evidence(&record, &all).cloned()
        };
        let Some(attempt) = stands(self, ground) else {
            let own = interrupted(&record, &terms, &by, UNIT).unwrap();
            self.add_evidence(ground, own);
            return Worker::Testifies { errand, base };
        };
        let change = settle_by(&record, &attempt, ClaimEnd::Lapsed, &terms, &by).unwrap();
        let after = ground.keep(change.into_after());
        Worker::Writes { errand, base, after, is_lift: false }
    }

    fn add_evidence(&mut self, ground: &mut Ground, attempt: Attempt) {
        let is_there = self.evidence.iter().any(|id| {
            let stored = ground.attempt(*id);
            (stored.number, stored.witness, &stored.token)
                == (attempt.number, attempt.witness, &attempt.token)
        });
        if !is_there {
            self.evidence.push(ground.keep_attempt(attempt));
        }
    }
}

fn planted(plant: Option<Plant>, admission: Admission, errand: Errand) -> Admission {
    match (plant, admission) {
        (Some(Plant::FirstCopyOwesNothing), Admission::RepeatHandOff(why)) if errand.is_first => {
            Admission::Acknowledge(why)
        }
        (Some(Plant::FirstCopyOwesNothing), Admission::Leave(Left::OwnClaim { .. })) if errand.is_first => {
            Admission::Acknowledge(Suppressed::Claimed)
        }
        (_, admission) => admission,
    }
}

/// The errand after its worker saw or wrote this record.
pub(crate) fn seen(ground: &Ground, errand: Errand, record: Id) -> Errand {
    Errand { view: ground.record(record).revision, ..errand }
}

fn is_same_settle(ground: &Ground, stored: Id, after: Id) -> bool {
    ground.record(stored).settled_token == ground.record(after).settled_token
}

/// Whether a conclusion without a request was about a lapsed claim.
fn was_found_lapsed(ground: &Ground, base: Id) -> bool {
    ground.record(base).claim.is_some()
}
