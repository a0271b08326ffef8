//! A redrive for real: 25,000 dead letters over three tenants, one tenant's run at a set rate, stopped in
//! the middle and resumed, with live traffic to the same destination at the same time.

mod rows;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::load::latencies;
use crate::machine;
use crate::publisher::{self, Addressee, Go};
use crate::recipient::{Recipient, Taken};
use crate::report::{count, table};
use crate::serve::Serve;
use crate::span::{Ms, Spans};

/// Tenants, their destinations, and how many of their deliveries are dead letters. The first is redriven.
const DEAD: [(Addressee, u64); 3] = [
    (Addressee { tenant: "acme", destination: "acme-books", deadline: None }, 12_000),
    (Addressee { tenant: "northwind", destination: "northwind-books", deadline: None }, 8_000),
    (Addressee { tenant: "studio-9", destination: "studio-books", deadline: None }, 5_000),
];
const RATE_PER_S: u64 = 100;
const LIVE_PER_S: u32 = 50;
const SERVICE_TIME: Duration = Duration::from_millis(5);
/// Live traffic alone, to compare with.
const ALONE: Duration = Duration::from_secs(60);
/// A stop must have taken effect by then (DESIGN: at the next admission, within 10 s).
const STOPPED_WITHIN: Duration = Duration::from_secs(10);
/// After that nothing may come any more, for so long.
const QUIET: Duration = Duration::from_secs(5);

/// What was seen of the run.
struct Seen {
    by_second: Vec<u64>,
    at_stop: usize,
    after_stop: usize,
    took: Duration,
}

/// Measures and writes the section.
pub(crate) async fn measure() {
    let machine = machine::described();
    let recipient = Recipient::start(SERVICE_TIME).await;
    let serve = Serve::start(&config(&recipient.url));
    bury(&serve, &recipient).await;
    let dead = recipient.count();
    recipient.answer(204);

    let end = Instant::now() + ALONE;
    let alone = publisher::at_rate(serve.address, "alone", DEAD[0].0, LIVE_PER_S, |at| at < end).await;
    let alone = latencies(&recipient, &alone, dead + alone.len()).await;

    let others: Vec<&str> = DEAD[1..].iter().map(|(to, _)| to.tenant).collect();
    let before = rows::digest(&serve.data(), &others);
    let (is_over, seen) = (AtomicBool::new(false), recipient.count());
    let live =
        publisher::at_rate(serve.address, "live", DEAD[0].0, LIVE_PER_S, |_| !is_over.load(Ordering::SeqCst));
    let run = async {
        let seen = redrive(&serve, &recipient, seen).await;
        is_over.store(true, Ordering::SeqCst);
        seen
    };
    let (live, run) = tokio::join!(live, run);
    let with_run = latencies(&recipient, &live, seen + live.len() + DEAD[0].1 as usize).await;
    assert_eq!(before, rows::digest(&serve.data(), &others), "no row of another tenant was changed");
    print_timeline(&recipient.taken_after(seen), &live);
    crate::report::write("redrive", &format!("{machine}\n{}", written(&run, &alone, &with_run)));
}

fn config(url: &str) -> String {
    let of = |(Addressee { tenant, destination, .. }, _): &(Addressee, u64)| {
        format!(
            "[destinations.{destination}]\ntenants = [\"{tenant}\"]\nurl = \"{url}\"\n\
             secrets = [\"env:BENCH_SECRET\"]\ntimeout = \"5s\"\n"
        )
    };
    format!("[policies.default]\nmax_attempts = 1\n{}", DEAD.iter().map(of).collect::<String>())
}

/// Publishes to a recipient that is down, until all of it is dead.
async fn bury(serve: &Serve, recipient: &Recipient) {
    recipient.answer(503);
    for (to, dead) in DEAD {
        publisher::flat_out(serve.address, "dead", to, dead, |_| Go::On).await;
    }
    let dead_now = || {
        let groups = serve.command(&["dead-letters", "summary"]);
        groups.iter().filter_map(|group| group["count"].as_u64()).sum::<u64>()
    };
    let all: u64 = DEAD.iter().map(|(_, dead)| dead).sum();
    wait("everything is dead", || dead_now() == all).await;
    println!("{} dead letters stand", count(all));
}

async fn redrive(serve: &Serve, recipient: &Recipient, seen: usize) -> Seen {
    let (to, planned) = DEAD[0];
    let redriven = || -> Vec<Taken> {
        let all = recipient.taken_after(seen).into_iter();
        all.filter(|taken| taken.event_id.starts_with("dead-")).collect()
    };
    let plan = serve.path("plan.json");
    let made = &serve.command(&["redrive", "plan", "--tenant", to.tenant, "--save", &plan])[0];
    for (field, expected) in
        [("selected", planned), ("to_release", planned), ("blocked", 0), ("past_deadline", 0)]
    {
        assert_eq!(made[field], expected, "the plan is exact about {field}");
    }
    assert!(redriven().is_empty(), "a plan sends nothing");

    let rate = format!("{RATE_PER_S}/s");
    let started = Instant::now();
    let run = &serve.command(&["redrive", "start", &plan, "--rate", &rate, "--why", "they are up again"])[0];
    let run = run["run"].as_str().expect("the run's ID").to_owned();
    wait("two fifths are released", || redriven().len() as u64 * 5 >= planned * 2).await;
    serve.command(&["redrive", "stop", &run, "--why", "a look at the first two fifths"]);
    let at_stop = redriven().len();
    tokio::time::sleep(STOPPED_WITHIN).await;
    let after_stop = redriven().len();
    tokio::time::sleep(QUIET).await;
    assert_eq!(redriven().len(), after_stop, "a stopped run sends nothing");

    serve.command(&["redrive", "resume", &run, "--why", "the first two fifths arrived"]);
    wait("all of it arrived", || redriven().len() as u64 >= planned).await;
    let took = started.elapsed();
    let status = || serve.command(&["redrive", "status", &run]).remove(0);
    wait("the run knows that it is through", || status()["standing"] == "finished").await;
    tokio::time::sleep(QUIET).await;

    let redriven = redriven();
    let mut times: HashMap<&str, u32> = HashMap::new();
    redriven.iter().for_each(|taken| *times.entry(&taken.event_id).or_default() += 1);
    assert_eq!(times.len() as u64, planned, "each planned delivery arrived");
    assert!(times.values().all(|times| *times == 1), "and none of them twice");
    assert_eq!(status()["released"], Value::from(planned), "the run counted them, too");
    Seen { by_second: by_second(&redriven), at_stop, after_stop, took }
}

/// How many arrived in each second from the first on; seconds without any are not counted: those are the
/// stop, and the ends.
fn by_second(redriven: &[Taken]) -> Vec<u64> {
    let Some(first) = redriven.iter().map(|taken| taken.answered).min() else { return Vec::new() };
    let mut counts: HashMap<u64, u64> = HashMap::new();
    for taken in redriven {
        *counts.entry(taken.answered.duration_since(first).as_secs()).or_default() += 1;
    }
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable();
    counts
}

/// Second by second, for whoever looks for the cause of a figure.
fn print_timeline(taken: &[Taken], live: &HashMap<String, Instant>) {
    let Some(begin) = live.values().min() else { return };
    let mut seconds: BTreeMap<u64, (u64, u64, Duration)> = BTreeMap::new();
    for Taken { event_id, answered } in taken {
        let meant = live.get(event_id);
        let at = meant.unwrap_or(answered).saturating_duration_since(*begin).as_secs();
        let (redriven, lively, longest) = seconds.entry(at).or_default();
        match meant {
            None => *redriven += 1,
            Some(meant) => {
                *lively += 1;
                *longest = answered.saturating_duration_since(*meant).max(*longest);
            }
        }
    }
    println!("second: redriven, live, longest of the live");
    for (at, (redriven, lively, longest)) in seconds {
        println!("{at}: {redriven}, {lively}, {}", Ms::from(longest));
    }
}

fn written(seen: &Seen, alone: &Spans, with_run: &Spans) -> String {
    let Seen { by_second, at_stop, after_stop, took } = seen;
    let planned = DEAD[0].1;
    let at = |percent: usize| count(by_second[(by_second.len() - 1) * percent / 100]);
    let mut text = table(
        &[
            "planned",
            "arrived",
            "twice",
            "asked for",
            "per second at the recipient: median",
            "p95",
            "most",
            "took",
        ],
        &[vec![
            count(planned),
            count(by_second.iter().sum()),
            "0".to_owned(),
            format!("{RATE_PER_S}/s"),
            at(50),
            at(95),
            at(100),
            format!("{:.0} s", took.as_secs_f64()),
        ]],
    );
    text += &format!(
        "\nStopped after {}; {} more arrived until the stop had taken effect, then none until it was resumed. \
         The rows of the other tenants (delivery, payload, attempt) are byte-equal before and after.\n\n",
        count(*at_stop as u64),
        count((after_stop - at_stop) as u64),
    );
    let row = |name: &str, spans: &Spans| {
        let at = |percent| spans.at(percent).to_string();
        vec![name.to_owned(), count(spans.len() as u64), at(50.0), at(95.0), at(99.0)]
    };
    let head = ["live traffic, 50/s to the same destination", "events", "p50", "p95", "p99"];
    text += &table(&head, &[row("alone", alone), row("during the run", with_run)]);
    let ratio = with_run.at(99.0).0 / alone.at(99.0).0;
    text + &format!("\nThe p99 during the run is {ratio:.2} times that without.\n")
}

async fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(300);
    while !condition() {
        assert!(Instant::now() < end, "not within five minutes: {what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
