//! The same load on a plain peer: a BullMQ worker on Redis (`bench/peer/peer.mjs`).

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::load::{PACED, PACED_PER_S, Rates, SERVICE_TIME, SUSTAINED, WARM_UP};
use crate::machine;
use crate::recipient::{Recipient, Taken};
use crate::report::{self, count, table};
use crate::span::Spans;

/// A process that is killed when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).spawn().expect("it starts"))
    }

    fn cpu(&self) -> Duration {
        machine::cpu(self.0.id().to_string())
    }
}

/// Measures and writes the section, if what it needs is there.
pub(crate) async fn measure() {
    let versions = ["redis-server", "node", "npm"].map(version);
    let [Some(redis), Some(node), Some(_)] = versions else {
        println!("peer: redis-server, node or npm is not installed; its section stays as it was");
        return;
    };
    let machine = format!("{} {redis}; Node {node}.\n", machine::described().trim_end());
    let install = ["ci", "--no-audit", "--no-fund", "--silent"];
    let installed = Command::new("npm").args(install).current_dir(folder()).status().expect("npm runs");
    assert!(installed.success(), "BullMQ can be installed");
    let throughput = full_load().await;
    let latency = paced().await;
    crate::report::write("peer", &format!("{machine}\n{throughput}\n{latency}"));
    let text = format!("{machine}\n{throughput}\n{latency}\n{}", ratios());
    crate::report::write("peer", &text);
}

/// What `serve` does, by what the peer does; from both sections as they stand.
fn ratios() -> String {
    let of =
        |section: &str| report::numbers(section).into_iter().filter(|row| row.iter().any(Option::is_some));
    let (ours, theirs): (Vec<_>, Vec<_>) = (of("serve").collect(), of("peer").collect());
    let ratio = |table: usize, column: usize| {
        let at = |rows: &[Vec<Option<f64>>]| rows.get(table)?.get(column).copied().flatten();
        let ratio = at(&ours).zip(at(&theirs)).map(|(ours, theirs)| format!("{:.2}", ours / theirs));
        ratio.unwrap_or_else(|| "-".to_owned())
    };
    let head =
        ["`serve` by the peer", "deliveries/s", "processor time of each", "p50 at 200/s", "p95", "p99"];
    let row = ["ratio".to_owned(), ratio(0, 0), ratio(0, 5), ratio(1, 1), ratio(1, 2), ratio(1, 3)];
    table(&head, &[row.to_vec()])
}

/// What a program says of its version; `None` where it does not run.
fn version(program: &str) -> Option<String> {
    let said = Command::new(program).arg("--version").output().ok().filter(|said| said.status.success())?;
    let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    // Redis says more than its version.
    Some(said.split(" sha=").next().unwrap_or_default().to_owned())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peer")
}

/// A Redis of its own, with the worker on it.
struct Peer {
    port: String,
    worker: Process,
    redis: Process,
    _folder: tempfile::TempDir,
}

impl Peer {
    async fn start(url: &str) -> Self {
        // Free a moment ago; nothing else on this machine is expected to take it.
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let (port, folder) = (port.to_string(), machine::scratch());
        let mut redis = Command::new("redis-server");
        redis.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
        redis
            .args(["--appendfsync", "always", "--maxmemory-policy", "noeviction", "--dir"])
            .arg(folder.path());
        let redis = Process::start(&mut redis);
        let worker = Process::start(&mut node(&["worker", &port, url]));
        tokio::time::sleep(Duration::from_secs(2)).await;
        Self { port, worker, redis, _folder: folder }
    }

    fn producer(&self, mode: &str, more: &[String]) -> Process {
        let mut command = node(&[mode, &self.port]);
        Process::start(command.args(more))
    }
}

fn node(arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.arg("peer.mjs").args(arguments).current_dir(folder());
    command
}

async fn full_load() -> String {
    let recipient = Recipient::start(SERVICE_TIME).await;
    let peer = Peer::start(&recipient.url).await;
    let begin = Instant::now() + WARM_UP;
    let producer = peer.producer("load", &[(WARM_UP + SUSTAINED).as_secs().to_string()]);
    tokio::time::sleep_until(begin.into()).await;
    let cpu = || [peer.worker.cpu() + peer.redis.cpu(), producer.cpu()];
    let before = cpu();
    tokio::time::sleep_until((begin + SUSTAINED).into()).await;
    let after = cpu();
    let rates = Rates::of(&recipient.taken_after(0), begin);
    assert!(rates.delivered > 0, "the peer delivers");
    let share =
        |n: usize| format!("{:.2} cores", (after[n] - before[n]).as_secs_f64() / SUSTAINED.as_secs_f64());
    let each = (after[0] - before[0]).as_secs_f64() * 1e6 / rates.delivered as f64;
    let [mean, slowest, median, fastest] = rates.cells();
    let head = [
        "deliveries/s",
        "slowest second",
        "median",
        "fastest",
        "worker and Redis used",
        "each",
        "producer used",
    ];
    table(&head, &[vec![mean, slowest, median, fastest, share(0), format!("{each:.0} µs"), share(1)]])
}

async fn paced() -> String {
    let recipient = Recipient::start(SERVICE_TIME).await;
    let peer = Peer::start(&recipient.url).await;
    let (wall, instant) = (SystemTime::now(), Instant::now());
    let mut producer = peer.producer("paced", &[PACED.as_secs().to_string(), PACED_PER_S.to_string()]);
    let until = instant + PACED + Duration::from_secs(10);
    while Instant::now() < until && producer.0.try_wait().is_ok_and(|ended| ended.is_none()) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let meant = |taken: &Taken| {
        let us: u64 = taken.event_id.rsplit('-').next()?.parse().ok()?;
        let since = (SystemTime::UNIX_EPOCH + Duration::from_micros(us)).duration_since(wall).ok()?;
        Some(taken.answered.saturating_duration_since(instant + since))
    };
    let latencies: Spans = recipient.taken_after(0).iter().filter_map(meant).collect();
    assert!(latencies.len() > 0, "the peer delivers");
    let head = ["events at 200/s", "p50", "p95", "p99", "longest"];
    let at = |percent| latencies.at(percent).to_string();
    let row = vec![count(latencies.len() as u64), at(50.0), format!("**{}**", at(95.0)), at(99.0), at(100.0)];
    table(&head, &[row])
}
