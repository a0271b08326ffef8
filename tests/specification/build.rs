//! Records and configurations for tables, built through the domain's own constructors.

use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::attempt::{Phase, RetryAfter, SendReport};
use waybill_domain::delivery::{Delivery, PayloadFacts, Record};
use waybill_domain::destination::{Destination, EventPattern, OnAmbiguous, SecretRef};
use waybill_domain::identity::{
    ConfigRevision, DeliveryId, DestinationName, EventId, EventType, MessageId, TenantId, WriteToken,
};
use waybill_domain::outcome::{Outcome, Seen, classify};
use waybill_domain::policy::{Policy, PolicyTerms};
use waybill_domain::repair::LookRules;
use waybill_domain::settle::Terms;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_domain::transition::Writer;

/// 2026-01-01T00:00:00Z.
pub(crate) const T0: TimeMs = TimeMs::from_unix_ms(1_767_225_600_000);

pub(crate) fn at(seconds: u64) -> TimeMs {
    T0.plus(DurationMs::from_secs(seconds))
}

pub(crate) fn secs(seconds: u64) -> DurationMs {
    DurationMs::from_secs(seconds)
}

pub(crate) fn look() -> LookRules {
    LookRules { queue_window: secs(900), stale_after: secs(300), rescue_window: secs(600) }
}

pub(crate) fn revision() -> ConfigRevision {
    ConfigRevision::parse("r1").unwrap()
}

pub(crate) fn delivery(deadline: Option<TimeMs>) -> Delivery {
    let tenant = TenantId::parse("acme").unwrap();
    let event_id = EventId::parse("evt_pay_7319").unwrap();
    let destination = DestinationName::parse("acme-accounting").unwrap();
    Delivery {
        id: DeliveryId::derive(&tenant, &event_id, &destination),
        tenant,
        event_id,
        event_type: EventType::parse("lease.payment_recorded").unwrap(),
        destination,
        scope: None,
        payload: PayloadFacts {
            sha256: "00".into(),
            length: 2,
            content_type: "application/json".into(),
            version: None,
        },
        first_queued_at: T0,
        not_before: None,
        deadline,
        trace: None,
        policy: None,
        newer: Default::default(),
    }
}

pub(crate) fn policy(max_attempts: u32) -> Policy {
    Policy::new(PolicyTerms { max_attempts, ..PolicyTerms::default() }).unwrap()
}

pub(crate) fn pending(deadline: Option<TimeMs>) -> Record {
    Record::new(delivery(deadline), &policy(7), revision(), &look())
}

pub(crate) fn destination() -> Destination {
    Destination {
        name: DestinationName::parse("acme-accounting").unwrap(),
        tenants: vec![TenantId::parse("acme").unwrap()],
        owner: None,
        url: RecipientUrl::parse("url", "https://hooks.example.com/in", Locality::PublicOnly).unwrap(),
        secrets: vec![SecretRef::parse("secrets", "env:S").unwrap()],
        headers: Vec::new(),
        event_types: vec![EventPattern::parse("lease.*").unwrap()],
        policy: policy(7),
        timeout: secs(15),
        budget: None,
        suspension: None,
        on_ambiguous: OnAmbiguous::Retry,
        status_url: None,
        statuses: Default::default(),
        keep_result: false,
    }
}

pub(crate) fn terms(on_ambiguous: OnAmbiguous) -> Terms {
    let policy = policy(7);
    Terms { policy, on_ambiguous, keep_result: false, fingerprint: None, look: look(), is_probe: false }
}

pub(crate) fn message(id: &str) -> MessageId {
    MessageId::parse(id).unwrap()
}

pub(crate) fn token(text: &str) -> WriteToken {
    WriteToken::parse(text).unwrap()
}

pub(crate) fn by(message_id: &str, token_text: &str, now: TimeMs) -> Writer {
    Writer { message_id: Some(message(message_id)), token: token(token_text), now }
}

/// The record with attempt n claimed at `now` by the copy `m1` under the token `t1`.
pub(crate) fn claimed(record: &Record, now: TimeMs) -> Record {
    record.claim(message("m1"), token("t1"), now, secs(15), revision()).unwrap().into_after()
}

pub(crate) fn report(seen: Seen, retry_after: Option<u64>, now: TimeMs) -> SendReport {
    SendReport {
        outcome: classify(seen, &Default::default()),
        phase: Phase::Answer,
        status: match seen {
            Seen::Status(status) => Some(status),
            _ => None,
        },
        retry_after: retry_after
            .map(|seconds| RetryAfter { received: seconds.to_string(), wait: Some(secs(seconds)) }),
        excerpt: None,
        note: String::new(),
        started_at: now,
        ended_at: now,
    }
}

pub(crate) fn delivered() -> SendReport {
    let report = report(Seen::Status(200), None, T0);
    assert_eq!(report.outcome, Outcome::Delivered);
    report
}
