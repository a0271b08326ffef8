//! Orders: compared and set, listed while they are open, and listed for a person.

use waybill_domain::authority::Book;
use waybill_domain::hold::HoldRule;
use waybill_domain::order::Order;
use waybill_domain::redrive::Standing;
use waybill_service::office::Office;

use super::desk::*;
use super::fixture::t;

/// Orders of every kind come back, equal in every field.
pub async fn orders_of_every_kind_come_back_equal<O: Office>(office: O) {
    let bodies = [
        ("hld", hold(HoldRule::All, 1)),
        ("hld", quarantine(2)),
        ("rdr", run(Standing::Halted(signed(9)), 3)),
        ("end", closing(4)),
    ];
    for (n, (prefix, body)) in bodies.into_iter().enumerate() {
        let change = new_order(order_id(prefix, n as u64), book("acme"), body);
        let order = ordered(&office, change).await;
        assert_eq!(office.order(&order.book, &order.id).await.expect("an answer"), Some(order));
    }
    assert_eq!(office.order(&book("acme"), &order_id("hld", 99)).await.expect("an answer"), None);
}

/// One identifier in two books is two orders: nobody learns of another's.
pub async fn one_id_in_two_books_is_two_orders<O: Office>(office: O) {
    let of_acme = ordered(&office, new_hold("acme", 1)).await;
    let id = &of_acme.id;
    assert_eq!(office.order(&book("northwind"), id).await.expect("an answer"), None);
    let of_northwind = ordered(&office, new_hold("northwind", 1)).await;
    assert_eq!(&of_northwind.id, id);
    for order in [of_acme, of_northwind] {
        assert_eq!(office.order(&order.book, &order.id).await.expect("an answer"), Some(order));
    }
}

/// How far an order was carried out is a compare-and-set without an entry.
pub async fn progress_compares_and_is_no_act<O: Office>(office: O) {
    let order =
        ordered(&office, new_order(order_id("rdr", 1), book("acme"), run(Standing::Running, 1))).await;
    let before = office.head(&book("acme")).await.expect("an answer");
    let further = order.becoming(run(Standing::Sampled(t(2)), 1));
    assert!(office.progress(&further).await.expect("an answer"));
    assert!(!office.progress(&further).await.expect("an answer"), "the same again");
    let stale = order.becoming(run(Standing::Finished(t(3)), 1));
    assert!(!office.progress(&stale).await.expect("an answer"), "from a version that is gone");
    let absent = new_hold("acme", 9).after.becoming(run(Standing::Running, 9));
    assert!(!office.progress(&absent).await.expect("an answer"), "of an order that is not there");
    assert_eq!(office.order(&book("acme"), &order.id).await.expect("an answer"), Some(further.after));
    assert_eq!(office.order(&book("acme"), &absent.after.id).await.expect("an answer"), None);
    assert_eq!(office.head(&book("acme")).await.expect("an answer"), before);
}

/// Open orders are listed oldest first, whatever their kind and their book.
pub async fn open_orders_are_listed_oldest_first<O: Office>(office: O) {
    let third = ordered(&office, new_hold("acme", 30)).await;
    let first =
        ordered(&office, new_order(order_id("rdr", 10), book("northwind"), run(Standing::Running, 10)));
    let first = first.await;
    let fourth = ordered(&office, new_order(order_id("end", 40), book("acme"), closing(40))).await;
    let second = ordered(&office, new_order(order_id("hld", 20), Book::Across, quarantine(20))).await;
    let expected = [first, second, third, fourth];
    assert_eq!(open(&office, 100).await, expected);
    for limit in 1..4 {
        assert_eq!(open(&office, limit).await, expected, "by pages of {limit}");
    }
    for (of, nth) in [(book("acme"), vec![2, 3]), (book("northwind"), vec![0]), (Book::Across, vec![1])] {
        let its = office.open_orders_of(&of).await.expect("an answer");
        assert_eq!(its.len(), nth.len(), "{of}");
        assert!(nth.into_iter().all(|nth| its.contains(&expected[nth])), "{of}: {its:?}");
    }
}

/// What is done leaves the open orders; what is stopped, halted or sampled stays.
pub async fn what_is_done_leaves_the_open_orders<O: Office>(office: O) {
    let hold = ordered(&office, new_hold("acme", 1)).await;
    let ending = ordered(&office, new_order(order_id("end", 2), book("acme"), closing(2))).await;
    let mut expected = Vec::new();
    let standings = [
        Standing::Stopped(signed(9)),
        Standing::Halted(signed(9)),
        Standing::Sampled(t(9)),
        Standing::Finished(t(9)),
    ];
    for (at, standing) in (3..).zip(standings) {
        let started = new_order(order_id("rdr", at), book("acme"), run(Standing::Running, at));
        let started = ordered(&office, started).await;
        let change = started.becoming(run(standing.clone(), at));
        assert!(office.progress(&change).await.expect("an answer"), "{standing:?}");
        expected.extend((!matches!(standing, Standing::Finished(_))).then_some(change.after));
    }
    assert_eq!(open(&office, 2).await.len(), 5);
    ordered(&office, lifted(&hold, 5)).await;
    assert!(office.progress(&closed(&ending)).await.expect("an answer"));
    assert_eq!(open(&office, 2).await, expected);
    let of_acme = office.open_orders_of(&book("acme")).await.expect("an answer");
    assert_eq!(of_acme.len(), expected.len());
    assert!(expected.iter().all(|order| of_acme.contains(order)), "{of_acme:?}");
}

/// What was changed meanwhile does not move the place in the listing of open orders.
pub async fn open_orders_go_on_after_what_was_shown_is_done<O: Office>(office: O) {
    let mut holds = Vec::new();
    for at in 1..=4 {
        holds.push(ordered(&office, new_hold("acme", at)).await);
    }
    let page = office.open_orders(2, None).await.expect("an answer");
    assert_eq!(page.items, holds[..2]);
    ordered(&office, lifted(&holds[0], 9)).await;
    ordered(&office, lifted(&holds[1], 9)).await;
    let rest = all_pages(async |from| office.open_orders(2, from.or(page.next.as_ref())).await);
    assert_eq!(rest.await, holds[2..]);
}

/// The orders of a book are listed newest first, open or not.
pub async fn orders_are_listed_newest_first<O: Office>(office: O) {
    let oldest = ordered(&office, new_hold("acme", 1)).await;
    let newest = ordered(&office, new_order(order_id("end", 3), book("acme"), closing(3))).await;
    let middle =
        ordered(&office, new_order(order_id("rdr", 2), book("acme"), run(Standing::Running, 2))).await;
    let others = ordered(&office, new_hold("northwind", 2)).await;
    let gate = ordered(&office, new_order(order_id("hld", 4), Book::Across, hold(HoldRule::All, 4))).await;
    let oldest = ordered(&office, lifted(&oldest, 9)).await;
    for limit in [1, 2, 100] {
        let of_acme = listed(&office, Some(&book("acme")), limit).await;
        assert_eq!(of_acme, [newest.clone(), middle.clone(), oldest.clone()], "by pages of {limit}");
        assert_eq!(listed(&office, Some(&Book::Across), limit).await, std::slice::from_ref(&gate));
        assert_eq!(listed(&office, Some(&book("nobody")), limit).await, []);
        // Across books: each once, and newest first within each.
        let all = listed(&office, None, limit).await;
        assert_eq!(all.len(), 5, "by pages of {limit}");
        for (book, expected) in [(book("acme"), of_acme), (book("northwind"), vec![others.clone()])] {
            let of_book: Vec<Order> = all.iter().filter(|order| order.book == book).cloned().collect();
            assert_eq!(of_book, expected, "{book}");
        }
    }
}

/// Orders that come while a person turns the pages repeat nothing and hide nothing.
pub async fn a_listing_of_orders_is_stable_while_orders_come<O: Office>(office: O) {
    let mut holds = Vec::new();
    for at in 1..=5 {
        holds.insert(0, ordered(&office, new_hold("acme", at)).await);
    }
    let first = office.orders(Some(&book("acme")), 2, None).await.expect("an answer");
    assert_eq!(first.items, holds[..2]);
    ordered(&office, new_hold("acme", 9)).await;
    let rest =
        all_pages(async |from| office.orders(Some(&book("acme")), 2, from.or(first.next.as_ref())).await);
    assert_eq!(rest.await, holds[2..]);
}

async fn open<O: Office>(office: &O, limit: usize) -> Vec<Order> {
    all_pages(async |from| office.open_orders(limit, from).await).await
}

async fn listed<O: Office>(office: &O, book: Option<&Book>, limit: usize) -> Vec<Order> {
    all_pages(async |from| office.orders(book, limit, from).await).await
}
