//! `waybill serve` of the same build, as its users run it, and the command line beside it.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::machine;

const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// A running `serve` with a data file of its own; killed when dropped.
pub(crate) struct Serve {
    child: Child,
    folder: tempfile::TempDir,
    pub(crate) address: SocketAddr,
}

impl Serve {
    /// Starts it under `config`, whose secrets are `env:BENCH_SECRET`.
    pub(crate) fn start(config: &str) -> Self {
        let folder = machine::scratch();
        std::fs::write(folder.path().join("waybill.toml"), config).expect("the configuration is written");
        let (child, address) = launch(&folder);
        Self { child, folder, address }
    }

    /// Kills it, as a machine that fails does, and starts it anew on the same file.
    pub(crate) fn kill_and_start(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it can be killed");
        (self.child, self.address) = launch(&self.folder);
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("waybill.db")
    }

    /// A path for a file that goes when this goes.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// What `waybill` says about this data file, as an operator gives it beside `serve`.
    pub(crate) fn command(&self, arguments: &[&str]) -> Vec<Value> {
        let mut command = waybill();
        command.args(["--output", "json", "--operator", "bench", "--backend"]);
        command.arg(format!("embedded:{}", self.data().display())).args(arguments);
        let done = command.output().expect("waybill runs");
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "waybill {}: {err}", arguments.join(" "));
        out.lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect()
    }

    /// The name of its folder in `/proc`.
    pub(crate) fn process(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts it in its folder; where it listens is for the system to choose.
fn launch(folder: &tempfile::TempDir) -> (Child, SocketAddr) {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(folder.path().join("serve.log"))
        .expect("a log");
    let mut command = waybill();
    command.args(["--output", "json", "serve", "--listen", "127.0.0.1:0", "--allow-local", "--config"]);
    command.arg(folder.path().join("waybill.toml")).arg("--data").arg(folder.path().join("waybill.db"));
    command.stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().expect("waybill lies beside this program: make bench builds it");
    let mut line = String::new();
    let out = child.stdout.take().expect("it is piped");
    BufReader::new(out).read_line(&mut line).expect("it says where it listens");
    let facts: Value = serde_json::from_str(&line).expect("it says it in JSON");
    let url = facts["listening"].as_str().expect("where it listens");
    let address = url.trim_start_matches("http://").parse().expect("an address");
    (child, address)
}

fn waybill() -> Command {
    let mut command = Command::new(machine::built().join("waybill"));
    command.env("BENCH_SECRET", SECRET);
    command
}
