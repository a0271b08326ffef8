//! The same load on a plain peer: a BullMQ worker on Redis (`bench/peer/peer.mjs`).

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::load::{PACED, PACED_PER_S, Rates, SERVICE_TIME, SUSTAINED, WARM_UP};
use crate::machine;
use crate::recipient::{Recipient, Taken};
use crate::report::{count, table};
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
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !(there("redis-server") && there("npm")) {
        println!("peer: redis-server or npm is not installed; its section stays as it was");
        return;
    }
    let machine = machine::described();
    let install = ["ci", "--no-audit", "--no-fund", "--silent"];
    let installed = Command::new("npm").args(install).current_dir(folder()).status().expect("npm runs");
    assert!(installed.success(), "BullMQ can be installed");
    let throughput = full_load().await;
    let latency = paced().await;
    crate::report::write("peer", &format!("{machine}\n{throughput}\n{latency}"));
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
    let head = ["events at 200/s", "p50", "p95", "p99", "longest"];
    let at = |percent| latencies.at(percent).to_string();
    let row = vec![count(latencies.len() as u64), at(50.0), format!("**{}**", at(95.0)), at(99.0), at(100.0)];
    table(&head, &[row])
}
