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

/// Measures it and writes the section. Fails where the tar-pit was ever given more than its budget.
pub(crate) async fn measure() {
    let machine = machine::described();
    let slow = Recipient::start(TAR_PIT).await;

    let fast = Recipient::start(SERVICE_TIME).await;
    let alone = {
        let serve = Serve::start(&config(&slow.url, &fast.url));
        let mut alone = Beside::default();
        for n in 0..GROUPS {
            alone.group(serve.address, n).await;
        }
        alone.spans(&fast).await
    };

    let fast = Recipient::start(SERVICE_TIME).await;
    let mut serve = Serve::start(&config(&slow.url, &fast.url));
    let begun = Instant::now();
    publisher::flat_out(serve.address, "slow", SLOW, BACKLOG, |_| Go::On).await;
    let published = begun.elapsed();
    println!("{BACKLOG} published to the tar-pit in {published:?}");
    let mut beside = Beside::default();
    let mut kills = 0;
    for n in 0..GROUPS {
        let next = Instant::now() + BETWEEN_KILLS;
        beside.group(serve.address, n).await;
        tokio::time::sleep_until(next.into()).await;
        println!(
            "group {n}: the tar-pit has answered {}, most at once {}",
            slow.count(),
            slow.most_at_once()
        );
        if n + 1 < GROUPS {
            serve.kill_and_start();
            kills += 1;
        }
    }
    let beside = beside.spans(&fast).await;
    let most = slow.most_at_once();
    assert!(most <= BUDGET, "the tar-pit had {most} requests at once, and its budget is {BUDGET}");

    let head = ["the fast tenant's events", "events", "p50", "p95", "p99", "longest"];
    let row = |name: &str, spans: &Spans| {
        let at = |percent| spans.at(percent).to_string();
        vec![
            name.to_owned(),
            count(spans.len() as u64),
            at(50.0),
            at(95.0),
            format!("**{}**", at(99.0)),
            at(100.0),
        ]
    };
    let rows = [
        row("alone", &alone),
        row(&format!("beside {} to the tar-pit, worker killed {kills} times", count(BACKLOG)), &beside),
    ];
    let (Ms(with), Ms(without)) = (beside.at(99.0), alone.at(99.0));
    crate::report::write(
        "tarpit",
        &format!(
            "{machine}\n{}\nThe p99 beside the tar-pit is {:.2} times that without. The tar-pit had **{most}** requests at once \
             at most, counted where they arrive and until it is done with them, whether or not their sender still \
             lives; its budget is {BUDGET}. It was done with {} of its deliveries in that time. Publishing the {} took {:.0} s.",
            table(&head, &rows),
            with / without,
            count(slow.count() as u64),
            count(BACKLOG),
            published.as_secs_f64(),
        ),
    );
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
