//! Orders, audit entries and configurations for the exam, and the steps that bring them into an office.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use waybill_domain::audit::{Act, Draft, Entry};
use waybill_domain::authority::Book;
use waybill_domain::destination::EventPattern;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{ConfigRevision, DestinationName, TenantId, ulid};
use waybill_domain::order::{
    CameTo, Decision, EndingOrder, Hold, Order, OrderBody, OrderChange, OrderId, Signed,
};
use waybill_domain::redrive::{InHand, Lane, ReleaseRate, Reviews, Run, Selection, Standing, Tally, Watched};
use waybill_service::office::{Entered, Former, Office, Revision, Revisions};
use waybill_service::ports::{Cursor, Page, PortResult};

use super::fixture::{pending_event, t};

/// A tenant's book.
pub fn book(tenant: &str) -> Book {
    Book::Tenant(TenantId::parse(tenant).expect("a tenant"))
}

/// Somebody's signature, so many seconds after the beginning.
pub fn signed(at: u64) -> Signed {
    Signed { by: "maria".to_owned(), at: t(at), why: "they asked for it: “Ž”".to_owned() }
}

/// The identifier of an order that was made so many seconds after the beginning.
pub fn order_id(prefix: &str, at: u64) -> OrderId {
    OrderId::parse(ulid(prefix, t(at), "chance")).expect("an order's ID")
}

/// An order as it is first written.
pub fn new_order(id: OrderId, book: Book, body: OrderBody) -> OrderChange {
    OrderChange { expected: None, after: Order { id, book, revision: 1, body } }
}

/// A hold on everything of a tenant, placed at second `at`.
pub fn new_hold(tenant: &str, at: u64) -> OrderChange {
    let rule = HoldRule::Tenant(TenantId::parse(tenant).expect("a tenant"));
    new_order(order_id("hld", at), book(tenant), hold(rule, at))
}

/// A hold by this rule, in force.
pub fn hold(rule: HoldRule, at: u64) -> OrderBody {
    OrderBody::Hold(Hold { rule, placed: signed(at), eased: None, lifted: None })
}

/// A hold that keeps back one version of a class of payloads.
pub fn quarantine(at: u64) -> OrderBody {
    let types = EventPattern::parse("lease.*").expect("a pattern");
    hold(HoldRule::Type { types, payload_version: Some(3), tenant: None }, at)
}

/// The same hold, lifted at second `at`.
pub fn lifted(order: &Order, at: u64) -> OrderChange {
    let OrderBody::Hold(hold) = order.body.clone() else { panic!("{order:?} is no hold") };
    order.becoming(OrderBody::Hold(Hold { lifted: Some(signed(at)), ..hold }))
}

/// An order to close a dead letter, not carried out.
pub fn closing(at: u64) -> OrderBody {
    let delivery = pending_event("evt").delivery.key();
    OrderBody::Ending(EndingOrder {
        delivery,
        ended_at: signed(at).at,
        decision: Decision::Close,
        signed: signed(at),
        came_to: None,
    })
}

/// The same order, carried out.
pub fn closed(order: &Order) -> OrderChange {
    let OrderBody::Ending(ending) = order.body.clone() else { panic!("{order:?} ends nothing") };
    order.becoming(OrderBody::Ending(EndingOrder { came_to: Some(CameTo::Done), ..ending }))
}

/// A run in the middle of its work, with every field in use.
pub fn run(standing: Standing, at: u64) -> OrderBody {
    let books = DestinationName::parse("books").expect("a destination");
    let delivery = pending_event("evt").delivery.key();
    let lane = Lane {
        from: Some("dead:[\"a\",1]".to_owned()),
        next_at: Some(t(at + 9)),
        done: false,
        pauses: serde_json::from_value(json!([{ "before": 1, "by": 2 }])).expect("a pause"),
    };
    OrderBody::Redrive(Box::new(Run {
        selection: Selection {
            tenant: Some(delivery.tenant.clone()),
            destination: Some(books.clone()),
            until: Some(t(at)),
            event_prefix: Some("lease_881:".to_owned()),
            ..Selection::default()
        },
        planned: 25_000,
        started: signed(at),
        rate: ReleaseRate::parse("rate", "20/s").expect("a rate"),
        sample: Some(10),
        not_before: Some(t(at + 5)),
        reviews: Reviews { permanent: Some("credentials corrected".to_owned()), ..Reviews::default() },
        standing,
        resumed_at: Some(t(at + 6)),
        lanes: BTreeMap::from([(books.clone(), lane)]),
        in_hand: vec![
            InHand { delivery: delivery.clone(), due_at: Some(t(at + 7)) },
            InHand { delivery: delivery.clone(), due_at: None },
        ],
        hand_of: Some(books),
        tally: Tally { released: 4, expired: 1, blocked: 2 },
        watched: vec![Watched { delivery, attempts_before: 7 }],
        outcomes: VecDeque::from([true, false]),
    }))
}

/// What an entry on `subject` will say.
pub fn draft(book: Book, subject: &str) -> Draft {
    Draft {
        book,
        at: t(1),
        who: "maria".to_owned(),
        act: Act::HoldAdded,
        subject: subject.to_owned(),
        why: Some("they asked for it: “Ž” 🏠".to_owned()),
        details: json!({ "rule": { "z": [1, 2.5, null], "a": "\u{2028}" }, "count": 25_000 }),
    }
}

/// What an entry with nothing to add will say.
pub fn bare_draft(book: Book) -> Draft {
    Draft { why: None, details: Value::Null, act: Act::Refused, ..draft(book, "redrive plan") }
}

/// The entry that follows the book's head now.
pub async fn next_entry<O: Office>(office: &O, draft: Draft) -> Entry {
    let head = office.head(&draft.book).await.expect("an answer");
    Entry::after(head.as_ref(), draft, "chance")
}

/// Enters an act that must land, and returns its entry.
pub async fn enter<O: Office>(office: &O, draft: Draft, change: Option<&OrderChange>) -> Entry {
    let entry = next_entry(office, draft).await;
    assert_eq!(office.enter(&entry, change).await.expect("an answer"), Entered::Landed);
    entry
}

/// Makes an order or changes one; it must land. Returns the order after it.
pub async fn ordered<O: Office>(office: &O, change: OrderChange) -> Order {
    let order = change.after.clone();
    enter(office, draft(order.book.clone(), order.id.as_str()), Some(&change)).await;
    order
}

/// Every entry of a book, by pages of two.
pub async fn all_entries<O: Office>(office: &O, book: &Book) -> Vec<Entry> {
    all_pages(async |from| office.entries(book, 2, from).await).await
}

/// Turns every page. A page may be short or empty while more follows.
pub async fn all_pages<T>(turn: impl AsyncFn(Option<&Cursor>) -> PortResult<Page<T>>) -> Vec<T> {
    let (mut found, mut from): (Vec<_>, Option<Cursor>) = (Vec::new(), None);
    for _ in 0..100 {
        let page = turn(from.as_ref()).await.expect("an answer");
        found.extend(page.items);
        from = page.next;
        if from.is_none() {
            return found;
        }
    }
    panic!("paging does not end");
}

/// A configuration of this name with this place in the history.
pub fn revision(number: u64, name: &str) -> Revision {
    let former = Former { event_id: "{window}".to_owned(), since: t(0), until: t(number) };
    Revision {
        number,
        revision: ConfigRevision::parse(name).expect("a revision"),
        signed: signed(number),
        schedules: BTreeMap::from([("nightly".to_owned(), t(number))]),
        former: BTreeMap::from([("nightly".to_owned(), vec![former])]),
    }
}

/// Puts a configuration in force; it must land.
pub async fn install<O: Office + Revisions>(office: &O, revision: &Revision, document: &str) -> Entry {
    let entry = next_entry(office, draft(Book::Across, revision.revision.as_str())).await;
    let installed = office.install(revision, document, &entry).await.expect("an answer");
    assert_eq!(installed, Entered::Landed);
    entry
}
