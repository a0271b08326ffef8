//! Acts: the change of an order and its audit entry, both or neither, each book one chain.

use waybill_domain::audit::{Entry, NOTHING_BEFORE, Verification};
use waybill_domain::authority::Book;
use waybill_service::office::{Entered, Office};

use super::desk::*;

/// A book that nobody wrote in is empty, and none of the books.
pub async fn a_book_that_nobody_wrote_in_is_empty<O: Office>(office: O) {
    enter(&office, draft(book("other"), "x"), None).await;
    assert_eq!(office.head(&book("acme")).await.expect("an answer"), None);
    assert_eq!(all_entries(&office, &book("acme")).await, []);
    assert_eq!(office.books().await.expect("an answer"), [book("other")]);
}

/// What was entered comes back, equal in every field.
pub async fn an_entry_comes_back_equal<O: Office>(office: O) {
    let first = enter(&office, draft(book("acme"), "hld_1"), None).await;
    assert_eq!((first.seq, first.previous.as_str()), (1, NOTHING_BEFORE));
    let second = enter(&office, bare_draft(book("acme")), None).await;
    assert_eq!((second.seq, &second.previous), (2, &first.hash));
    assert_eq!(office.head(&book("acme")).await.expect("an answer"), Some(second.clone()));
    assert_eq!(all_entries(&office, &book("acme")).await, [first, second]);
}

/// An act that landed is its entry and the change of its order.
pub async fn an_act_is_its_entry_and_its_change<O: Office>(office: O) {
    let change = new_hold("acme", 1);
    let entry = enter(&office, draft(book("acme"), change.after.id.as_str()), Some(&change)).await;
    let id = &change.after.id;
    assert_eq!(office.order(&book("acme"), id).await.expect("an answer").as_ref(), Some(&change.after));
    assert_eq!(all_entries(&office, &book("acme")).await, [entry]);
    let lifting = lifted(&change.after, 2);
    enter(&office, draft(book("acme"), id.as_str()), Some(&lifting)).await;
    assert_eq!(office.order(&book("acme"), id).await.expect("an answer"), Some(lifting.after));
    assert_eq!(all_entries(&office, &book("acme")).await.len(), 2);
}

/// An entry that does not follow the head is not entered, and its change is not made.
pub async fn where_the_head_moved_neither_stands<O: Office>(office: O) {
    let acme = book("acme");
    let first = next_entry(&office, draft(acme.clone(), "first")).await;
    let beside_first = Entry::after(None, draft(acme.clone(), "beside"), "another chance");
    let too_early = Entry::after(Some(&first), draft(acme.clone(), "second"), "chance");
    let change = new_hold("acme", 1);
    let refused = async |entry: &Entry, name: &str| {
        let entered = office.enter(entry, Some(&change)).await.expect("an answer");
        assert_eq!(entered, Entered::HeadMoved, "{name}");
        assert_eq!(office.order(&acme, &change.after.id).await.expect("an answer"), None, "{name}");
    };
    refused(&too_early, "a second entry of an empty book").await;
    assert_eq!(office.enter(&first, None).await.expect("an answer"), Entered::Landed);
    refused(&first, "the head itself again").await;
    refused(&beside_first, "another first entry").await;
    refused(&Entry::after(Some(&too_early), draft(acme.clone(), "third"), "chance"), "a gap").await;
    let beside_second = Entry::after(Some(&beside_first), draft(acme.clone(), "second"), "chance");
    refused(&beside_second, "the right place after another entry").await;
    assert_eq!(all_entries(&office, &acme).await, [first]);
}

/// The change of an order that is another than expected is not made, and its entry is not entered.
pub async fn where_the_order_was_overtaken_neither_stands<O: Office>(office: O) {
    let acme = book("acme");
    let placed = ordered(&office, new_hold("acme", 1)).await;
    let stored = ordered(&office, lifted(&placed, 2)).await;
    let before = all_entries(&office, &acme).await;
    let mut ahead = lifted(&stored, 3);
    ahead.expected = Some(7);
    let absent = new_hold("acme", 9).after;
    let cases = [
        ("made again", new_hold("acme", 1), Some(stored.clone())),
        ("changed once more from its first version", lifted(&placed, 3), Some(stored.clone())),
        ("changed from a version that it never had", ahead, Some(stored)),
        ("changed, but absent", lifted(&absent, 3), None),
    ];
    for (name, change, stored) in cases {
        let entry = next_entry(&office, draft(acme.clone(), "too late")).await;
        let entered = office.enter(&entry, Some(&change)).await.expect("an answer");
        assert_eq!(entered, Entered::Overtaken, "{name}");
        assert_eq!(office.order(&acme, &change.after.id).await.expect("an answer"), stored, "{name}");
        assert_eq!(all_entries(&office, &acme).await, before, "{name}");
    }
}

/// An act that came too late in both ways must not be tried again on a newer head.
pub async fn overtaken_counts_before_a_moved_head<O: Office>(office: O) {
    let placed = ordered(&office, new_hold("acme", 1)).await;
    let stale = next_entry(&office, draft(book("acme"), "lifted twice")).await;
    ordered(&office, lifted(&placed, 2)).await;
    let entered = office.enter(&stale, Some(&lifted(&placed, 3))).await.expect("an answer");
    assert_eq!(entered, Entered::Overtaken);
}

/// Many act at once in one book: each act lands once, in one chain without gaps.
pub async fn concurrent_acts_leave_one_chain_without_gaps<O: Office>(office: O) {
    const ACTORS: u64 = 8;
    const ACTS: u64 = 3;
    let acme = book("acme");
    let act = async |actor: u64, nth: u64| {
        let change = new_hold("acme", 1 + actor * ACTS + nth);
        let subject = change.after.id.as_str();
        for _ in 0..1000 {
            let entry = next_entry(&office, draft(acme.clone(), subject)).await;
            match office.enter(&entry, Some(&change)).await.expect("an answer") {
                Entered::Landed => return,
                Entered::HeadMoved => {}
                Entered::Overtaken => panic!("{subject} is nobody else's"),
            }
        }
        panic!("{subject} never got its turn");
    };
    let actors = (0..ACTORS).map(async |actor| {
        for nth in 0..ACTS {
            act(actor, nth).await;
        }
    });
    futures::future::join_all(actors).await;

    let entries = all_entries(&office, &acme).await;
    let head = office.head(&acme).await.expect("an answer");
    assert_eq!(entries.last(), head.as_ref());
    let mut chain = Verification::of(acme.clone());
    entries.iter().for_each(|entry| chain.read(entry));
    assert_eq!(chain.finish(head.as_ref()), []);
    let mut subjects: Vec<&str> = entries.iter().map(|entry| entry.subject.as_str()).collect();
    subjects.sort_unstable();
    subjects.dedup();
    assert_eq!(subjects.len() as u64, ACTORS * ACTS, "each act has one entry");
    assert_eq!(entries.len(), subjects.len());
    let orders = all_pages(async |from| office.orders(Some(&acme), 7, from).await).await;
    assert_eq!(orders.len(), entries.len(), "each act made its change");
}

/// Of many who change one order at once, one lands; the others leave no entry.
pub async fn of_concurrent_changes_of_one_order_one_lands<O: Office>(office: O) {
    let placed = ordered(&office, new_hold("acme", 1)).await;
    let lift = async |at: u64| {
        let change = lifted(&placed, at);
        loop {
            let entry = next_entry(&office, draft(book("acme"), "lift")).await;
            match office.enter(&entry, Some(&change)).await.expect("an answer") {
                Entered::HeadMoved => {}
                Entered::Landed => return Some(change.after),
                Entered::Overtaken => return None,
            }
        }
    };
    let lifts = futures::future::join_all((2..10).map(lift)).await;
    let landed: Vec<_> = lifts.into_iter().flatten().collect();
    assert_eq!(landed.len(), 1, "{landed:?}");
    let stored = office.order(&book("acme"), &placed.id).await.expect("an answer");
    assert_eq!(stored.as_ref(), landed.first());
    assert_eq!(all_entries(&office, &book("acme")).await.len(), 2);
}

/// Each book is a chain of its own, and the books are told in their order: `*` last.
pub async fn books_are_chained_apart<O: Office>(office: O) {
    for book in [Book::Across, book("northwind"), book("acme")] {
        let entry = enter(&office, draft(book.clone(), "first"), None).await;
        assert_eq!((entry.seq, entry.previous.as_str()), (1, NOTHING_BEFORE), "{book}");
        assert_eq!(all_entries(&office, &book).await, [entry], "{book}");
    }
    let books = office.books().await.expect("an answer");
    assert_eq!(books, [book("acme"), book("northwind"), Book::Across]);
}

/// Entries are read in their order, page by page, also beyond nine.
pub async fn entries_are_paged_in_their_order<O: Office>(office: O) {
    let mut entered = Vec::new();
    for n in 0..12 {
        entered.push(enter(&office, draft(book("acme"), &format!("act {n}")), None).await);
        enter(&office, draft(Book::Across, "of another book"), None).await;
    }
    let first = office.entries(&book("acme"), 5, None).await.expect("an answer");
    assert!(first.items.len() <= 5 && first.next.is_some(), "{first:?}");
    assert_eq!(all_entries(&office, &book("acme")).await, entered);
}
