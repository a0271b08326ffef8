//! The audit: chained, so that whatever is missing or altered shows.

use serde_json::json;
use waybill_domain::audit::{Act, Draft, Entry, Fault, Verification};
use waybill_domain::authority::Book;
use waybill_service::office::Office as _;

use crate::world::{World, book};

fn entered(world: &World, count: usize) -> Vec<Entry> {
    for n in 0..count {
        let draft = Draft {
            book: book("acme"),
            at: waybill_service::ports::Clock::now(&world.clock),
            who: "maria".to_owned(),
            act: Act::Closed,
            subject: format!("whd_{n}"),
            why: Some("written off".to_owned()),
            details: json!({ "z": 1, "a": { "y": 1.5, "b": ["x"] } }),
        };
        assert!(world.block(world.desk().enter(draft, None)).unwrap());
    }
    world.block(world.office.entries(&book("acme"), 100, None)).unwrap().items
}

fn verify(entries: &[Entry], head: Option<&Entry>) -> Vec<(u64, Fault)> {
    let mut verification = Verification::of(book("acme"));
    entries.iter().for_each(|entry| verification.read(entry));
    verification.finish(head).into_iter().map(|broken| (broken.seq, broken.fault)).collect()
}

#[test]
fn an_untouched_book_verifies_whatever_order_its_keys_are_stored_in() {
    let world = World::new();
    let entries = entered(&world, 4);
    assert_eq!(verify(&entries, entries.last()), []);
    assert_eq!(verify(&[], None), []);
    let text = serde_json::to_string(&entries[1]).unwrap();
    let turned = text.replace(
        r#""details":{"a":{"b":["x"],"y":1.5},"z":1}"#,
        r#""details":{"z":1,"a":{"y":1.5,"b":["x"]}}"#,
    );
    assert_ne!(turned, text);
    let mut read_back = entries.clone();
    read_back[1] = serde_json::from_str(&turned).unwrap();
    assert_eq!(verify(&read_back, entries.last()), []);
}

#[test]
fn what_stands_behind_a_book_s_head_shows() {
    let world = World::new();
    let entries = entered(&world, 4);
    let forged = entered(&world, 1);
    assert_eq!(verify(&forged, entries.last()), [(5, Fault::HeadMoved)]);
}

#[test]
fn books_are_chained_apart() {
    let world = World::new();
    entered(&world, 2);
    let hold = waybill_domain::hold::HoldRule::All;
    world.block(world.desk().place(Book::Across, hold, "otto", "bad deployment")).unwrap();
    assert_eq!(world.block(world.office.books()).unwrap(), [book("acme"), Book::Across]);
    assert_eq!(world.acts(&Book::Across), ["hold_added by otto"]);
    assert_eq!(world.acts(&book("acme")).len(), 2);
}
