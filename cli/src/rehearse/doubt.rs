//! The doubt: the accounting system takes a payment and never answers, so nobody knows whether it is booked.
//! What follows is what its destination says: `retry` sends the same again, and the recipient recognises it;
//! `hold` sends nothing more, and a person ends it. The third, `query`, is played by the nightly
//! reconciliation.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use waybill_domain::delivery::State;
use waybill_domain::destination::{Destination, OnAmbiguous};
use waybill_domain::ending::Disposition;
use waybill_domain::order::Decision;
use waybill_domain::redrive::{Block, Fate, Reviews, Selection};
use waybill_domain::time::DurationMs;
use waybill_service::ports::Clock as _;
use waybill_service::publish::Published;
use waybill_testkit::server::Received;
use waybill_testkit::server::script::Answer;

use super::Rehearsal;
use super::operated::{
    OPERATOR, acted, carried_out, configure, desk, of_acme, planned, reviewed, round, started, tell,
};
use super::promises::{ends_as, promise};
use super::recovery::{ACCOUNTING, payment};
use super::stage::{NEVER, Stage};
use crate::exit::Failure;

/// Booked, and sent again.
const RETRIED: u32 = 7331;
/// Booked, and found in the books by a person.
const FOUND: u32 = 7332;
/// Not booked; somebody does that by hand.
const BY_HAND: u32 = 7333;
/// Not booked, and redriven.
const MISSED: u32 = 7334;

const SEEN: &[u8] = b"already booked\n";

/// The accounting system's books: the idempotency keys that it knows, and how often it said so.
#[derive(Debug, Default, Clone)]
pub(super) struct Books(Arc<Mutex<(BTreeSet<String>, usize)>>);

impl Books {
    /// What it makes of the payments of this story: never an answer to a first request, whether it books it
    /// or loses it, and an answer from its books to a later one.
    pub(super) fn answer(&self, request: &Received) -> Option<Answer> {
        let body = String::from_utf8_lossy(&request.body);
        let is_of = |number: u32| body.contains(&format!("pay_{number}"));
        let is_lost = is_of(BY_HAND) || is_of(MISSED);
        if !is_lost && !is_of(RETRIED) && !is_of(FOUND) {
            return None;
        }
        let mut books = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, seen) = &mut *books;
        let key = request.idempotency_key().unwrap_or_default().to_owned();
        if known.contains(&key) {
            *seen += 1;
            return Some(Answer::with_body(200, &[], SEEN).not_applied());
        }
        if request.header("waybill-attempt") != Some("1") {
            known.insert(key);
            return Some(Answer::status(200));
        }
        let never = Answer::status(200).after(NEVER);
        if is_lost {
            return Some(never.not_applied());
        }
        known.insert(key);
        Some(never)
    }

    /// How many requests it answered as seen.
    fn seen(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

/// Plays it.
pub(super) async fn doubted(
    rehearsal: &mut Rehearsal,
    stage: &mut Stage,
    books: &Books,
) -> Result<(), Failure> {
    sent_again(rehearsal, stage, books).await?;
    held_for_a_person(rehearsal, stage).await
}

/// `on_ambiguous = "retry"`.
async fn sent_again(rehearsal: &mut Rehearsal, stage: &mut Stage, books: &Books) -> Result<(), Failure> {
    rehearsal.voice.scene(
        "The accounting system books pay_7331 and never answers. Its destination says on_ambiguous = \"retry\": \
         the same request goes once more, and the accounting system knows its ID.",
    );
    configure(stage, ACCOUNTING, |before| Destination { on_ambiguous: OnAmbiguous::Retry, ..before })?;
    let published = rehearsal.published(stage.publish(&payment(RETRIED)).await)?;
    stage.work_until_quiet().await?;
    rehearsal.keep(promise(event(RETRIED), "the second request is answered as seen", 1, books.seen()));
    ended(rehearsal, stage, &published, State::Succeeded, 2, 1).await
}

/// `on_ambiguous = "hold"`.
async fn held_for_a_person(rehearsal: &mut Rehearsal, stage: &mut Stage) -> Result<(), Failure> {
    rehearsal.voice.scene(
        "Another accounting system would neither know an ID nor could be asked: on_ambiguous = \"hold\". It books \
         pay_7332 and loses pay_7333 and pay_7334, and answers none of them.",
    );
    configure(stage, ACCOUNTING, |before| Destination { on_ambiguous: OnAmbiguous::Hold, ..before })?;
    let mut held = Vec::new();
    for number in [FOUND, BY_HAND, MISSED] {
        held.push(rehearsal.published(stage.publish(&payment(number)).await)?);
    }
    stage.work_until_quiet().await?;

    rehearsal.voice.scene("Two days go by, and the reconciler looks on. Nothing is sent to find out.");
    for _ in 0..2 {
        stage.clock.skip_to(stage.clock.now().plus(DurationMs::from_secs(24 * 3600)));
        round(stage).await?;
        stage.work_until_quiet().await?;
    }
    for (published, number) in held.iter().zip([FOUND, BY_HAND, MISSED]) {
        let (record, _) = stage.found(published).await?;
        let reason = record.dead_letter_reason().map(|reason| reason.as_str());
        rehearsal.keep(promise(event(number), "it waits for a person", Some("ambiguous_outcome"), reason));
        let requests = stage.recipient.requests_of(published.delivery_id.as_str()).len();
        rehearsal.keep(promise(event(number), "nothing more was sent meanwhile", 1, requests));
    }
    ended_by_a_person(rehearsal, stage, &held).await
}

/// Maria looks into the books of the accounting system, and ends each as she finds it.
async fn ended_by_a_person(
    rehearsal: &mut Rehearsal,
    stage: &mut Stage,
    held: &[Published],
) -> Result<(), Failure> {
    let [found, by_hand, missed] = held else { return Err(Failure::failed("three were held")) };
    rehearsal.voice.scene(
        "Maria looks into its books. pay_7332 stands there: she resolves it. pay_7333 does not, and was paid by \
         cheque meanwhile: she closes it.",
    );
    end(stage, found, Decision::Resolve, "it stands in the books").await?;
    end(stage, by_hand, Decision::Close, "paid by cheque").await?;
    round(stage).await?;

    rehearsal.voice.scene(
        "pay_7334 does not stand there either. A redrive leaves it alone until somebody says that they have \
         asked; Maria does, and it goes.",
    );
    let selection = Selection { deliveries: vec![missed.delivery_id.clone()], ..of_acme()? };
    let plan = planned(stage, selection.clone()).await?;
    tell(rehearsal, &plan);
    let blocked = plan.count(|fate| fate == Fate::Blocked(Block::Ambiguous));
    rehearsal.keep(promise(event(MISSED), "blocked until somebody has asked: 1", 1, blocked));
    let why = "it does not stand in the books";
    let reviews = Reviews { ambiguous: Some(why.to_owned()), ..Reviews::default() };
    let plan = reviewed(stage, selection, reviews).await?;
    tell(rehearsal, &plan);
    let run = started(stage, &plan, "1/s", None, why).await?;
    carried_out(stage, &run).await?;

    ended(rehearsal, stage, found, State::Succeeded, 1, 1).await?;
    ended(rehearsal, stage, by_hand, State::DeadLettered, 1, 0).await?;
    ended(rehearsal, stage, missed, State::Succeeded, 2, 1).await?;
    let dispositions = [
        (FOUND, found, "resolved, with its reason kept", true),
        (BY_HAND, by_hand, "closed, with its reason kept", false),
    ];
    for (number, published, text, is_resolved) in dispositions {
        let (record, _) = stage.found(published).await?;
        let seen = match record.disposition {
            Some(Disposition::Resolved(reason)) if is_resolved => Some(reason.as_str()),
            Some(Disposition::Closed(reason)) if !is_resolved => Some(reason.as_str()),
            _ => None,
        };
        rehearsal.keep(promise(event(number), text, Some("ambiguous_outcome"), seen));
    }
    Ok(())
}

async fn end(stage: &Stage, published: &Published, decision: Decision, why: &str) -> Result<(), Failure> {
    let (record, _) = stage.found(published).await?;
    acted(desk(stage).order_ending(&record, decision, OPERATOR, why).await)?;
    Ok(())
}

/// How it ended, with so many requests at the recipient of which so many were applied.
async fn ended(
    rehearsal: &mut Rehearsal,
    stage: &Stage,
    published: &Published,
    state: State,
    requests: usize,
    applied: usize,
) -> Result<(), Failure> {
    let (record, attempts) = stage.found(published).await?;
    let tally = stage.recipient.tally(record.delivery.id.as_str());
    let event = &record.delivery.event_id;
    rehearsal.keep(ends_as(&record, state));
    rehearsal.keep(promise(
        event,
        format!("requests at the recipient: {requests}"),
        requests,
        tally.requests,
    ));
    rehearsal.keep(promise(event, format!("of them booked: {applied}"), applied, tally.applied));
    rehearsal.conclude(stage, &record, &attempts).await
}

fn event(number: u32) -> String {
    format!("evt_pay_{number}")
}
