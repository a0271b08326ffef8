//! A neighbour in a tar-pit: one tenant's recipient takes 15 s for each of 50,000 deliveries while another's
//! is fast, and the worker is killed in between.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::load::{SERVICE_TIME, latencies};
use crate::machine;
use crate::publisher::{self, Addressee, Go};
use crate::recipient::Recipient;
use crate::report::{count, table};
use crate::serve::Serve;
use crate::span::{Ms, Spans};

const TAR_PIT: Duration = Duration::from_secs(15);
const BUDGET: usize = 8;
const BACKLOG: u64 = 50_000;

/// The fast tenant's events: so many groups of a hundred, with a kill of the worker after each but the last.
const GROUPS: usize = 5;
const GROUP: u32 = 100;
const PER_S: u32 = 50;
/// From one kill to the next: longer than a slot of the tar-pit is leased.
const BETWEEN_KILLS: Duration = Duration::from_secs(25);

const SLOW: Addressee = Addressee { tenant: "acme", destination: "tar-pit", deadline: None };
const FAST: Addressee = Addressee { tenant: "northwind", destination: "books", deadline: None };

fn config(slow: &str, fast: &str) -> String {
    format!(
        "[destinations.tar-pit]\ntenants = [\"acme\"]\nurl = \"{slow}\"\nsecrets = [\"env:BENCH_SECRET\"]\n\
         timeout = \"20s\"\nconcurrency = {BUDGET}\n\
         [destinations.books]\ntenants = [\"northwind\"]\nurl = \"{fast}\"\nsecrets = [\"env:BENCH_SECRET\"]\n\
         timeout = \"5s\"\n"
    )
}

/// Whether the worker is killed between two groups of the fast tenant's events.
#[derive(Clone, Copy, PartialEq)]
enum Worker {
    LeftAlone,
    Killed,
}

/// Measures it and writes the section. Fails where the tar-pit was ever given more than its budget.
pub(crate) async fn measure() {
    let machine = machine::described();
    let alone = neighbour(Worker::LeftAlone, 0).await;
    let beside = neighbour(Worker::LeftAlone, BACKLOG).await;
    let alone_killed = neighbour(Worker::Killed, 0).await;
    let beside_killed = neighbour(Worker::Killed, BACKLOG).await;
    let most = beside.most_at_tar_pit.max(beside_killed.most_at_tar_pit);

    let head = ["the fast tenant's events", "events", "p50", "p95", "p99", "longest", "p99 by the one alone"];
    let row = |name: String, seen: &Seen, by: Option<&Seen>| {
        let spans = &seen.spans;
        let at = |percent| spans.at(percent).to_string();
        let (Ms(p99), by) = (spans.at(99.0), by.map(|by| by.spans.at(99.0)));
        vec![
            name,
            count(spans.len() as u64),
            at(50.0),
            at(95.0),
            format!("**{}**", at(99.0)),
            at(100.0),
            by.map_or_else(String::new, |Ms(by)| format!("**{:.2}**", p99 / by)),
        ]
    };
    let kills = GROUPS - 1;
    let with = format!("beside {} to the tar-pit", count(BACKLOG));
    let rows = [
        row("alone".to_owned(), &alone, None),
        row(with.clone(), &beside, Some(&alone)),
        row(format!("alone, worker killed {kills} times"), &alone_killed, None),
        row(format!("{with}, worker killed {kills} times"), &beside_killed, Some(&alone_killed)),
    ];
    crate::report::write(
        "tarpit",
        &format!(
            "{machine}\n{}\nThe tar-pit had **{most}** requests at once at most, counted where they arrive and until it \
             is done with them, whether or not their sender still lives; its budget is {BUDGET}. It was done with {} of \
             its deliveries in that time.",
            table(&head, &rows),
            count((beside.done_at_tar_pit + beside_killed.done_at_tar_pit) as u64),
        ),
    );
}

/// What one run has shown.
struct Seen {
    spans: Spans,
    most_at_tar_pit: usize,
    done_at_tar_pit: usize,
}

/// What the fast tenant's events take, beside so many to the tar-pit.
async fn neighbour(worker: Worker, backlog: u64) -> Seen {
    let slow = Recipient::start(TAR_PIT).await;
    let fast = Recipient::start(SERVICE_TIME).await;
    let mut serve = Serve::start(&config(&slow.url, &fast.url));
    publisher::flat_out(serve.address, "slow", SLOW, backlog, |_| Go::On).await;
    let mut events = Beside::default();
    for n in 0..GROUPS {
        let next = Instant::now() + BETWEEN_KILLS;
        events.group(serve.address, n).await;
        println!(
            "group {n}: the tar-pit has answered {}, most at once {}",
            slow.count(),
            slow.most_at_once()
        );
        if worker == Worker::Killed && n + 1 < GROUPS {
            tokio::time::sleep_until(next.into()).await;
            serve.kill_and_start();
        }
    }
    let spans = events.spans(&fast).await;
    let most = slow.most_at_once();
    assert!(most <= BUDGET, "the tar-pit had {most} requests at once, and its budget is {BUDGET}");
    Seen { spans, most_at_tar_pit: most, done_at_tar_pit: slow.count() }
}

/// The fast tenant's events, and when each was meant to be published.
#[derive(Default)]
struct Beside(HashMap<String, Instant>);

impl Beside {
    async fn group(&mut self, address: std::net::SocketAddr, n: usize) {
        let end = Instant::now() + Duration::from_secs_f64(f64::from(GROUP) / f64::from(PER_S));
        let sent = publisher::at_rate(address, &format!("fast-{n}"), FAST, PER_S, |at| at < end).await;
        self.0.extend(sent);
    }

    async fn spans(self, recipient: &Recipient) -> Spans {
        latencies(recipient, &self.0, self.0.len()).await
    }
}
