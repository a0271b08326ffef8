//! The history of the configuration: numbered without gaps, its documents kept as they are.

use waybill_domain::authority::Book;
use waybill_service::office::{Entered, Office, Revision, Revisions};

use super::desk::*;

/// Where nothing was applied, nothing is in force.
pub async fn nothing_is_in_force_at_first<O: Office + Revisions>(office: O) {
    assert_eq!(office.in_force().await.expect("an answer"), None);
    assert_eq!(office.document(&revision(1, "file-a").revision).await.expect("an answer"), None);
    assert_eq!(history(&office, 2).await, []);
}

/// A configuration is put in force with its document and its entry.
pub async fn a_configuration_is_in_force_with_its_document_and_its_entry<O: Office + Revisions>(office: O) {
    // Larger than a store likes, with line ends that must stay.
    let document = format!("# “Žižkov” 🏠\r\n{}", "[destinations.x]\n".repeat(20_000));
    let first = revision(1, "file-a");
    let entry = install(&office, &first, &document).await;
    assert_eq!(office.in_force().await.expect("an answer").as_ref(), Some(&first));
    assert_eq!(office.document(&first.revision).await.expect("an answer"), Some(document));
    assert_eq!(all_entries(&office, &Book::Across).await, [entry]);
}

/// A number that does not follow the one in force changes nothing.
pub async fn where_another_was_put_in_force_nothing_is_changed<O: Office + Revisions>(office: O) {
    let refused = async |number: u64, stored: Option<Revision>| {
        let late = revision(number, "file-late");
        let entry = next_entry(&office, draft(Book::Across, "late")).await;
        let entered = office.install(&late, "late", &entry).await.expect("an answer");
        assert_eq!(entered, Entered::Overtaken, "number {number}");
        assert_eq!(office.in_force().await.expect("an answer"), stored, "number {number}");
        assert_eq!(office.head(&Book::Across).await.expect("an answer").map_or(0, |head| head.seq), {
            stored.map_or(0, |stored| stored.number)
        });
    };
    refused(2, None).await;
    let first = revision(1, "file-a");
    install(&office, &first, "a").await;
    refused(1, Some(first.clone())).await;
    refused(3, Some(first)).await;
}

/// An entry that does not follow its book's head puts nothing in force.
pub async fn where_the_head_moved_nothing_is_put_in_force<O: Office + Revisions>(office: O) {
    let stale = next_entry(&office, draft(Book::Across, "file-a")).await;
    let head = enter(&office, draft(Book::Across, "somebody else"), None).await;
    let entered = office.install(&revision(1, "file-a"), "a", &stale).await.expect("an answer");
    assert_eq!(entered, Entered::HeadMoved);
    assert_eq!(office.in_force().await.expect("an answer"), None);
    assert_eq!(office.head(&Book::Across).await.expect("an answer"), Some(head));
}

/// Many apply at once: the numbers have no gap, and each configuration its entry.
pub async fn concurrent_configurations_are_numbered_without_gaps<O: Office + Revisions>(office: O) {
    const MANY: usize = 8;
    let apply = async |n: usize| {
        let name = format!("file-{n}");
        loop {
            let before = office.in_force().await.expect("an answer");
            let next = revision(before.map_or(1, |before| before.number + 1), &name);
            let entry = next_entry(&office, draft(Book::Across, &name)).await;
            let installed = office.install(&next, &name, &entry).await.expect("an answer");
            if installed == Entered::Landed {
                return;
            }
        }
    };
    futures::future::join_all((0..MANY).map(apply)).await;
    let history = history(&office, 3).await;
    let numbers: Vec<u64> = history.iter().rev().map(|one| one.number).collect();
    assert_eq!(numbers, (1..=MANY as u64).collect::<Vec<_>>());
    let entries = all_entries(&office, &Book::Across).await;
    let entered: Vec<&str> = entries.iter().map(|entry| entry.subject.as_str()).collect();
    let installed: Vec<&str> = history.iter().rev().map(|one| one.revision.as_str()).collect();
    assert_eq!(entered, installed);
    for one in &history {
        let document = office.document(&one.revision).await.expect("an answer");
        assert_eq!(document.as_deref(), Some(one.revision.as_str()));
    }
}

/// An earlier configuration that comes back has its document again, under a number of its own.
pub async fn an_earlier_configuration_comes_back_under_a_new_number<O: Office + Revisions>(office: O) {
    let history_of = [revision(1, "file-a"), revision(2, "file-b"), revision(3, "file-a")];
    for (one, document) in history_of.iter().zip(["a", "b", "a"]) {
        install(&office, one, document).await;
    }
    assert_eq!(office.in_force().await.expect("an answer").as_ref(), Some(&history_of[2]));
    assert_eq!(office.document(&history_of[2].revision).await.expect("an answer").as_deref(), Some("a"));
    let newest_first: Vec<Revision> = history_of.into_iter().rev().collect();
    assert_eq!(history(&office, 2).await, newest_first);
}

/// A document is never overwritten, whatever somebody says that it says.
pub async fn a_document_is_never_overwritten<O: Office + Revisions>(office: O) {
    install(&office, &revision(1, "file-a"), "a").await;
    let entry = next_entry(&office, draft(Book::Across, "file-a")).await;
    // Whether this is refused is the store's affair: two texts do not have one digest.
    let _ = office.install(&revision(2, "file-a"), "another text", &entry).await;
    let document = office.document(&revision(1, "file-a").revision).await.expect("an answer");
    assert_eq!(document.as_deref(), Some("a"));
}

/// The history is read newest first, page by page, also beyond nine.
pub async fn the_history_is_paged_newest_first<O: Office + Revisions>(office: O) {
    let mut expected = Vec::new();
    for number in 1..=12 {
        let one = revision(number, &format!("file-{number}"));
        install(&office, &one, &format!("document {number}")).await;
        expected.insert(0, one);
    }
    for limit in [1, 5, 100] {
        assert_eq!(history(&office, limit).await, expected, "by pages of {limit}");
    }
}

async fn history<O: Revisions>(office: &O, limit: usize) -> Vec<Revision> {
    all_pages(async |from| office.history(limit, from).await).await
}
