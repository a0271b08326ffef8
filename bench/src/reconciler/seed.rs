//! A ledger with much history: one delivery of each kind is made by Waybill's own code, and its rows are
//! cloned, under delivery IDs that are derived as always.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use waybill_domain::address::Locality;
use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_embedded::EmbeddedStore;
use waybill_service::config::Config;
use waybill_service::config_file;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::event::Event;
use waybill_service::ports::{Inbox as _, Ports};
use waybill_service::publish::Publisher;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::SeededDice;
use waybill_testkit::scripted::ScriptedRecipient;

/// How many deliveries are due for a look: their wake-ups were lost.
pub(super) const DUE: usize = 100;

const CONFIG: &str = r#"
[destinations.books]
tenants = ["acme"]
url = "https://books.example.com/hooks"
secrets = ["env:S"]
"#;

/// Time that passes until what was lost counts as stale: more than `stale_after`.
const LATER: DurationMs = DurationMs::from_secs(600);
const WHILE: DurationMs = DurationMs::from_secs(60);

/// For the speed of making it only; the measurement opens the file as Waybill does.
const FAST: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
                    PRAGMA cache_size = -4194304;";

const CLONE: &str = "
    INSERT INTO delivery (delivery_id, tenant, destination, first_queued_at, deadline, state, revision, look_at,
                          release_order, reason, ended_at, record)
    SELECT ?2, tenant, destination, first_queued_at, deadline, state, revision, look_at, release_order, reason,
           ended_at, ?3 FROM delivery WHERE id = ?1";

const CLONE_PAYLOAD: &str =
    "INSERT INTO payload (delivery, bytes) SELECT last_insert_rowid(), bytes FROM payload WHERE delivery = ?";

/// A ledger, ready for a round.
pub(super) struct Seeded {
    pub(super) file: PathBuf,
    pub(super) config: Config,
    /// When the round is made.
    pub(super) now: TimeMs,
}

impl Seeded {
    pub(super) fn bytes(&self) -> u64 {
        std::fs::metadata(&self.file).expect("the file stands").len()
    }
}

/// Makes a ledger of `finished` deliveries that succeeded, and [`DUE`] that are due, evenly among them.
pub(super) async fn seed(file: &Path, finished: u64) -> Seeded {
    let config = config_file::parse(CONFIG, Locality::PublicOnly).expect("the configuration is good");
    let clock = VirtualClock::at(VirtualClock::T0);
    one_of_each(file, &config, &clock).await;
    clone(file, finished);
    Seeded { file: file.to_owned(), config, now: VirtualClock::T0.plus(LATER) }
}

/// Two deliveries: `done` was delivered, `lost` was recorded and its wake-up is gone.
async fn one_of_each(file: &Path, config: &Config, clock: &VirtualClock) {
    let store = EmbeddedStore::open(file, clock.clone()).expect("the file opens");
    let ports = Ports {
        ledger: store.clone(),
        queue: store.clone(),
        recipient: ScriptedRecipient::new(clock),
        clock: clock.clone(),
        dice: SeededDice::new("seed", 1),
        desk: Default::default(),
    };
    for event_id in ["done", "lost"] {
        let event = format!(
            r#"{{"event_id":"{event_id}","tenant":"acme","type":"lease.payment_recorded","destination":"books",
                "payload":{{"leaseId":"lease_881","amountCents":125000,"currency":"USD"}}}}"#
        );
        let event = Event::parse(event.as_bytes()).expect("an event");
        let publisher = Publisher { ledger: &store, queue: &store, clock };
        publisher.publish(config, event).await.expect("it is published");
        for message in store.receive(1, WHILE).await.expect("its wake-up") {
            if event_id == "done" {
                let incoming = Incoming { message_id: &message.message_id, body: &message.body };
                let verdict = Consumer { ports: &ports }.consume(config, incoming, WHILE).await;
                assert_eq!(verdict, Verdict::Acknowledge, "it is delivered");
            }
            store.acknowledge(&message.receipt).await.expect("it is acknowledged");
        }
    }
}

/// The row of a delivery to clone.
struct Template {
    id: i64,
    event_id: &'static str,
    delivery_id: String,
    record: String,
}

impl Template {
    fn of(conn: &Connection, event_id: &'static str) -> Self {
        let delivery_id = derived(event_id);
        let sql = "SELECT id, record FROM delivery WHERE delivery_id = ?";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let (id, record) = conn.query_row(sql, [&delivery_id], read).expect("the template");
        Self { id, event_id, delivery_id, record }
    }

    fn clone_as(&self, conn: &Connection, event_id: &str) -> rusqlite::Result<()> {
        let delivery_id = derived(event_id);
        let quoted = |text: &str| format!("\"{text}\"");
        let record = self.record.replace(&self.delivery_id, &delivery_id);
        let record = record.replace(&quoted(self.event_id), &quoted(event_id));
        conn.prepare_cached(CLONE)?.execute(params![self.id, delivery_id, record])?;
        conn.prepare_cached(CLONE_PAYLOAD)?.execute([self.id])?;
        Ok(())
    }
}

fn derived(event_id: &str) -> String {
    let (tenant, destination) = (TenantId::parse("acme"), DestinationName::parse("books"));
    let event = EventId::parse(event_id).expect("an event ID");
    DeliveryId::derive(&tenant.expect("a tenant"), &event, &destination.expect("a destination")).to_string()
}

/// The templates count: the first of each kind stands already.
fn clone(file: &Path, finished: u64) {
    let mut conn = Connection::open(file).expect("the file opens");
    conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;").expect("no log");
    conn.execute_batch(FAST).expect("fast and unsafe");
    let (done, lost) = (Template::of(&conn, "done"), Template::of(&conn, "lost"));
    let every = finished / DUE as u64;
    let tx = conn.transaction().expect("a transaction");
    for n in 1..finished {
        done.clone_as(&tx, &format!("done-{n}")).expect("a clone");
        if n % every == 0 {
            lost.clone_as(&tx, &format!("lost-{n}")).expect("a clone");
        }
    }
    tx.commit().expect("all of it");
    let due = "SELECT count(*) FROM delivery WHERE look_at IS NOT NULL";
    let due: i64 = conn.query_row(due, [], |row| row.get(0)).expect("a count");
    assert_eq!(due, DUE as i64, "so many are due");
}
