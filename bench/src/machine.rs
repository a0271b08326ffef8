//! The machine that the figures are of, as the system itself tells it, and what a process used.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::span::Spans;

/// Ticks of a processor's time per second in `/proc`: fixed on Linux.
const TICKS_PER_S: f64 = 100.0;

/// What a page of SQLite holds, unless a file says otherwise; Waybill's do not.
const PAGE_BYTES: u64 = 4096;

/// One paragraph: when, and on which machine.
pub(crate) fn described() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory_kb: u64 = field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0);
    let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = system.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("unknown");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let syncs = syncs();
    format!(
        "Measured on {}: {cores} cores ({}), {:.0} GiB of memory, {} (Linux {}); one `fdatasync` after 4 KiB \
         appended takes {} (median) to {} (99th of 100). Load of the machine when it began, from whatever \
         else runs there: {load}.\n",
        jiff::Timestamp::now().strftime("%Y-%m-%d"),
        field("/proc/cpuinfo", "model name"),
        memory_kb as f64 / 1024.0 / 1024.0,
        system.trim_matches('"'),
        kernel.trim(),
        syncs.at(50.0),
        syncs.at(99.0),
    )
}

fn field(file: &str, name: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    found.unwrap_or("unknown").trim().to_owned()
}

/// How long the disk takes to make something durable.
fn syncs() -> Spans {
    let folder = scratch();
    let mut file = File::create(folder.path().join("sync")).expect("a file");
    let mut spans = Spans::default();
    for _ in 0..200 {
        let start = Instant::now();
        file.write_all(&[7; PAGE_BYTES as usize]).and_then(|()| file.sync_data()).expect("it is written");
        spans.add(start.elapsed());
    }
    spans
}

/// A folder of its own on the disk that was built on, removed when dropped: `/tmp` may be memory.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(built()).expect("a folder")
}

/// Where this build's programs lie.
pub(crate) fn built() -> PathBuf {
    let this = std::env::current_exe().expect("this program has a path");
    this.parent().expect("and a folder").to_owned()
}

/// What this process has read and written by system calls.
#[derive(Clone, Copy)]
pub(crate) struct Io {
    read_bytes: u64,
    written_bytes: u64,
}

impl Io {
    /// Until now.
    pub(crate) fn now() -> Self {
        let of = |name| field("/proc/self/io", name).parse().expect("Linux counts it");
        Self { read_bytes: of("rchar"), written_bytes: of("wchar") }
    }

    /// Pages read and written since `earlier`.
    pub(crate) fn pages_since(self, earlier: Self) -> (u64, u64) {
        let pages = |now: u64, then: u64| (now - then).div_ceil(PAGE_BYTES);
        (pages(self.read_bytes, earlier.read_bytes), pages(self.written_bytes, earlier.written_bytes))
    }
}

/// Processor time that a process has used, in user and in kernel mode.
pub(crate) fn cpu(process: impl AsRef<Path>) -> Duration {
    let stat = std::fs::read_to_string(Path::new("/proc").join(process).join("stat")).unwrap_or_default();
    // Behind the name, which may hold anything, in brackets: utime and stime are fields 14 and 15.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks: f64 = fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Duration::from_secs_f64(ticks / TICKS_PER_S)
}
