//! `lease-payment`: a recorded payment reaches the tenant's accounting system, through an outage,
//! a lost answer and a rate limit, with one effect; and one that is never taken ends as a dead letter.
//! Then the [`recovery`]: what an operator does about dead letters. And the [`doubt`]: what becomes of
//! payments whose answers are lost.

use waybill_domain::delivery::State;
use waybill_testkit::server::script::{Answer, Script};

use super::promises::{effects, ends_as, promise};
use super::stage::{NEVER, Stage};
use super::{Rehearsal, doubt, recovery};
use crate::exit::Failure;

const PAYMENT: &str = include_str!("../../../examples/lease-payment/event.json");
const REFUSED: &str = include_str!("../../../examples/lease-payment/event-refused.json");

/// The accounting system's script for the payment, by the attempt's number.
fn answer(attempt: &str) -> Answer {
    match attempt {
        "1" => Answer::with_body(503, &[], "maintenance, back in a moment\n"),
        // The payment is booked, and the answer never comes.
        "2" => Answer::status(200).after(NEVER),
        "3" => Answer::with_body(429, &[("retry-after", "120")], "slow down\n"),
        _ => Answer::with_body(200, &[], "already booked\n").applied(),
    }
}

/// Runs it.
pub(crate) async fn run(rehearsal: &mut Rehearsal) -> Result<(), Failure> {
    let books = doubt::Books::default();
    let asked = books.clone();
    let script =
        Script::decided_by(move |request| {
            let is_payment = request.body.windows(8).any(|part| part == b"pay_7319");
            match request.header("waybill-attempt") {
                Some(attempt) if is_payment => answer(attempt),
                _ => recovery::answer(request)
                    .or_else(|| asked.answer(request))
                    .unwrap_or(Answer::with_body(500, &[], "ledger closed\n")),
            }
        });
    let mut stage = Stage::set("2026-08-09T09:00:00Z", "acme-accounting", script, rehearsal).await?;

    rehearsal.voice.scene(
        "The payment pay_7319 for lease_881 of prop_204 was recorded. The accounting system is down, then \
           books it without ever answering, then wants no more than one call in two minutes.",
    );
    let payment = rehearsal.published(stage.publish(PAYMENT).await)?;
    for _ in 0..2 {
        if let Some(message) = stage.next_message().await? {
            stage.work(&message).await?;
        }
    }
    rehearsal.voice.scene("The queue delivers the next wake-up twice, to two workers at once.");
    if let Some(message) = stage.next_message().await? {
        stage.work_twice(&message).await?;
    }
    stage.work_until_quiet().await?;

    rehearsal.voice.scene("The payment pay_7320 meets an accounting system that fails every time.");
    let refused = rehearsal.published(stage.publish(REFUSED).await)?;
    stage.work_until_quiet().await?;

    let (record, attempts) = stage.found(&payment).await?;
    let tally = stage.recipient.tally(record.delivery.id.as_str());
    rehearsal.keep(ends_as(&record, State::Succeeded));
    rehearsal.keep_all(effects(&record, tally, 4, 1));
    rehearsal.keep(promise(
        &record.delivery.event_id,
        "requests that the recipient would have booked, had it not known the ID: 2",
        2,
        tally.applied,
    ));
    rehearsal.conclude(&stage, &record, &attempts).await?;

    let (record, attempts) = stage.found(&refused).await?;
    let tally = stage.recipient.tally(record.delivery.id.as_str());
    rehearsal.keep(ends_as(&record, State::DeadLettered));
    rehearsal.keep_all(effects(&record, tally, 7, 0));
    let reason = record.dead_letter_reason().map(|reason| reason.as_str());
    rehearsal.keep(promise("evt_pay_7320", "its reason says why", Some("attempts_exhausted"), reason));
    let dead = stage.store.dead_letter_bodies(10).await?;
    let told = dead.iter().filter(|body| body.contains(record.delivery.id.as_str())).count();
    rehearsal.keep(promise("evt_pay_7320", "one message in the dead-letter queue", 1, told));
    rehearsal.conclude(&stage, &record, &attempts).await?;
    recovery::recover(rehearsal, &mut stage).await?;
    doubt::doubted(rehearsal, &mut stage, &books).await
}
