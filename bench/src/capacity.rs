//! What `waybill capacity --from-ledger` predicts when a recipient is back, beside what comes.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::machine;
use crate::publisher::{self, Addressee};
use crate::recipient::{Recipient, Taken};
use crate::report::{count, table};
use crate::serve::Serve;

const TO: Addressee =
    Addressee { tenant: "acme", destination: "books", deadline: Some(Duration::from_secs(600)) };
const PER_S: u32 = 8;
const CONCURRENCY: usize = 8;
const SERVICE_TIME: Duration = Duration::from_millis(400);
/// Traffic before the outage: what is measured.
const USUAL: Duration = Duration::from_secs(30);
const OUTAGE: Duration = Duration::from_secs(30);
/// After the recipient is back; a drain that is not seen by then has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// What was predicted, and what came.
struct Seen {
    facts: Value,
    predicted_at: Instant,
    back: Instant,
}

/// Measures and writes the section.
pub(crate) async fn measure() {
    let machine = machine::described();
    let recipient = Recipient::start(SERVICE_TIME).await;
    let serve = Serve::start(&config(&recipient.url));
    let is_over = AtomicBool::new(false);
    let traffic =
        publisher::at_rate(serve.address, "capacity", TO, PER_S, |_| !is_over.load(Ordering::SeqCst));
    let begin = Instant::now();
    let story = async {
        let seen = outage(&serve, &recipient).await;
        // Whoever waits is counted afterwards; until then roughly.
        let came = || (begin.elapsed().as_secs_f64() * f64::from(PER_S)) as usize;
        while recipient.count() + CONCURRENCY / 2 < came() {
            assert!(seen.back.elapsed() < PATIENCE, "the backlog drains");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        is_over.store(true, Ordering::SeqCst);
        seen
    };
    let (sent, seen) = tokio::join!(traffic, story);
    print_timeline(&seen, &recipient.taken_after(0));
    crate::report::write(
        "capacity",
        &format!("{machine}\n{}", written(&seen, &sent, &recipient.taken_after(0))),
    );
}

fn config(url: &str) -> String {
    format!(
        "[destinations.books]\ntenants = [\"acme\"]\nurl = \"{url}\"\nsecrets = [\"env:BENCH_SECRET\"]\n\
         timeout = \"5s\"\nconcurrency = {CONCURRENCY}\nsuspend_after = 5\n"
    )
}

/// The recipient goes, and is suspended; when it is back, a person asks what to expect, and lifts that.
async fn outage(serve: &Serve, recipient: &Recipient) -> Seen {
    tokio::time::sleep(USUAL).await;
    recipient.go();
    tokio::time::sleep(OUTAGE).await;
    recipient.come_back().await;
    let predicted_at = Instant::now();
    let facts = serve.command(&["capacity", "--from-ledger", "--destination", TO.destination]).remove(0);
    let holds = serve.command(&["hold", "list"]);
    let suspended = holds.iter().find(|hold| hold["reason"] == "suspended").expect("it was suspended");
    let hold = suspended["hold"].as_str().expect("a hold has an ID");
    serve.command(&["hold", "lift", hold, "--why", "they are back"]);
    Seen { facts, predicted_at, back: Instant::now() }
}

fn written(seen: &Seen, sent: &HashMap<String, Instant>, taken: &[Taken]) -> String {
    let waits_at = |at: Instant| {
        let came = sent.values().filter(|meant| **meant <= at).count();
        came - taken.iter().filter(|taken| taken.answered <= at).count()
    };
    let backlog = waits_at(seen.predicted_at);
    let drained =
        (0..).map(|n| seen.back + Duration::from_millis(50 * n)).find(|at| waits_at(*at) <= CONCURRENCY);
    let drain_s = drained.map_or(0.0, |at| (at - seen.back).as_secs_f64());
    let deadline_s = seconds(&seen.facts["deadline_ms"]);
    let slack_s = deadline_s - (seen.back - seen.predicted_at).as_secs_f64() - drain_s;
    let predicted = [&seen.facts["drain_ms"], &seen.facts["slack_ms"]].map(seconds);
    let predicted_backlog = seen.facts["backlog"].as_f64().expect("a backlog");
    let off = |predicted: f64, seen: f64| format!("{:+.0} %", (predicted - seen) / seen * 100.0);
    let row = |name: &str, cells: [String; 3]| [vec![name.to_owned()], cells.to_vec()].concat();
    let s = |seconds: f64| format!("{seconds:.1} s");
    let rows = [
        row("predicted", [count(predicted_backlog as u64), s(predicted[0]), s(predicted[1])]),
        row("seen", [count(backlog as u64), s(drain_s), s(slack_s)]),
        row(
            "the prediction is off by",
            [
                off(predicted_backlog, backlog as f64),
                format!("**{}**", off(predicted[0], drain_s)),
                off(predicted[1], slack_s),
            ],
        ),
    ];
    let input = |name: &str| {
        let rounded = seen.facts[name].as_f64().map_or(0.0, |value| (value * 10.0).round() / 10.0);
        format!("`{name}` {rounded} ({})", seen.facts["inputs"][name]["how"].as_str().unwrap_or(""))
    };
    let inputs =
        ["arrivals_per_s", "service_time_ms", "concurrency", "duplicates_percent", "outage_ms"].map(input);
    let head = ["", "backlog", "drained after the return", "slack to the nearest deadline then"];
    format!("{}\nReckoned from: {}.\n", table(&head, &rows), inputs.join("; "))
}

/// Second by second from the return on, for whoever looks for the cause of a figure.
fn print_timeline(seen: &Seen, taken: &[Taken]) {
    let since = taken.iter().filter_map(|taken| taken.answered.checked_duration_since(seen.back));
    let mut by_second: BTreeMap<u64, u64> = BTreeMap::new();
    since.for_each(|since| *by_second.entry(since.as_secs()).or_default() += 1);
    println!("answered in each second from the return on: {:?}", by_second.values().collect::<Vec<_>>());
}

fn seconds(ms: &Value) -> f64 {
    ms.as_f64().expect("a span in ms") / 1000.0
}
