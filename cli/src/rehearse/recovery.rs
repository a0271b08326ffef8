//! The recovery: what an operator does once payments are dead letters. Planned, sampled, released at a
//! limited rate, one effect each; what the recipient refuses for good never returns; and a stopped run holds
//! what it released, while another tenant's deliveries go on.
//!
//! The commands' own use cases are called, and carried out as the reconciler does it.

use waybill_domain::audit::Verification;
use waybill_domain::delivery::State;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::TenantId;
use waybill_domain::outcome::FailureClass;
use waybill_domain::redrive::{Fate, Selection};
use waybill_domain::time::DurationMs;
use waybill_service::office::Office as _;
use waybill_service::ports::Clock as _;
use waybill_service::publish::Published;
use waybill_testkit::server::Received;
use waybill_testkit::server::script::Answer;

use super::Rehearsal;
use super::operated::{
    OPERATOR, acted, carried_out, desk, is_refused, move_to, of_acme, planned, round, run_of, started, tell,
    under_holds,
};
use super::promises::{effects, ends_as, promise};
use super::stage::Stage;
use crate::exit::Failure;

pub(super) const ACCOUNTING: &str = "acme-accounting";
const NOTICES: &str = "player-notices";

/// Why maria redrives.
const MOVED: &str = "the accounting system moved";

/// Where the accounting system takes payments, once somebody has told Waybill.
pub(super) const CORRECTED: &str = "/hooks/2026";
/// And after its next move.
const MOVED_AGAIN: &str = "/hooks/2027";

/// What the recipient makes of the payments of this story.
pub(super) fn answer(request: &Received) -> Option<Answer> {
    let body = String::from_utf8_lossy(&request.body);
    if body.contains("renewal-4830") {
        return Some(Answer::status(200));
    }
    let number = body.split("\"pay_").nth(1)?.get(..4)?;
    let goes_to = |path: &str| request.request_line.contains(&format!("{path} "));
    match number {
        "7321" | "7322" | "7323" if goes_to(CORRECTED) => Some(Answer::status(200)),
        "7324" => Some(Answer::with_body(422, &[], "there is no such lease\n")),
        "7325" | "7326" | "7327" if goes_to(MOVED_AGAIN) => Some(Answer::status(200)),
        "7321" | "7322" | "7323" | "7325" | "7326" | "7327" => {
            Some(Answer::with_body(401, &[], "unknown credentials\n"))
        }
        _ => None,
    }
}

/// An event of such a payment.
pub(super) fn payment(number: u32) -> String {
    format!(
        r#"{{"event_id": "evt_pay_{number}", "tenant": "acme", "type": "lease.payment_recorded", "destination": "{ACCOUNTING}", "scope": "prop_204", "payload": {{"paymentId": "pay_{number}", "amountCents": 125000, "currency": "USD"}}}}"#
    )
}

/// Plays it.
pub(super) async fn recover(rehearsal: &mut Rehearsal, stage: &mut Stage) -> Result<(), Failure> {
    let refused = corrected_sampled_released(rehearsal, stage).await?;
    refused_for_good(rehearsal, stage).await?;
    let stopped = stopped_while_others_go_on(rehearsal, stage).await?;
    for published in refused.iter().chain(&stopped) {
        let (record, attempts) = stage.found(published).await?;
        let tally = stage.recipient.tally(record.delivery.id.as_str());
        rehearsal.keep(ends_as(&record, State::Succeeded));
        rehearsal.keep_all(effects(&record, tally, 2, 1));
        rehearsal.conclude(stage, &record, &attempts).await?;
    }
    audited(rehearsal, stage).await
}

/// Three payments meet wrong credentials; the configuration is corrected, and they are released.
async fn corrected_sampled_released(
    rehearsal: &mut Rehearsal,
    stage: &mut Stage,
) -> Result<Vec<Published>, Failure> {
    rehearsal.voice.scene(
        "The accounting system has moved, with new credentials, and nobody told Waybill: pay_7321, pay_7322 and \
         pay_7323 are refused (401). No retry can mend that; each is a dead letter at once.",
    );
    let mut refused = Vec::new();
    for number in 7321..=7323 {
        refused.push(rehearsal.published(stage.publish(&payment(number)).await)?);
    }
    stage.work_until_quiet().await?;

    rehearsal.voice.scene("An operator plans a redrive. Nothing is sent by a plan.");
    let before = planned(stage, rejected()).await?;
    tell(rehearsal, &before);
    rehearsal.keep(promise(
        "redrive",
        "blocked while the configuration is as it was: 3",
        3,
        before.count(|fate| matches!(fate, Fate::Blocked(_))),
    ));

    rehearsal
        .voice
        .scene("The destination's configuration is corrected (waybill config apply), and planned again.");
    move_to(stage, ACCOUNTING, CORRECTED)?;
    let plan = planned(stage, rejected()).await?;
    tell(rehearsal, &plan);
    rehearsal.keep(promise("redrive", "releasable once it was corrected: 3", 3, plan.releasable()));

    rehearsal.voice.scene("A sample of one goes first.");
    let run = started(stage, &plan, "1/s", Some(1), MOVED).await?;
    round(stage).await?;
    stage.work_until_quiet().await?;
    round(stage).await?;
    let sampled = run_of(stage, &run).await?;
    rehearsal.keep(promise(
        "redrive",
        "after the sample it waits for a person",
        "sampled",
        sampled.standing.as_str(),
    ));
    rehearsal.keep(promise("redrive", "the sample released one", 1, sampled.tally.released));

    rehearsal.voice.scene("It was booked. The rest goes, one a second.");
    let books = [run.book.clone()];
    acted(desk(stage).resume(&run.id, &books, OPERATOR, "the sample was booked").await)?;
    let begun = stage.clock.now();
    carried_out(stage, &run).await?;
    let done = run_of(stage, &run).await?;
    rehearsal.keep(promise("redrive", "released as planned", done.planned, done.tally.released));
    rehearsal.keep(promise("redrive", "the run ends", "finished", done.standing.as_str()));
    let mut arrivals: Vec<_> = stage.recipient.server.requests().into_iter().filter_map(|r| r.at).collect();
    arrivals.retain(|at| *at > begun);
    arrivals.sort();
    // One may be late; none is early, counted from the resume.
    let slots = (0..).map(|n| begun.plus(DurationMs::from_secs(n)));
    let is_paced = arrivals.iter().zip(slots).all(|(at, slot)| *at >= slot);
    rehearsal.keep(promise("redrive", "none of the rest before its second", true, is_paced));
    Ok(refused)
}

/// One payment cannot be booked, whatever the configuration says.
async fn refused_for_good(rehearsal: &mut Rehearsal, stage: &mut Stage) -> Result<(), Failure> {
    rehearsal.voice.scene(
        "The payment pay_7324 is of a lease that the accounting system does not know (422). A plan that \
         means it alone starts no run: nobody has changed anything that could mend it.",
    );
    let published = rehearsal.published(stage.publish(&payment(7324)).await)?;
    stage.work_until_quiet().await?;
    let selection = Selection { deliveries: vec![published.delivery_id.clone()], ..of_acme()? };
    let plan = planned(stage, selection).await?;
    tell(rehearsal, &plan);
    let is_refused = is_refused(stage, &plan, "1/s", MOVED).await?;

    let (record, attempts) = stage.found(&published).await?;
    let tally = stage.recipient.tally(record.delivery.id.as_str());
    rehearsal.keep(ends_as(&record, State::DeadLettered));
    rehearsal.keep_all(effects(&record, tally, 1, 0));
    let left = stage.next_message().await?.is_none();
    rehearsal.keep(promise(&record.delivery.event_id, "no run of it is started", true, is_refused));
    rehearsal.keep(promise(&record.delivery.event_id, "it never returned to the queue", true, left));
    rehearsal.conclude(stage, &record, &attempts).await
}

/// A run is stopped half-way; another tenant's reminder goes meanwhile.
async fn stopped_while_others_go_on(
    rehearsal: &mut Rehearsal,
    stage: &mut Stage,
) -> Result<Vec<Published>, Failure> {
    rehearsal
        .voice
        .scene("The accounting system moves once more: pay_7325, pay_7326 and pay_7327 are refused.");
    let mut payments = Vec::new();
    for number in 7325..=7327 {
        payments.push(rehearsal.published(stage.publish(&payment(number)).await)?);
    }
    stage.work_until_quiet().await?;
    move_to(stage, ACCOUNTING, MOVED_AGAIN)?;
    let plan = planned(stage, rejected()).await?;
    let run = started(stage, &plan, "6/m", None, MOVED).await?;
    round(stage).await?;
    if let Some(message) = stage.next_message().await? {
        stage.work(&message).await?;
    }

    rehearsal.voice.scene(
        "After the first, the operator stops the run. What it released already is held; a reminder of another \
         tenant goes as ever.",
    );
    acted(desk(stage).stop(&run.id, std::slice::from_ref(&run.book), OPERATOR, "look at the first").await)?;
    under_holds(stage).await?;
    move_to(stage, NOTICES, "/notices")?;
    let reminder = format!(
        r#"{{"event_id": "renewal-4830", "tenant": "studio-9", "type": "renewal.reminder", "destination": "{NOTICES}", "deadline": "{}", "payload": {{"renewalId": "renewal-4830"}}}}"#,
        stage.clock.now().plus(DurationMs::from_secs(3600))
    );
    let sent_before = requests_of(stage, &payments);
    let reminder = rehearsal.published(stage.publish(&reminder).await)?;
    stage.work_until_quiet().await?;
    for _ in 0..3 {
        stage.clock.skip_to(stage.clock.now().plus(DurationMs::from_secs(60)));
        round(stage).await?;
        stage.work_until_quiet().await?;
    }
    let (record, _) = stage.found(&reminder).await?;
    rehearsal.keep(ends_as(&record, State::Succeeded));
    let sent = requests_of(stage, &payments) - sent_before;
    rehearsal.keep(promise("redrive", "sent by the stopped run", 0, sent));

    rehearsal.voice.scene("It was right. The run goes on.");
    acted(desk(stage).resume(&run.id, std::slice::from_ref(&run.book), OPERATOR, "it was booked").await)?;
    carried_out(stage, &run).await?;
    Ok(payments)
}

/// One entry for each act, and a chain without a gap.
async fn audited(rehearsal: &mut Rehearsal, stage: &Stage) -> Result<(), Failure> {
    let book = of_acme()?.book();
    let entries = stage.store.entries(&book, 100, None).await?.items;
    rehearsal.voice.scene("What the audit says of it:");
    for entry in &entries {
        let why = entry.why.as_deref().unwrap_or_default();
        rehearsal.voice.tell(format_args!("  {}  {:<16} {}: {why}", entry.at, entry.act, entry.who));
    }
    let acts: Vec<&str> = entries.iter().map(|entry| entry.act.as_str()).collect();
    let promised =
        ["redrive_started", "redrive_resumed", "redrive_started", "redrive_stopped", "redrive_resumed"];
    rehearsal.keep(promise("redrive", "one entry in the audit for each act", &promised[..], &acts[..]));
    let mut verification = Verification::of(book.clone());
    entries.iter().for_each(|entry| verification.read(entry));
    let broken = verification.finish(stage.store.head(&book).await?.as_ref()).len();
    rehearsal.keep(promise("redrive", "its chain has no gap", 0, broken));
    Ok(())
}

/// Refused for its credentials.
fn rejected() -> Selection {
    let reason = DeadLetterReason::Permanent(FailureClass::AuthenticationRejected);
    Selection { tenant: TenantId::parse("acme").ok(), reason: Some(reason), ..Selection::default() }
}

fn requests_of(stage: &Stage, payments: &[Published]) -> usize {
    payments.iter().map(|payment| stage.recipient.tally(payment.delivery_id.as_str()).requests).sum()
}
