//! What only the embedded backend promises: one file that others use too, and damage that is
//! told.

use std::path::PathBuf;

use bytes::Bytes;
use tempfile::TempDir;
use waybill_domain::audit::{Fault, Verification};
use waybill_domain::identity::MessageId;
use waybill_domain::time::DurationMs;
use waybill_embedded::{EmbeddedStore, MOVED_BY, OpenError, REDRIVE_POLICY, SCHEMA_VERSION};
use waybill_service::office::Office as _;
use waybill_service::ports::{
    Applied, Burial, Catalogue, Created, Cursor, Filter, Inbox, Ledger, Outgoing, PortError, Queue,
};
use waybill_service::sweep::DeadLetterBox as _;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::conformance::desk::*;
use waybill_testkit::conformance::fixture::*;

type Store = EmbeddedStore<VirtualClock>;

struct File {
    path: PathBuf,
    clock: VirtualClock,
    _dir: TempDir,
}

impl File {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        Self { path: dir.path().join("waybill.db"), clock: VirtualClock::default(), _dir: dir }
    }

    fn open(&self) -> Store {
        EmbeddedStore::open(&self.path, self.clock.clone()).unwrap()
    }

    /// The file as another program sees it.
    fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(&self.path).unwrap()
    }
}

fn outgoing(body: &str) -> Outgoing {
    Outgoing { body: body.to_owned(), delay: DurationMs::ZERO }
}

#[tokio::test]
async fn everything_is_there_after_reopening() {
    let file = File::new();
    let record = pending_event("evt");
    let store = file.open();
    store_as(&store, &record, |record| claim(record, "tok", t(1))).await;
    let id = store.send(outgoing("body")).await.unwrap();
    drop(store);

    let store = file.open();
    assert_eq!(stored(&store, &record.delivery.key()).await.unwrap().revision, 1);
    assert_eq!(store.receive(1, DurationMs::from_secs(1)).await.unwrap()[0].message_id, id);
}

#[tokio::test]
async fn writes_are_logged_ahead() {
    let file = File::new();
    let store = file.open();
    store.send(outgoing("body")).await.unwrap();
    let mode: String = file.raw().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[tokio::test]
async fn a_newer_file_is_refused_and_left_alone() {
    let file = File::new();
    drop(file.open());
    file.raw().pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    let refused = EmbeddedStore::open(&file.path, file.clock.clone()).unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found } if found == SCHEMA_VERSION + 1), "{refused:?}");
    assert!(refused.to_string().contains("use a newer waybill"), "{refused}");
}

#[tokio::test]
async fn a_database_of_something_else_is_refused_and_left_alone() {
    let rows = [
        "CREATE TABLE recipe (title TEXT)",
        "CREATE TABLE recipe (title TEXT); PRAGMA user_version = 1",
        "CREATE TABLE message (body TEXT); PRAGMA user_version = 2",
        "PRAGMA application_id = 7",
    ];
    for sql in rows {
        let file = File::new();
        file.raw().execute_batch(sql).unwrap();
        let before = std::fs::read(&file.path).unwrap();
        let refused = EmbeddedStore::open(&file.path, file.clock.clone()).unwrap_err();
        assert!(matches!(refused, OpenError::Foreign), "{sql}: {refused:?}");
        assert_eq!(std::fs::read(&file.path).unwrap(), before, "{sql}");
    }
}

#[tokio::test]
async fn a_path_that_keeps_nothing_is_refused() {
    let refused = EmbeddedStore::open(std::path::Path::new(":memory:"), VirtualClock::default()).unwrap_err();
    assert!(matches!(refused, OpenError::Volatile), "{refused:?}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let file = File::new();
    std::fs::write(
        &file.path,
        "a shopping list, long enough to be taken for a header of something. ".repeat(40),
    )
    .unwrap();
    let refused = EmbeddedStore::open(&file.path, file.clock.clone()).unwrap_err();
    assert!(matches!(refused, OpenError::Sqlite(_)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_open_a_new_file_at_once() {
    for _ in 0..10 {
        let file = File::new();
        let opening: Vec<_> = (0..4)
            .map(|_| {
                let (path, clock) = (file.path.clone(), file.clock.clone());
                std::thread::spawn(move || EmbeddedStore::open(&path, clock))
            })
            .collect();
        for opened in opening {
            opened.join().unwrap().unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_use_one_file() {
    let file = File::new();
    // Two handles share nothing but the file, as two processes do.
    let (serve, cli) = (file.open(), file.open());
    let records: Vec<_> = (0..50).map(|n| pending_event(&format!("evt-{n}"))).collect();
    let payload = Bytes::from_static(b"{}");
    let created = futures::future::join_all(
        records
            .iter()
            .flat_map(|record| [(&serve, record), (&cli, record)])
            .map(|(store, record)| store.create(record, &payload)),
    );
    let new = created.await.into_iter().filter(|made| matches!(made, Ok(Created::New))).count();
    assert_eq!(new, records.len(), "each was new to one of the two");

    cli.send(outgoing("from the command line")).await.unwrap();
    assert_eq!(serve.receive(1, DurationMs::from_secs(1)).await.unwrap()[0].body, "from the command line");
    let claims = [claim(&records[0], "a", t(1)), claim(&records[0], "b", t(1))];
    let (a, b) = tokio::join!(serve.apply(&claims[0]), cli.apply(&claims[1]));
    let landed = [a, b].into_iter().filter(|applied| matches!(applied, Ok(Applied::Landed))).count();
    assert_eq!(landed, 1);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_needs_a_person_and_is_named() {
    let file = File::new();
    let store = file.open();
    let (broken, whole) = (pending_event("broken"), pending_event("whole"));
    store_as(&store, &broken, |record| held(record, t(1))).await;
    store_as(&store, &whole, |record| claim(record, "tok", t(1))).await;
    let key = broken.delivery.key();
    file.raw()
        .execute(
            "UPDATE delivery SET record = '{\"delivery\":' WHERE delivery_id = ?",
            [key.delivery_id.as_str()],
        )
        .unwrap();

    let mut told = vec![store.load(&key).await.unwrap_err()];
    told.push(store.create(&broken, &Bytes::new()).await.unwrap_err());
    told.push(store.apply(&claim(&broken, "tok", t(2))).await.unwrap_err());
    told.push(store.find(&key.delivery_id).await.unwrap_err());
    told.push(store.list(&Filter::default(), 10, None).await.unwrap_err());
    for error in told {
        assert!(matches!(error, PortError::NeedsPerson { port: "ledger", .. }), "{error:?}");
        assert!(error.in_full().contains(&key.to_string()), "{}", error.in_full());
    }
    // Its neighbours are as well as before.
    assert_eq!(stored(&store, &whole.delivery.key()).await.unwrap().revision, 1);
    assert_eq!(store.held(10, None).await.unwrap().items, [key]);
}

#[tokio::test]
async fn evidence_that_cannot_be_read_needs_a_person() {
    let file = File::new();
    let store = file.open();
    let key = pending_event("evt").delivery.key();
    store.add_attempt(&key, &attempt(1, waybill_domain::attempt::Witness::Worker, "a")).await.unwrap();
    file.raw().execute("UPDATE attempt SET evidence = 'gone'", []).unwrap();
    let error = store.attempts(&key).await.unwrap_err();
    assert!(
        matches!(error, PortError::NeedsPerson { .. }) && error.in_full().contains(&key.to_string()),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_cursor_of_another_listing_is_refused() {
    let file = File::new();
    let store = file.open();
    for event in ["a", "b"] {
        store_as(&store, &pending_event(event), |record| held(record, t(1))).await;
    }
    let held = store.held(1, None).await.unwrap().next.unwrap();
    for cursor in [held, Cursor("nonsense".to_owned()), Cursor("look:[1]".to_owned())] {
        let error = store.due_for_look(t(1), 1, Some(&cursor)).await.unwrap_err();
        assert!(matches!(error, PortError::NeedsPerson { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn whoever_goes_away_leaves_everything_whole() {
    let file = File::new();
    let store = file.open();
    let records: Vec<_> = (0..200).map(|n| pending_event(&format!("evt-{n}"))).collect();
    let payload = Bytes::from_static(b"{}");
    for (n, record) in records.iter().enumerate() {
        let giving_up = std::time::Duration::from_micros(n as u64 % 40 * 10);
        let _ = tokio::time::timeout(giving_up, store.create(record, &payload)).await;
        let _ = tokio::time::timeout(giving_up, store.send(outgoing("body"))).await;
        let _ = tokio::time::timeout(giving_up, store.receive(1, DurationMs::from_secs(60))).await;
    }
    // Done or not done, never half; and the store still answers.
    for record in &records {
        let key = record.delivery.key();
        let (made, paid) = (store.load(&key).await.unwrap(), store.payload(&key).await.unwrap());
        assert_eq!(made.is_some(), paid.is_some(), "{key}");
    }
    store.send(outgoing("last")).await.unwrap();
}

#[tokio::test]
async fn a_poller_is_told_of_arrivals() {
    let file = File::new();
    let (store, poller) = (file.open(), file.open());
    let mut arrivals = store.arrivals();
    assert!(!arrivals.has_changed().unwrap());
    store.send(outgoing("body")).await.unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(10), arrivals.changed()).await.unwrap().unwrap();
    // Told after it was stored: nobody is woken for what is not there yet.
    assert_eq!(poller.receive(1, DurationMs::from_secs(1)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_the_redrive_policy_moved_says_so() {
    let file = File::new();
    let store = file.open();
    let id = store.send(outgoing("poison")).await.unwrap();
    for _ in 0..7 {
        store.receive(1, DurationMs::from_secs(1)).await.unwrap();
        file.clock.advance(DurationMs::from_secs(1));
    }
    let dead = store.dead_letter_messages(10).await.unwrap();
    assert_eq!((dead.len(), &dead[0].message_id, dead[0].body.as_str()), (1, &id, "poison"));
    assert_eq!(dead[0].attributes[MOVED_BY], REDRIVE_POLICY);
}

#[tokio::test]
async fn a_message_moved_back_is_a_new_one_with_its_body_and_attributes() {
    let file = File::new();
    let store = file.open();
    let attributes = vec![("reason", "undecodable".to_owned())];
    let buried = store.bury(Burial { body: "raw".to_owned(), attributes }).await.unwrap();
    let unknown = MessageId::parse("msg_unknown").unwrap();
    assert_eq!(store.move_back(&unknown).await.unwrap(), None);
    let back = store.move_back(&buried).await.unwrap().expect("it is there");
    assert_ne!(back, buried);
    assert_eq!(store.dead_letter_messages(10).await.unwrap(), []);
    for _ in 0..7 {
        let received = store.receive(1, DurationMs::from_secs(1)).await.unwrap();
        assert!(
            received.iter().all(|message| (&message.message_id, message.body.as_str()) == (&back, "raw"))
        );
        file.clock.advance(DurationMs::from_secs(1));
    }
    // C37: the attributes came along, and its own mark was added to them.
    let dead = store.dead_letter_messages(10).await.unwrap();
    assert_eq!(dead[0].attributes["reason"], "undecodable");
    assert_eq!(dead[0].attributes[MOVED_BY], REDRIVE_POLICY);
}

#[tokio::test]
async fn a_look_at_a_few_of_many_dead_letters_gets_round_to_all_of_them() {
    let file = File::new();
    let store = file.open();
    for body in ["a", "b", "c", "d", "e"] {
        store.bury(Burial { body: body.to_owned(), attributes: Vec::new() }).await.unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        let looked_at = store.take(2, DurationMs::from_secs(120)).await.unwrap();
        for message in looked_at {
            store.show(&message.receipt).await.unwrap();
            seen.push(message.body);
        }
        file.clock.advance(DurationMs::from_secs(3600));
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e", "a"]);
    // A person who browses sees them in the order in which they came.
    let lying = store.dead_letter_messages(10).await.unwrap();
    assert_eq!(lying.iter().map(|dead| dead.body.as_str()).collect::<String>(), "abcde");
}

#[tokio::test]
async fn the_end_of_a_book_that_was_cut_off_shows() {
    let file = File::new();
    let store = file.open();
    let acme = book("acme");
    for subject in ["first", "second", "third"] {
        enter(&store, draft(acme.clone(), subject), None).await;
    }
    let verified = async || {
        let mut chain = Verification::of(acme.clone());
        all_entries(&store, &acme).await.iter().for_each(|entry| chain.read(entry));
        let broken = chain.finish(store.head(&acme).await.unwrap().as_ref());
        broken.into_iter().map(|broken| (broken.seq, broken.fault)).collect::<Vec<_>>()
    };
    assert_eq!(verified().await, []);
    file.raw().execute("DELETE FROM audit WHERE seq = 3", []).unwrap();
    assert_eq!(verified().await, [(2, Fault::CutOff)]);
    file.raw()
        .execute("UPDATE audit SET entry = replace(entry, 'first', 'other') WHERE seq = 1", [])
        .unwrap();
    assert_eq!(verified().await, [(1, Fault::Altered), (2, Fault::CutOff)]);
}

#[tokio::test]
async fn an_order_and_an_entry_that_cannot_be_read_need_a_person() {
    let file = File::new();
    let store = file.open();
    let order = ordered(&store, new_hold("acme", 1)).await;
    file.raw().execute_batch("UPDATE orders SET document = '{'; UPDATE audit SET entry = '{'").unwrap();
    let told = [
        store.order(&order.book, &order.id).await.unwrap_err(),
        store.open_orders(10, None).await.unwrap_err(),
        store.entries(&order.book, 10, None).await.unwrap_err(),
    ];
    for error in told {
        assert!(matches!(error, PortError::NeedsPerson { port: "ledger", .. }), "{error:?}");
    }
}
