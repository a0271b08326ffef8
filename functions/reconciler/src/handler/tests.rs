//! One round on the memory backend.

use serde_json::json;
use waybill_domain::address::Locality;
use waybill_service::config_file;
use waybill_service::event::Event;
use waybill_service::ports::Queue as _;
use waybill_service::publish::Publisher;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::FixedDice;
use waybill_testkit::memory::{MemoryLedger, MemoryOffice, MemoryQueue, QueueRules};

use super::*;

const CONFIG: &str = "
[destinations.books]
tenants = [\"acme\"]
url = \"https://books.example.com/hooks\"
secrets = [\"env:S\"]
";

#[tokio::test]
async fn a_round_wakes_what_is_stale_and_leaves_the_rest_when_the_time_is_over() {
    let clock = VirtualClock::default();
    let (ledger, queue) = (MemoryLedger::default(), MemoryQueue::new(&clock, QueueRules::default()));
    let config = config_file::parse(CONFIG, Locality::PublicOnly).unwrap();
    for n in 1..=3 {
        let event = json!({
            "event_id": format!("evt-{n}"), "tenant": "acme", "type": "lease.signed",
            "destination": "books", "payload": {},
        });
        let publisher = Publisher { ledger: &ledger, queue: &queue, clock: &clock };
        publisher.publish(&config, Event::parse(event.to_string().as_bytes()).unwrap()).await.unwrap();
    }
    assert_eq!(queue.window(), DurationMs::from_secs(900));
    queue.purge();
    clock.advance(DurationMs::from_secs(301));
    let (office, dice) = (MemoryOffice::default(), FixedDice::showing(0.5));
    let round = Round { ledger: &ledger, queue: &queue, office: &office, clock: &clock, dice: &dice };

    let too_late = handle(&round, &config, &Learned::default(), clock.now()).await.unwrap();
    assert_eq!((too_late.looked_at, too_late.woken, too_late.more), (0, 0, true));
    assert_eq!(queue.messages().len(), 0);

    let done = handle(&round, &config, &Learned::default(), clock.now().plus(TO_END)).await.unwrap();
    assert_eq!((done.looked_at, done.woken, done.more), (3, 3, false));
    assert_eq!(queue.messages().len(), 3);
}

const NIGHTLY: &str = "
[schedules.nightly]
cron = \"30 2 * * *\"
timezone = \"UTC\"
tenants = [\"acme\"]
destination = \"books\"
type = \"payment.reconciliation_requested\"
catch_up = \"1d\"
payload = { business_date = \"{window}\" }
";

#[tokio::test]
async fn a_round_publishes_the_closed_windows_of_schedules_once() {
    let clock = VirtualClock::default();
    let (ledger, queue) = (MemoryLedger::default(), MemoryQueue::new(&clock, QueueRules::default()));
    let config = config_file::parse(&format!("{CONFIG}{NIGHTLY}"), Locality::PublicOnly).unwrap();
    let (office, dice) = (MemoryOffice::default(), FixedDice::showing(0.5));
    let round = Round { ledger: &ledger, queue: &queue, office: &office, clock: &clock, dice: &dice };
    let learned = Learned::default();
    for scheduled in [1, 0] {
        let done = handle(&round, &config, &learned, clock.now().plus(TO_END)).await.unwrap();
        assert_eq!((done.scheduled, done.failed, done.more), (scheduled, 0, false));
    }
    assert_eq!(queue.messages().len(), 1);
}
