//! The message body: versions, size and characters.

use crate::build::{T0, by, claimed, look, pending, report, terms};
use waybill_domain::delivery::Record;
use waybill_domain::destination::OnAmbiguous;
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::envelope::{DeadLetter, Decoded, WakeUp, decode};
use waybill_domain::identity::{DestinationName, EventType, Scope, TenantId};
use waybill_domain::outcome::Seen;
use waybill_domain::settle::settle;
use waybill_domain::time::TimeMs;

#[test]
fn a_message_reads_back_as_it_was_written() {
    let wakeup = WakeUp::for_next_attempt(&pending(Some(T0)));
    assert_eq!(decode(&wakeup.encode()), Decoded::WakeUp(wakeup));

    let ending = Ending::DeadLettered(DeadLetterReason::AttemptsExhausted);
    let dead = pending(None).end(&by("m1", "t1", T0), ending, &look()).unwrap().into_after();
    let letter = DeadLetter::of(&dead, ending);
    assert_eq!(letter.reason, "attempts_exhausted");
    assert_eq!(decode(&letter.encode()), Decoded::DeadLetter(letter));
}

/// A message of version 1 as it lies in queues: this text never changes.
const VERSION_1: &str = r#"{"waybill":1,"kind":"wake_up","delivery_id":"whd_HMC7MJWWZ5WV7Z60WTKDYCRD47","tenant":"acme","destination":"acme-accounting","type":"lease.payment_recorded","first_queued_at":"2026-01-01T00:00:00.000Z","attempt":1,"due_at":"2026-01-01T00:00:00.000Z"}"#;

#[test]
fn version_1_is_written_and_read_as_ever() {
    let wakeup = WakeUp::for_next_attempt(&pending(None));
    assert_eq!(wakeup.encode(), VERSION_1);
    assert_eq!(decode(VERSION_1), Decoded::WakeUp(wakeup));
}

#[test]
fn c35_bodies_are_told_apart_one_by_one() {
    let newer = VERSION_1.replace("\"waybill\":1", "\"waybill\":2");
    let of_the_future = r#"{"waybill":7,"kind":"of the future"}"#;
    // The version of a newer envelope, or nothing for what is no envelope at all.
    let rows = [
        ("not json", None),
        ("", None),
        ("{}", None),
        ("[1]", None),
        ("[2]", None),
        (r#"{"waybill":0}"#, None),
        (r#"{"waybill":1,"kind":"wake_up"}"#, None),
        (of_the_future, Some(7)),
        (&newer, Some(2)),
    ];
    for (body, version) in rows {
        match decode(body) {
            Decoded::Undecodable(_) => assert_eq!(version, None, "{body:?}"),
            Decoded::Newer(newer) => assert_eq!(version, Some(newer), "{body:?}"),
            decoded => panic!("{body:?} is {decoded:?}"),
        }
    }
}

/// What lies in the queue by mistake may be somebody's payload: the log names the place alone.
#[test]
fn what_is_no_envelope_is_told_without_repeating_any_of_it() {
    for body in [
        r#"{"waybill":"S3CRET"}"#,
        r#"{"waybill":1,"kind":"S3CRET\nS3CRET"}"#,
        &VERSION_1.replace("acme-accounting", "S3CRET acme"),
        &VERSION_1.replace("whd_HMC7MJWWZ5WV7Z60WTKDYCRD47", "S3CRET"),
        &VERSION_1.replace(r#""attempt":1"#, r#""attempt":"S3CRET""#),
        "S3CRET",
    ] {
        let Decoded::Undecodable(why) = decode(body) else { panic!("{body} is read") };
        assert!(!why.contains("S3CRET"), "{why}");
    }
    let Decoded::Undecodable(why) = decode(r#"{"waybill":1,"kind":"wake_up"}"#) else { panic!("it is read") };
    assert_eq!(why, "not an envelope of version 1: missing field `attempt`");
}

fn longest() -> Record {
    let mut delivery = crate::build::delivery(Some(TimeMs::parse("t", "9999-12-30T20:00:00.999Z").unwrap()));
    delivery.tenant = TenantId::parse("t".repeat(64)).unwrap();
    delivery.destination = DestinationName::parse("d".repeat(64)).unwrap();
    delivery.event_type = EventType::parse("e".repeat(96)).unwrap();
    delivery.scope = Some(Scope::parse("🎉".repeat(32)).unwrap());
    let record = Record::new(delivery, &crate::build::policy(7), crate::build::revision(), &look());
    let report = report(Seen::Status(401), None, T0);
    settle(&claimed(&record, T0), &report, &terms(OnAmbiguous::Retry), &by("m1", "t1", T0), 0.5)
        .unwrap()
        .change
        .into_after()
}

#[test]
fn c23_the_longest_message_is_ascii_and_under_1_kib() {
    let record = longest();
    let ending = Ending::DeadLettered(record.dead_letter_reason().unwrap());
    for body in [WakeUp::for_next_attempt(&record).encode(), DeadLetter::of(&record, ending).encode()] {
        assert!(body.len() < 1024, "{} bytes: {body}", body.len());
        assert!(body.bytes().all(|b| (0x20..0x7f).contains(&b)), "{body}");
        assert!(!matches!(decode(&body), Decoded::Undecodable(_)), "{body}");
    }
}

#[test]
fn c23_a_scope_that_sqs_would_refuse_survives_the_message() {
    for scope in ["\u{ffff}", "\u{fffe}", "a\u{2028}b", "✨🎉", "\"\\"] {
        let mut delivery = crate::build::delivery(None);
        delivery.scope = Some(Scope::parse(scope).unwrap());
        let record = Record::new(delivery, &crate::build::policy(7), crate::build::revision(), &look());
        let wakeup = WakeUp::for_next_attempt(&record);
        assert!(wakeup.encode().is_ascii());
        assert_eq!(decode(&wakeup.encode()), Decoded::WakeUp(wakeup), "{scope:?}");
    }
    assert!(Scope::parse("\u{7f}").is_err() && Scope::parse("\u{7}").is_err());
}
