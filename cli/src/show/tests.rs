//! Timelines of records that went every way a delivery can go.

use waybill_domain::attempt::{Attempt, Excerpt, Phase, RetryAfter, SendReport};
use waybill_domain::delivery::{Delivery, PayloadFacts, Record};
use waybill_domain::destination::OnAmbiguous;
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::hold::{Held, HoldReason};
use waybill_domain::identity::{
    ConfigRevision, DeliveryId, DestinationName, EventId, EventType, MessageId, Scope, TenantId, WriteToken,
};
use waybill_domain::outcome::{Seen, StatusOverrides, classify};
use waybill_domain::policy::Policy;
use waybill_domain::repair::LookRules;
use waybill_domain::settle::{Settlement, Terms, settle};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_domain::transition::Writer;

use super::timeline::timeline;

mod brevity;
mod endings;
mod witnesses;

const T0: TimeMs = TimeMs::from_unix_ms(1_767_225_600_000);

fn at(ms: u64) -> TimeMs {
    T0.plus(DurationMs::from_ms(ms))
}

fn terms() -> Terms {
    let look = LookRules {
        queue_window: DurationMs::from_secs(900),
        stale_after: DurationMs::from_secs(300),
        rescue_window: DurationMs::from_secs(600),
    };
    Terms {
        policy: Policy::default(),
        on_ambiguous: OnAmbiguous::Retry,
        keep_result: true,
        fingerprint: None,
        look,
        is_probe: false,
    }
}

fn record(deadline: Option<TimeMs>) -> Record {
    let (tenant, event_id) = (TenantId::parse("acme").unwrap(), EventId::parse("pay_\u{202e}7319").unwrap());
    let destination = DestinationName::parse("acme-accounting").unwrap();
    let delivery = Delivery {
        id: DeliveryId::derive(&tenant, &event_id, &destination),
        tenant,
        event_id,
        event_type: EventType::parse("lease.payment_recorded").unwrap(),
        destination,
        scope: Some(Scope::parse("prop_204").unwrap()),
        payload: PayloadFacts {
            sha256: "ab".repeat(32),
            length: 57,
            content_type: "application/json".to_owned(),
            version: None,
        },
        first_queued_at: T0,
        not_before: None,
        deadline,
        trace: None,
        policy: None,
        newer: Default::default(),
    };
    Record::new(delivery, &Policy::default(), ConfigRevision::parse("file-1").unwrap(), &terms().look)
}

fn writer(token: &str, now: TimeMs) -> Writer {
    let message_id = Some(MessageId::parse("m1").unwrap());
    Writer { message_id, token: WriteToken::parse(token).unwrap(), now }
}

fn claimed(record: &Record, token: &str, now: TimeMs) -> Record {
    let (message, token) = (MessageId::parse("m1").unwrap(), WriteToken::parse(token).unwrap());
    let revision = ConfigRevision::parse("file-1").unwrap();
    record.claim(message, token, now, DurationMs::from_secs(15), revision).unwrap().into_after()
}

fn report(status: u16, started: u64) -> SendReport {
    let said = Excerpt { bytes: b"try \"later\"\n\x1b[2J".to_vec(), full_length: 15, complete: true };
    let asked = RetryAfter { received: "120".to_owned(), wait: Some(DurationMs::from_secs(120)) };
    SendReport {
        outcome: classify(Seen::Status(status), &StatusOverrides::new()),
        phase: Phase::Answer,
        status: Some(status),
        retry_after: (status == 429).then_some(asked),
        excerpt: Some(said),
        note: format!("answered {status}"),
        started_at: at(started),
        ended_at: at(started + 35),
    }
}

/// One attempt that was answered with `status`, claimed at `ms`.
fn attempted(record: &Record, status: u16, ms: u64) -> (Record, Option<Attempt>) {
    let claimed = claimed(record, &format!("t{ms}"), at(ms));
    let by = writer(&format!("t{ms}"), at(ms + 35));
    let Settlement { attempt, change } = settle(&claimed, &report(status, ms), &terms(), &by, 0.5).unwrap();
    (change.into_after(), attempt)
}

fn check(record: &Record, attempts: &[Attempt], expected: &[&str]) {
    let shown = timeline(record, attempts, None);
    for line in expected {
        assert!(shown.lines().any(|shown| shown == *line), "{line:?} is no line of\n{shown}");
    }
}

#[test]
fn a_fresh_delivery_shows_its_facts_and_when_it_is_due() {
    let record = record(Some(at(3_600_000)));
    let shown = timeline(&record, &[], None);
    let expected = format!(
        "{}  pending\n\
         \x20 event        pay_\\u202e7319, lease.payment_recorded\n\
         \x20 tenant       acme, scope prop_204\n\
         \x20 destination  acme-accounting\n\
         \x20 payload      57 bytes of application/json, SHA-256 {}\n\
         \x20 deadline     2026-01-01T01:00:00.000Z; automation ends at 2026-01-02T00:00:00.000Z\n\
         \x20 attempts     0 of 7\n\
         \x20 revision     file-1\n\
         \n\
         \x20 2026-01-01T00:00:00.000Z  queued         due at once\n\
         \n\
         \x20 next         attempt 1 of 7 is due at 2026-01-01T00:00:00.000Z; nothing is sent from \
         2026-01-01T01:00:00.000Z on",
        record.delivery.id,
        "ab".repeat(32)
    );
    assert_eq!(shown, expected);
}

#[test]
fn each_attempt_tells_what_happened_and_why_the_delay_was_chosen() {
    let (record, first) = attempted(&record(None), 500, 100);
    let (record, second) = attempted(&record, 429, 2_000);
    let attempts = [first.unwrap(), second.unwrap()];
    let indent = " ".repeat(28);
    check(
        &record,
        &attempts,
        &[
            "  2026-01-01T00:00:00.100Z  attempt 1      500 server_error: the recipient may have applied it, may be retried",
            &format!("{indent}  took         35ms, got an answer"),
            &format!("{indent}  said         \"try \"later\"\\n\\u001b[2J\" (15 bytes)"),
            &format!(
                "{indent}  then         not before 2026-01-01T00:00:00.635Z, in 500ms: jitter drew 500ms of at most 1s"
            ),
            "  2026-01-01T00:00:02.000Z  attempt 2      429 rate_limited: not applied, may be retried",
            &format!("{indent}  asked for    Retry-After: 120 (that is 2m00s)"),
            &format!(
                "{indent}  then         not before 2026-01-01T00:02:03.035Z, in 2m01s: the recipient asked for 2m00s, \
             and jitter drew 1s of at most 2s"
            ),
        ],
    );
}

#[test]
fn the_end_says_who_acknowledged_or_why_automation_stopped_and_what_a_person_can_do() {
    let (delivered, _) = attempted(&record(None), 200, 100);
    check(
        &delivered,
        &[],
        &[
            "  2026-01-01T00:00:00.135Z  attempt 1      delivered: the recipient acknowledged it",
            "  next         nothing: the recipient acknowledged attempt 1",
        ],
    );

    let (refused, attempt) = attempted(&record(None), 401, 100);
    check(
        &refused,
        &[attempt.unwrap()],
        &[
            &format!("{}  dead_lettered: authentication_rejected", refused.delivery.id),
            "  2026-01-01T00:00:00.135Z  dead_lettered  authentication_rejected; the dead-letter queue is not told yet",
            "  next         nothing: the last attempt failed in a way that a repeat does not mend \
         (authentication_rejected); a person decides",
            "  for you      correct the credentials or the secret on both sides. \
         To release it, begin with waybill redrive plan; to end it, waybill dead-letters close or resolve",
        ],
    );

    let (failed, attempt) = attempted(&record(Some(at(60_000))), 500, 100);
    let expired = failed.end(&writer("e", at(60_000)), Ending::Expired, &terms().look).unwrap().into_after();
    let expired = expired.told().unwrap().into_after();
    check(
        &expired,
        &[attempt.unwrap()],
        &[
            "  2026-01-01T00:01:00.000Z  expired        its deadline passed; the dead-letter queue was told",
            "  next         nothing: its deadline (2026-01-01T00:01:00.000Z) passed, and no path sends it any more",
            "  for you      if it still matters, the producer decides on a new event; the recipient may have applied \
         an attempt whose answer was lost: ask it",
        ],
    );

    let ending = Ending::DeadLettered(DeadLetterReason::DestinationRemoved);
    let removed = record(None).end(&writer("e", at(5)), ending, &terms().look).unwrap().into_after();
    check(
        &removed,
        &[],
        &["  for you      put acme-accounting back into the configuration if it was removed by mistake. To \
         release it, begin with waybill redrive plan; to end it, waybill dead-letters close or resolve"],
    );
}

#[test]
fn a_claim_and_a_hold_are_shown_as_what_they_are() {
    check(
        &claimed(&record(None), "t", at(100)),
        &[],
        &[
            "  2026-01-01T00:00:00.100Z  attempt 1      being made until 2026-01-01T00:00:20.100Z at the latest",
            "  next         attempt 1 is being made since 2026-01-01T00:00:00.100Z; if its worker does not report back \
         by 2026-01-01T00:00:20.100Z, it counts as interrupted",
        ],
    );
    let held = Held { reason: HoldReason::Paused, since: at(7) };
    let held = record(Some(at(9_000_000))).hold(&writer("h", at(7)), held).unwrap().into_after();
    check(
        &held,
        &[],
        &[
            "  2026-01-01T00:00:00.007Z  held           paused",
            "  for you      lift the hold in time: its deadline is 2026-01-01T02:30:00.000Z",
        ],
    );
    let suspended = Held { reason: HoldReason::Suspended, since: at(7) };
    let held = record(None).hold(&writer("h", at(7)), suspended).unwrap().into_after();
    let told = "  for you      mend acme-accounting; the next probe lifts it (waybill destinations show acme-accounting)";
    check(&held, &[], &[told]);
    // Its run may go on again, or have finished: a resume of it would be refused.
    for (deadline, resume) in
        [(None, "when it may go"), (Some(at(9_000_000)), "in time: its deadline is 2026-01-01T02:30:00.000Z")]
    {
        let stopped = Held { reason: HoldReason::RunStopped, since: at(7) };
        let held = record(deadline).hold(&writer("h", at(7)), stopped).unwrap().into_after();
        let told = format!(
            "  for you      where its run is stopped still (waybill redrive status), resume it {resume}; \
             where it goes on or has finished, this goes by itself when there is room"
        );
        check(&held, &[], &[&told]);
    }
}
