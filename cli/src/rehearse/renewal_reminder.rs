//! `renewal-reminder`: a reminder reaches the recipient before its cutoff although its wake-up was
//! lost; one whose cutoff passes is never sent again; one without a deadline is never accepted.

use waybill_domain::delivery::State;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::Inbox as _;
use waybill_testkit::server::script::{Answer, Script};

use super::Rehearsal;
use super::promises::{effects, ends_as, promise};
use super::stage::Stage;
use crate::exit::Failure;

const REMINDER: &str = include_str!("../../../examples/renewal-reminder/event.json");
const TOO_LATE: &str = include_str!("../../../examples/renewal-reminder/event-too-late.json");
const NO_DEADLINE: &str = include_str!("../../../examples/renewal-reminder/event-without-deadline.json");

/// Runs it.
pub(crate) async fn run(rehearsal: &mut Rehearsal) -> Result<(), Failure> {
    let script = Script::decided_by(|request| {
        let is_reminder = request.body.windows(12).any(|part| part == b"renewal-4821");
        match request.header("waybill-attempt") {
            Some("1") => Answer::with_body(503, &[], "deploying\n"),
            _ if is_reminder => Answer::status(204),
            _ => Answer::with_body(503, &[], "still deploying\n"),
        }
    });
    let stage = Stage::set("2026-08-09T17:00:00Z", "player-notices", script, rehearsal).await?;

    rehearsal.voice.scene("A reminder without a deadline: no deadline, no send.");
    let refusal = match stage.publish(NO_DEADLINE).await {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    };
    rehearsal.voice.tell(format_args!("  refused: {refusal}"));
    rehearsal.keep(promise(
        "renewal-4823",
        "refused, naming its deadline",
        true,
        refusal.starts_with("deadline: "),
    ));

    rehearsal.voice.scene(
        "The reminder for renewal-4821 must arrive before 18:00. The first attempt fails, and the queue \
           loses the wake-up for the second.",
    );
    let reminder = rehearsal.published(stage.publish(REMINDER).await)?;
    if let Some(message) = stage.next_message().await? {
        stage.work(&message).await?;
    }
    if let Some(lost) = stage.next_message().await? {
        stage.store.acknowledge(&lost.receipt).await?;
        rehearsal.voice.tell(format_args!("  {:12}  the wake-up {} is lost", "", lost.message_id));
    }
    let (record, _) = stage.found(&reminder).await?;
    if let Some(at) = record.look_at {
        rehearsal
            .voice
            .scene("Minutes later the reconciler finds it past its due time, with nobody at work on it.");
        stage.clock.skip_to(at);
        stage.reconcile().await?;
    }
    stage.work_until_quiet().await?;

    rehearsal.voice.scene(
        "The reminder for renewal-4822 had its cutoff at 17:10. After a first failure all workers stand \
           still, and its wake-up comes too late.",
    );
    let too_late = rehearsal.published(stage.publish(TOO_LATE).await)?;
    if let Some(message) = stage.next_message().await? {
        stage.work(&message).await?;
    }
    stage.clock.skip_to(TimeMs::parse("cutoff", "2026-08-09T17:10:00Z")?.plus(DurationMs::from_secs(5)));
    stage.work_until_quiet().await?;

    let (record, attempts) = stage.found(&reminder).await?;
    let tally = stage.recipient.tally(record.delivery.id.as_str());
    rehearsal.keep(ends_as(&record, State::Succeeded));
    rehearsal.keep_all(effects(&record, tally, 2, 1));
    rehearsal.conclude(&stage, &record, &attempts).await?;

    let (record, attempts) = stage.found(&too_late).await?;
    let tally = stage.recipient.tally(record.delivery.id.as_str());
    rehearsal.keep(ends_as(&record, State::Expired));
    rehearsal.keep_all(effects(&record, tally, 1, 0));
    let dead = stage.store.dead_letter_bodies(10).await?;
    let told = dead.iter().filter(|body| body.contains(record.delivery.id.as_str())).count();
    rehearsal.keep(promise("renewal-4822", "one message in the dead-letter queue", 1, told));
    rehearsal.conclude(&stage, &record, &attempts).await
}
