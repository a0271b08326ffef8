//! Deliveries for the exam, and the steps that bring them where a check wants them.

use bytes::Bytes;
use waybill_domain::attempt::{Attempt, Delay, Excerpt, Next, Phase, RetryAfter, Witness};
use waybill_domain::delivery::{Change, Delivery, LastFailure, PayloadFacts, Record};
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::hold::{Held, HoldReason};
use waybill_domain::identity::{
    AttemptNumber, ConfigRevision, DeliveryId, DeliveryKey, DestinationName, EventId, EventType, MessageId,
    Scope, TenantId, WriteToken,
};
use waybill_domain::outcome::{Applied as Effect, Failure, FailureClass, Verdict};
use waybill_domain::policy::Policy;
use waybill_domain::repair::LookRules;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_domain::trace::TraceContext;
use waybill_domain::transition::{ClaimEnd, Writer};
use waybill_service::ports::{Applied, Created, Ledger};

/// When every delivery of the exam is first queued, if nothing else is said: 2026-01-01T00:00:00Z.
pub const T0: TimeMs = TimeMs::from_unix_ms(1_767_225_600_000);

/// The rules under which the exam's records are looked at: first at 300 s past due.
pub const LOOK: LookRules = LookRules {
    queue_window: DurationMs::from_secs(900),
    stale_after: DurationMs::from_secs(300),
    rescue_window: DurationMs::from_secs(600),
};

/// `T0` and so many seconds.
pub fn t(seconds: u64) -> TimeMs {
    T0.plus(DurationMs::from_secs(seconds))
}

/// The `traceparent` of every delivery here.
pub const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A delivery of `event` of `tenant` to `destination`, first queued at `T0`.
pub fn delivery(tenant: &str, event: &str, destination: &str) -> Delivery {
    let tenant = TenantId::parse(tenant).expect("a tenant");
    let event_id = EventId::parse(event).expect("an event ID");
    let destination = DestinationName::parse(destination).expect("a destination");
    Delivery {
        id: DeliveryId::derive(&tenant, &event_id, &destination),
        tenant,
        event_id,
        event_type: EventType::parse("lease.payment_recorded").expect("a type"),
        destination,
        scope: Some(Scope::parse("prop_204 / Žižkov 🏠").expect("a scope")),
        payload: PayloadFacts {
            sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".to_owned(),
            length: 0,
            content_type: "application/json".to_owned(),
            version: Some(3),
        },
        first_queued_at: T0,
        not_before: None,
        deadline: None,
        trace: TraceContext::read(Some(TRACEPARENT), Some("vendor=opaque,other=x")),
        policy: None,
        newer: Default::default(),
    }
}

/// A record of `delivery`, pending.
pub fn pending(delivery: Delivery) -> Record {
    Record::new(delivery, &Policy::default(), revision(), &LOOK)
}

/// The record of an event of tenant `acme` to destination `books`, pending.
pub fn pending_event(event: &str) -> Record {
    pending(delivery("acme", event, "books"))
}

/// The configuration's revision throughout.
pub fn revision() -> ConfigRevision {
    ConfigRevision::parse("cfg-7").expect("a revision")
}

/// A write token.
pub fn token(text: &str) -> WriteToken {
    WriteToken::parse(text).expect("a token")
}

/// Whoever writes with `token` at `now`, for the copy `msg`.
pub fn writer(name: &str, now: TimeMs) -> Writer {
    Writer { message_id: Some(message("msg")), token: token(name), now }
}

/// A message ID.
pub fn message(text: &str) -> MessageId {
    MessageId::parse(text).expect("a message ID")
}

/// A claim of the next attempt with this token at `now`.
pub fn claim(record: &Record, name: &str, now: TimeMs) -> Change {
    let timeout = DurationMs::from_secs(15);
    record.claim(message("msg"), token(name), now, timeout, revision()).expect("a claim")
}

/// The claimed attempt succeeded, with an answer that is kept.
pub fn delivered(claimed: &Record, name: &str, now: TimeMs) -> Change {
    let result = Excerpt { bytes: vec![0, 0xff, b'{'], full_length: 3, complete: true };
    claimed.settle_delivered(&writer(name, now), Some(result)).expect("a success")
}

/// The claimed attempt failed, and `next` follows.
pub fn failed(claimed: &Record, name: &str, now: TimeMs, next: &Next) -> Change {
    let attempt = claimed.claim.as_ref().expect("a claim").attempt;
    let failure = LastFailure {
        attempt,
        at: now,
        failure: failure(),
        status: Some(503),
        note: "503 with “Zürich” in it".to_owned(),
        destination: Some("0123456789abcdef".to_owned()),
    };
    claimed.settle_failed(&writer(name, now), ClaimEnd::Own, failure, next, &LOOK).expect("a failure")
}

/// Another attempt at `due_at`.
pub fn retry(due_at: TimeMs) -> Next {
    let delay = Delay {
        chosen: DurationMs::from_ms(700),
        jittered: DurationMs::from_ms(700),
        ceiling: DurationMs::from_secs(1),
        retry_after: None,
        moved_before_limit: false,
    };
    Next::Retry { due_at, delay }
}

/// A dead letter for `reason`, of a record that nobody is working on.
pub fn dead_lettered(record: &Record, reason: DeadLetterReason, now: TimeMs) -> Change {
    record.end(&writer("ends", now), Ending::DeadLettered(reason), &LOOK).expect("an end")
}

/// Held by a person's pause.
pub fn held(record: &Record, now: TimeMs) -> Change {
    let held = Held { reason: HoldReason::Paused, since: now };
    record.hold(&writer("holds", now), held).expect("a hold")
}

/// What the exam's failed attempts come to.
pub fn failure() -> Failure {
    Failure { verdict: Verdict::Retryable, class: FailureClass::Unavailable, applied: Effect::No }
}

/// Evidence of attempt `number`, by `witness`.
pub fn attempt(number: u32, witness: Witness, note: &str) -> Attempt {
    Attempt {
        number: AttemptNumber::after(number - 1),
        witness,
        token: token("tok"),
        started_at: t(1),
        ended_at: t(2),
        phase: Some(Phase::Answer),
        status: Some(503),
        failure: failure(),
        retry_after: Some(RetryAfter { received: "7".to_owned(), wait: Some(DurationMs::from_secs(7)) }),
        next: retry(t(9)),
        config_revision: revision(),
        excerpt: Some(Excerpt { bytes: vec![0, 1, 0xfe, 0xff], full_length: 40_000, complete: false }),
        note: note.to_owned(),
    }
}

/// Stores a new record with a small payload.
pub async fn store<L: Ledger>(ledger: &L, record: &Record) {
    let created = ledger.create(record, &Bytes::from_static(b"{}")).await.expect("the ledger answers");
    assert_eq!(created, Created::New, "{} was there already", record.delivery.key());
}

/// Applies a change that must land, and returns the record after it.
pub async fn land<L: Ledger>(ledger: &L, change: Change) -> Record {
    let applied = ledger.apply(&change).await.expect("the ledger answers");
    assert_eq!(applied, Applied::Landed, "a change of the stored version was refused");
    change.into_after()
}

/// Stores a record and makes one change to it.
pub async fn store_as<L: Ledger>(
    ledger: &L,
    record: &Record,
    change: impl FnOnce(&Record) -> Change,
) -> Record {
    store(ledger, record).await;
    land(ledger, change(record)).await
}

/// What is stored under the key.
pub async fn stored<L: Ledger>(ledger: &L, key: &DeliveryKey) -> Option<Record> {
    ledger.load(key).await.expect("the ledger answers")
}
