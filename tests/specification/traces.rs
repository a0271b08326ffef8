//! W3C trace context: what is taken, what is ignored, and what each attempt writes.

use std::collections::BTreeSet;

use waybill_domain::envelope::{Decoded, WakeUp, decode};
use waybill_domain::identity::AttemptNumber;
use waybill_domain::trace::{MOST_STATE_BYTES, TraceContext, TraceParent};

use crate::build::{delivery, pending};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_traceparent_is_taken_or_ignored_as_the_recommendation_says() {
    // What comes, and as what it is kept: version 00, with the flags that it knows.
    let rows: [(&str, Option<&str>); 25] = [
        (PARENT, Some(PARENT)),
        (
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
            Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"),
        ),
        (
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff",
            Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"),
        ),
        // A later version: its beginning is read, whatever follows behind a hyphen.
        ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Some(PARENT)),
        ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes", Some(PARENT)),
        ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.what", None),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", None),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-", None),
        ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        // IDs of nothing.
        ("00-00000000000000000000000000000000-b7ad6b7169203331-01", None),
        ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", None),
        // Case, digits, lengths, separators.
        ("00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        ("00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01", None),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x", None),
        ("0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        ("000-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1", None),
        ("00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01", None),
        ("00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01", None),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", None),
        (" 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        (
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01,00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            None,
        ),
        ("00-0af7651916cd43dd8448eb211c8031é-b7ad6b7169203331-01", None),
        ("+0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        ("", None),
        ("-------------------------------------------------------", None),
    ];
    for (text, kept) in rows {
        let read = TraceContext::read(Some(text), None);
        assert_eq!(read.map(|read| read.parent.to_string()).as_deref(), kept, "{text:?}");
    }
    assert_eq!(TraceContext::read(None, Some("a=1")), None, "no trace without a parent");
}

/// Every prefix, every change of one byte and every insertion: nothing panics, and what is taken is legible.
#[test]
fn no_spoilt_traceparent_is_taken_for_another_form() {
    let (mut taken, mut ignored) = (0, 0);
    let mut check = |text: &str| match TraceParent::parse(text) {
        Ok(parent) => {
            taken += 1;
            assert_eq!(TraceParent::parse(&parent.to_string()), Ok(parent), "{text:?}");
        }
        Err(fault) => {
            ignored += 1;
            assert!(!fault.to_string().contains("b7ad"), "the fault repeats nothing");
        }
    };
    for at in 0..=PARENT.len() {
        check(&PARENT[..at]);
        for byte in 0..=0x7f_u8 {
            let spoilt = [&PARENT[..at], &char::from(byte).to_string()];
            check(&(spoilt.concat() + PARENT.get(at + 1..).unwrap_or_default()));
            check(&(spoilt.concat() + &PARENT[at..]));
        }
    }
    // A digit for a digit stays a traceparent; all else is none.
    assert!(taken > 700 && ignored > 12_000, "{taken} taken, {ignored} ignored");
}

#[test]
fn a_tracestate_is_kept_as_it_came_or_left_out() {
    let long = |key: &str, bytes: usize| format!("{key}={}", "v".repeat(bytes - key.len() - 1));
    let many = |count: usize| (0..count).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
    let (key_256, key_257) = ("k".repeat(256), "k".repeat(257));
    let rows: [(String, Option<String>); 29] = [
        ("congo=t61rcWkgMzE".into(), Some("congo=t61rcWkgMzE".into())),
        (
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE".into(),
            Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE".into()),
        ),
        ("a=1 ,\t b=2,".into(), Some("a=1,b=2".into())),
        (
            "fw529a3039@dt=FfD_,1a-2f@foo=bar,a/b_c-d*e=f".into(),
            Some("fw529a3039@dt=FfD_,1a-2f@foo=bar,a/b_c-d*e=f".into()),
        ),
        ("a=b c".into(), Some("a=b c".into())),
        (format!("{key_256}=v"), Some(format!("{key_256}=v"))),
        ("".into(), None),
        (" , ,".into(), None),
        ("a".into(), None),
        ("a=".into(), None),
        ("=1".into(), None),
        ("a=1=2".into(), None),
        ("A=1".into(), None),
        ("a b=1".into(), None),
        ("@a=1".into(), None),
        ("ä=1".into(), None),
        ("a=ä".into(), None),
        ("a=\u{7f}".into(), None),
        ("a=1,a=2".into(), None),
        ("a=1,b".into(), None),
        (format!("{key_257}=v"), None),
        (many(32), Some(many(32))),
        (many(33), None),
        // Too long for what is kept: long members go first, then those at the end.
        (
            format!("{},{},z=1", long("a", 100), long("b", 200)),
            Some(format!("{},{},z=1", long("a", 100), long("b", 200))),
        ),
        (
            format!("a=1,{},{},z=1", long("b", 250), long("c", 255)),
            Some(
                format!("a=1,{},{},z=1", long("b", 250), long("c", 255))[..]
                    .replace(&format!(",{}", long("c", 255)), ""),
            ),
        ),
        // To the byte: 512 are kept, and a member is long from 129 on.
        (
            format!("{},{}", long("a", 255), long("b", 256)),
            Some(format!("{},{}", long("a", 255), long("b", 256))),
        ),
        (format!("{},{}", long("a", 256), long("b", 256)), Some(long("a", 256))),
        (
            [long("a", 129), long("b", 128), long("c", 128), long("d", 128)].join(","),
            Some([long("b", 128), long("c", 128), long("d", 128)].join(",")),
        ),
        (
            (0..8).map(|n| long(&format!("k{n}"), 100)).collect::<Vec<_>>().join(","),
            Some((0..5).map(|n| long(&format!("k{n}"), 100)).collect::<Vec<_>>().join(",")),
        ),
    ];
    for (text, kept) in rows {
        let read = TraceContext::read(Some(PARENT), Some(&text)).expect("the parent is valid");
        assert_eq!(read.parent.to_string(), PARENT, "{text:?}");
        assert_eq!(read.state, kept, "{text:?}");
        assert!(read.state.is_none_or(|state| state.len() <= MOST_STATE_BYTES), "{text:?}");
    }
}

#[test]
fn each_attempt_has_a_span_of_its_own_and_the_same_one_each_time() {
    let parent = TraceParent::parse(PARENT).unwrap();
    let (id, mut spans) = (delivery(None).id, BTreeSet::from([PARENT.to_owned()]));
    for n in 0..20 {
        let attempt = AttemptNumber::after(n);
        let child = parent.of_attempt(&id, attempt);
        assert_eq!(child, parent.of_attempt(&id, attempt));
        assert_eq!((child.trace_id(), child.to_string().len()), (parent.trace_id(), PARENT.len()));
        assert!(child.to_string().ends_with("-01"), "the producer's decision to sample stays");
        assert!(spans.insert(child.to_string()), "attempt {attempt}");
    }
    // The derivation is fixed: two versions at work side by side write one span.
    assert_eq!(
        parent.of_attempt(&id, AttemptNumber::FIRST).to_string(),
        "00-0af7651916cd43dd8448eb211c80319c-094b9e5a0b78204e-01"
    );
}

#[test]
fn a_message_carries_the_parent_and_a_reader_that_does_not_know_it_reads_on() {
    let mut traced = delivery(None);
    traced.trace = TraceContext::read(Some(PARENT), Some("a=1"));
    let record = waybill_domain::delivery::Record::new(
        traced,
        &crate::build::policy(7),
        crate::build::revision(),
        &crate::build::look(),
    );
    let wakeup = WakeUp::for_next_attempt(&record);
    let body = wakeup.encode();
    assert!(body.contains(&format!(r#""traceparent":"{PARENT}""#)) && !body.contains("a=1"), "{body}");
    assert_eq!(decode(&body), Decoded::WakeUp(wakeup));

    // What a reader does not know, or cannot read, is as if it were not there.
    let plain = WakeUp::for_next_attempt(&pending(None));
    for odd in [
        r#""something_new":{"a":[1]}"#,
        r#""traceparent":"01-of-the-future""#,
        r#""traceparent":null"#,
        r#""traceparent":7"#,
    ] {
        let body = plain.encode().replacen('{', &format!("{{{odd},"), 1);
        assert_eq!(decode(&body), Decoded::WakeUp(plain.clone()), "{body}");
    }
}
