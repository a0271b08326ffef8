//! The audit's books: what an entry says, how it is chained, and how it shows that somebody was at one.

use serde_json::json;
use waybill_domain::audit::{Act, Draft, Entry, Fault, NOTHING_BEFORE, Verification, who, why};
use waybill_domain::authority::Book;
use waybill_domain::identity::TenantId;

use crate::build::at;
use crate::names;

fn book() -> Book {
    Book::Tenant(TenantId::parse("acme").unwrap())
}

fn draft(n: u64) -> Draft {
    Draft {
        book: book(),
        at: at(n),
        who: "maria".to_owned(),
        act: Act::Closed,
        subject: format!("whd_{n}"),
        why: Some("written off".to_owned()),
        details: json!({ "z": 1, "a": { "y": 1.5, "b": ["x"] } }),
    }
}

fn entered(count: u64) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for n in 0..count {
        entries.push(Entry::after(entries.last(), draft(n), &n.to_string()));
    }
    entries
}

/// What is found of a book with this head.
fn found(entries: &[Entry], head: Option<&Entry>) -> Vec<(u64, Fault)> {
    let mut verification = Verification::of(book());
    entries.iter().for_each(|entry| verification.read(entry));
    let broken = verification.finish(head);
    assert!(broken.iter().all(|broken| broken.book == book()));
    broken.into_iter().map(|broken| (broken.seq, broken.fault)).collect()
}

#[test]
fn each_entry_has_its_place_behind_the_one_before_it() {
    let entries = entered(3);
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(entries[0].previous, NOTHING_BEFORE);
    assert!(entries.windows(2).all(|pair| pair[1].previous == pair[0].hash && pair[0].id < pair[1].id));
    // The derivation is fixed: whoever keeps a book verifies it with every version.
    assert_eq!(entries[0].hash, "87d0e60c70badd72b1714062a077ec91456ff7c598fdc4a96901685214a2b299");
}

/// The entry of a place as it would be if it had said something else from the beginning.
fn written_anew(entries: &[Entry], place: usize) -> Entry {
    let other = Draft { why: Some("mended".to_owned()), ..draft(place as u64) };
    Entry::after(entries.get(place - 1), other, "chance")
}

#[test]
fn what_was_done_to_a_book_shows() {
    type Tamper = fn(&mut Vec<Entry>);
    type Found = &'static [(u64, Fault)];
    let table: [(&str, Tamper, Found); 12] = [
        ("nothing", |_| {}, &[]),
        ("another reason", |e| e[1].why = Some("mended".to_owned()), &[(2, Fault::Altered)]),
        ("another person", |e| e[0].who = "otto".to_owned(), &[(1, Fault::Altered)]),
        ("another count", |e| e[2].details = json!({}), &[(3, Fault::Altered)]),
        ("one is missing", |e| drop(e.remove(1)), &[(2, Fault::Missing)]),
        ("two are missing", |e| drop(e.drain(1..3)), &[(2, Fault::Missing)]),
        ("the first is missing", |e| drop(e.remove(0)), &[(1, Fault::Missing)]),
        ("the last are missing", |e| e.truncate(2), &[(2, Fault::CutOff)]),
        ("all are missing", |e| e.clear(), &[(0, Fault::CutOff)]),
        ("one stands there twice", |e| e.insert(1, e[0].clone()), &[(2, Fault::Missing)]),
        (
            "one was written anew, with a hash of its own",
            |e| e[1] = written_anew(e, 1),
            &[(3, Fault::NotChained)],
        ),
        (
            "the last was written anew, with a hash of its own",
            |e| e[3] = written_anew(e, 3),
            &[(4, Fault::HeadMoved)],
        ),
    ];
    let entries = entered(4);
    for (name, tamper, expected) in table {
        let mut tampered = entries.clone();
        tamper(&mut tampered);
        assert_eq!(found(&tampered, entries.last()), expected, "{name}");
    }
}

#[test]
fn what_was_done_to_a_book_s_head_shows() {
    let entries = entered(4);
    let altered = Entry { why: Some("mended".to_owned()), ..entries[3].clone() };
    let table = [
        ("the last", &entries[..], entries.last(), vec![]),
        ("none, of no entries", &[], None, vec![]),
        ("missing", &entries[..], None, vec![(4, Fault::HeadMoved)]),
        ("another than the last", &entries[..], Some(&entries[2]), vec![(4, Fault::HeadMoved)]),
        ("altered", &entries[..], Some(&altered), vec![(4, Fault::Altered)]),
        ("behind what is there", &entries[..3], entries.last(), vec![(3, Fault::CutOff)]),
    ];
    for (name, entries, head, expected) in table {
        assert_eq!(found(entries, head), expected, "{name}");
    }
}

#[test]
fn every_act_has_somebody_and_a_reason() {
    let (longest_why, longest_who) = ("x".repeat(1000), "x".repeat(256));
    for text in ["", "  ", "a\nb", "a\u{7}", &format!("{longest_why}x")] {
        assert_eq!(why(text).unwrap_err().field, "why", "{text:?}");
    }
    for text in ["", " ", "a\tb", "automation", " Automation ", &format!("{longest_who}x")] {
        assert_eq!(who(text).unwrap_err().field, "operator", "{text:?}");
    }
    for (text, taken) in
        [(" INC-12: secret rotated ", "INC-12: secret rotated"), (&longest_why, &longest_why)]
    {
        assert_eq!(why(text).as_deref(), Ok(taken));
    }
    for (text, taken) in
        [("maria ", "maria"), ("automation-team", "automation-team"), (&longest_who, &longest_who)]
    {
        assert_eq!(who(text).as_deref(), Ok(taken));
    }
}

#[test]
fn acts_and_faults_are_called_as_they_ever_were() {
    use Act as A;
    let acts = [
        A::RedriveStarted,
        A::RedriveStopped,
        A::RedriveResumed,
        A::RedriveHalted,
        A::HoldAdded,
        A::HoldLifted,
        A::Suspended,
        A::SuspensionLifted,
        A::ConfigApplied,
        A::ConfigRolledBack,
        A::Closed,
        A::Resolved,
        A::NothingEnded,
        A::Refused,
    ];
    let expected = [
        "redrive_started",
        "redrive_stopped",
        "redrive_resumed",
        "redrive_halted",
        "hold_added",
        "hold_lifted",
        "suspended",
        "suspension_lifted",
        "config_applied",
        "config_rolled_back",
        "closed",
        "resolved",
        "nothing_ended",
        "refused",
    ];
    names::check(&acts, Act::as_str, &expected);
    assert_eq!(format!("{:>8}", A::Closed), "  closed", "a column pads it");
    let faults = [
        (Fault::Missing, "this entry is missing"),
        (Fault::Altered, "this entry was altered"),
        (Fault::NotChained, "this entry does not follow the one before it"),
        (Fault::CutOff, "the entries after this one are missing"),
        (Fault::HeadMoved, "the book's head does not stand at its last entry"),
    ];
    for (fault, text) in faults {
        assert_eq!(fault.as_str(), text);
    }
}
