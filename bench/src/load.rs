//! Throughput of `waybill serve` at full load, and how long a delivery takes from publish to delivered.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::machine;
use crate::publisher::{self, Addressee, Go};
use crate::recipient::{Recipient, Taken};
use crate::report::{count, table};
use crate::serve::Serve;
use crate::span::Spans;

pub(crate) const SERVICE_TIME: Duration = Duration::from_millis(5);
pub(crate) const WARM_UP: Duration = Duration::from_secs(5);
pub(crate) const SUSTAINED: Duration = Duration::from_secs(60);
/// Published and not yet delivered: enough that no worker is idle, too few to hide a growing backlog.
const BACKLOG: u64 = 1_000;

pub(crate) const PACED_PER_S: u32 = 200;
pub(crate) const PACED: Duration = Duration::from_secs(30);

const TO: Addressee = Addressee { tenant: "acme", destination: "books", deadline: None };

fn config(url: &str) -> String {
    format!(
        "[destinations.books]\ntenants = [\"acme\"]\nurl = \"{url}\"\nsecrets = [\"env:BENCH_SECRET\"]\n\
         timeout = \"5s\"\n"
    )
}

/// Measures both and writes the section.
pub(crate) async fn measure() {
    let machine = machine::described();
    let throughput = full_load().await;
    let latency = paced().await;
    crate::report::write("serve", &format!("{machine}\n{throughput}\n{latency}"));
}

async fn full_load() -> String {
    let recipient = Recipient::start(SERVICE_TIME).await;
    let serve = Serve::start(&config(&recipient.url));
    let begin = Instant::now() + WARM_UP;
    let end = begin + SUSTAINED;
    let may_go = |published: u64| match published.saturating_sub(recipient.count() as u64) {
        _ if Instant::now() >= end => Go::Home,
        backlog if backlog >= BACKLOG => Go::Later,
        _ => Go::On,
    };
    let used = async {
        tokio::time::sleep_until(begin.into()).await;
        let before = (machine::cpu(serve.process()), machine::cpu("self"));
        tokio::time::sleep_until(end.into()).await;
        let after = (machine::cpu(serve.process()), machine::cpu("self"));
        (after.0 - before.0, after.1 - before.1)
    };
    let (used, ()) = tokio::join!(used, publisher::flat_out(serve.address, "load", TO, u64::MAX, may_go));
    let rates = Rates::of(&recipient.taken_after(0), begin);
    let (of_serve, of_bench) = used;
    let share = |cpu: Duration| format!("{:.2} cores", cpu.as_secs_f64() / SUSTAINED.as_secs_f64());
    let each = of_serve.as_secs_f64() * 1e6 / rates.delivered as f64;
    let head = [
        "deliveries/s",
        "slowest second",
        "median",
        "fastest",
        "`serve` used",
        "each",
        "producers and recipient used",
    ];
    let [mean, slowest, median, fastest] = rates.cells();
    let row = [mean, slowest, median, fastest, share(of_serve), format!("{each:.0} µs"), share(of_bench)];
    table(&head, &[row.to_vec()])
}

/// What arrived in the minute that counts.
pub(crate) struct Rates {
    pub(crate) delivered: u64,
    by_second: Vec<u64>,
}

impl Rates {
    /// In the [`SUSTAINED`] time from `begin` on.
    pub(crate) fn of(taken: &[Taken], begin: Instant) -> Self {
        let mut by_second = vec![0u64; SUSTAINED.as_secs() as usize];
        for since in taken.iter().filter_map(|taken| taken.answered.checked_duration_since(begin)) {
            if let Some(second) = by_second.get_mut(since.as_secs() as usize) {
                *second += 1;
            }
        }
        by_second.sort_unstable();
        Self { delivered: by_second.iter().sum(), by_second }
    }

    /// For each second: the mean, the slowest, the median and the fastest.
    pub(crate) fn cells(&self) -> [String; 4] {
        let seconds = self.by_second.len();
        let [slowest, median, fastest] = [0, seconds / 2, seconds - 1].map(|at| count(self.by_second[at]));
        [format!("**{}**", count(self.delivered / seconds as u64)), slowest, median, fastest]
    }
}

async fn paced() -> String {
    let recipient = Recipient::start(SERVICE_TIME).await;
    let serve = Serve::start(&config(&recipient.url));
    let end = Instant::now() + PACED;
    let sent = publisher::at_rate(serve.address, "paced", TO, PACED_PER_S, |at| at < end).await;
    let latencies = latencies(&recipient, &sent, sent.len()).await;
    let head = ["events at 200/s", "p50", "p95", "p99", "longest"];
    let at = |percent| latencies.at(percent).to_string();
    let row = [count(latencies.len() as u64), at(50.0), format!("**{}**", at(95.0)), at(99.0), at(100.0)];
    table(&head, &[row.to_vec()])
}

/// From when each event was meant to be published until the recipient answered; waits until `recipient` has
/// answered `expected` requests. Each of `sent` must have arrived, once.
pub(crate) async fn latencies(
    recipient: &Recipient,
    sent: &HashMap<String, Instant>,
    expected: usize,
) -> Spans {
    let patience = Instant::now() + Duration::from_secs(60);
    while recipient.count() < expected && Instant::now() < patience {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let taken = recipient.taken_after(0);
    let spans: Spans = taken
        .iter()
        .filter_map(|taken| Some(taken.answered.saturating_duration_since(*sent.get(&taken.event_id)?)))
        .collect();
    assert_eq!(spans.len(), sent.len(), "each event arrives once");
    spans
}
