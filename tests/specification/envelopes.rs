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
use waybill_domain::trace::TraceContext;

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

/// Where something is wrong, and of what kind it is.
#[test]
fn what_is_no_envelope_is_told_with_its_place() {
    let rows = [
        ("S3CRET", "not an envelope: not JSON, at line 1 column 1"),
        ("{\n\"waybill\":1,", "not an envelope: not JSON, at line 2 column 12"),
        ("[1]", "not an envelope: not a JSON object"),
        (
            r#"{"waybill":"S3CRET"}"#,
            "not an envelope: something is not what it should be, at line 1 column 19",
        ),
        (r#"{"waybill":0}"#, "there was never an envelope version 0"),
        (
            r#"{"waybill":1,"kind":"S3CRET"}"#,
            "not an envelope of version 1: something is not what it should be, at line 1 column 28",
        ),
    ];
    for (body, why) in rows {
        assert_eq!(decode(body), Decoded::Undecodable(why.to_owned()), "{body}");
    }
}

fn longest() -> Record {
    longest_but(&"🎉".repeat(32), 0)
}

/// The same with another scope, and after so many attempts more.
fn longest_but(scope: &str, attempts: u32) -> Record {
    let mut delivery = crate::build::delivery(Some(TimeMs::parse("t", "9999-12-30T20:00:00.999Z").unwrap()));
    delivery.tenant = TenantId::parse("t".repeat(64)).unwrap();
    delivery.destination = DestinationName::parse("d".repeat(64)).unwrap();
    delivery.event_type = EventType::parse("e".repeat(96)).unwrap();
    delivery.scope = Some(Scope::parse(scope).unwrap());
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    delivery.trace = TraceContext::read(Some(parent), None);
    let record = Record::new(delivery, &crate::build::policy(7), crate::build::revision(), &look());
    let report = report(Seen::Status(401), None, T0);
    let settled =
        settle(&claimed(&record, T0), &report, &terms(OnAmbiguous::Retry), &by("m1", "t1", T0), 0.5);
    let mut document = serde_json::to_value(settled.unwrap().change.after()).unwrap();
    document["attempts_made"] = (attempts + 1).into();
    serde_json::from_value(document).unwrap()
}

/// To the byte: the trace stays in a message of 1,023 bytes, and is left out of one that would have 1,024.
#[test]
fn a_trace_is_left_out_of_a_message_that_would_outgrow_its_1_kib() {
    let wake_up = |record: &Record| WakeUp::for_next_attempt(record).encode();
    let letter = |record: &Record| {
        DeadLetter::of(record, Ending::DeadLettered(record.dead_letter_reason().unwrap())).encode()
    };
    let (scope, bytes_of_trace) = ("🎉".repeat(28), r#""traceparent":"","#.len() + 55);
    let table = [
        ("a short dead letter", letter(&longest_but("prop_204", 0)), true, 692),
        ("a dead letter with just room", letter(&longest_but(&format!("{scope}abc"), 0)), true, 1023),
        ("a byte more", letter(&longest_but(&format!("{scope}abcd"), 0)), false, 1024 - bytes_of_trace),
        ("the longest wake-up for attempt 999", wake_up(&longest_but(&"🎉".repeat(32), 997)), true, 1023),
        (
            "the same for attempt 1,000",
            wake_up(&longest_but(&"🎉".repeat(32), 998)),
            false,
            1024 - bytes_of_trace,
        ),
    ];
    for (what, body, has_trace, length) in table {
        assert_eq!((body.contains("traceparent"), body.len()), (has_trace, length), "{what}");
    }
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
