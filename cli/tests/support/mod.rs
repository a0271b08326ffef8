//! The built `waybill`, run as anybody runs it: in a directory of its own, by its command line.

#![allow(dead_code, reason = "every test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

pub(crate) mod http;
pub(crate) mod office;
pub(crate) mod recipient;

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use tempfile::TempDir;
use waybill_domain::signature::SigningKey;

pub(crate) const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
/// The secret of the example in GitHub's documentation.
pub(crate) const CODE_SECRET: &str = "It's a Secret to Everybody";
pub(crate) const TOKEN: &str = "a-token-that-nobody-guesses";

/// Sources whose webhooks are signed with [`CODE_SECRET`] (`code`) and with [`SECRET`] (`game`). More keys of
/// `game` may follow.
pub(crate) const SOURCES: &str = r#"
[sources.code]
tenant = "acme"
scheme = "github"
secrets = ["env:CODE_SECRET"]
event_id = "header:x-github-delivery"
event_type = "lease.imported"
[sources.game]
tenant = "acme"
scheme = "standard-webhooks"
secrets = ["env:SIGNING_SECRET"]
destination = "d"
event_id = "header:webhook-id"
event_type = "/type"
"#;

/// A directory with a configuration and a data file of its own.
pub(crate) struct Home {
    pub(crate) dir: TempDir,
}

impl Home {
    /// With destination `d` of tenant `acme` at `url`, producer `billing`, and `more` lines at the end.
    pub(crate) fn with(url: &str, more: &str) -> Self {
        let home = Self { dir: tempfile::tempdir().unwrap() };
        home.write(
            "waybill.toml",
            format!(
                "[policies.default]\nmax_attempts = 3\nbase_delay = \"20ms\"\n\
                 [producers.billing]\ntenants = [\"acme\"]\ntokens = [\"env:BILLING_TOKEN\"]\n\
                 [event_types.\"renewal.*\"]\nrequire_deadline = true\n\
                 [destinations.d]\ntenants = [\"acme\"]\nurl = \"{url}\"\nsecrets = [\"env:D_SECRET\"]\n\
                 event_types = [\"lease.*\", \"renewal.*\"]\ntimeout = \"2s\"\n{more}"
            ),
        );
        home
    }

    /// With a recipient that nobody reaches.
    pub(crate) fn new() -> Self {
        Self::with("https://hooks.example.com/in", "")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waybill"));
        command.args(arguments).current_dir(self.dir.path()).stdin(Stdio::null());
        command
            .env("D_SECRET", SECRET)
            .env("BILLING_TOKEN", TOKEN)
            .env("EMPTY_TOKEN", "")
            .env("SIGNING_SECRET", SECRET)
            .env("CODE_SECRET", CODE_SECRET)
            .env("SHORT_SECRET", "too-short-for-a-secret")
            .env_remove("RUST_LOG")
            .env_remove("WAYBILL_OPERATOR")
            .env_remove("WAYBILL_TABLE");
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, b"")
    }

    /// Runs a command with standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // A command that does not read its input to the end is none of the writer's business.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
        let (out, err) = (gather(child.stdout.take().unwrap()), gather(child.stderr.take().unwrap()));
        let code = wait(&mut child).unwrap_or_else(|| panic!("{arguments:?} did not end"));
        Ran { code, out: out.join().unwrap(), err: err.join().unwrap() }
    }

    /// Runs a command whose answer nobody reads; its code and its complaints.
    pub(crate) fn run_unread(&self, arguments: &[&str]) -> (i32, String) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = self.command(arguments);
        let mut child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let err = gather(child.stderr.take().unwrap());
        (wait(&mut child).unwrap(), err.join().unwrap())
    }

    /// What `deliveries list` says, as JSON.
    pub(crate) fn deliveries(&self) -> Vec<Value> {
        let ran = self.run(&["deliveries", "list", "--output", "json"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.json()
    }

    /// What `deliveries show` says, as JSON.
    pub(crate) fn show(&self, id: &str) -> Value {
        self.run(&["deliveries", "show", id, "--output", "json"]).json().remove(0)
    }

    /// Starts `serve` on a free port, and waits until it says where.
    pub(crate) fn serve(&self, more: &[&str]) -> Serving {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path("serve.log")).unwrap();
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0", "--output", "json"]);
        command.args(more).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut first).unwrap();
        let Ok(told) = serde_json::from_str::<Value>(&first) else {
            panic!("serve did not start: {first:?} {}", self.log());
        };
        let address = told["listening"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Serving { child, address, told }
    }

    /// What `serve` logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("serve.log")).unwrap_or_default()
    }

    /// Waits until every delivery is in a state that is not open, at most for 20 s.
    pub(crate) fn wait_until_all_ended(&self, count: usize) -> Vec<Value> {
        let began = Instant::now();
        loop {
            let all = self.deliveries();
            let ended =
                all.iter().filter(|one| !["pending", "retryable"].contains(&text(one, "state"))).count();
            if ended == count {
                return all;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{ended} of {count} ended: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A text among facts.
pub(crate) fn text<'v>(facts: &'v Value, key: &str) -> &'v str {
    facts[key].as_str().unwrap_or_else(|| panic!("no text {key} in {facts}"))
}

/// How a child ended, by itself and within a minute; otherwise it is killed.
fn wait(child: &mut Child) -> Option<i32> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    None
}

fn gather(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        text
    })
}

/// A command that ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Its answer as JSON lines.
    pub(crate) fn json(&self) -> Vec<Value> {
        let read =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e} {}", self.err));
        self.out.lines().map(read).collect()
    }
}

/// A running `serve`; killed when dropped.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: String,
    pub(crate) told: Value,
}

impl Serving {
    /// SIGTERM, and how it ended.
    pub(crate) fn stop(mut self) -> i32 {
        self.signal("TERM");
        wait(&mut self.child).expect("it ends by itself")
    }

    /// How it ended without being told to.
    pub(crate) fn ended(mut self) -> i32 {
        wait(&mut self.child).expect("it ends by itself")
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Publishes over HTTP with the right token.
    pub(crate) fn publish(&self, event: impl AsRef<[u8]>) -> http::Answer {
        let authorization = format!("Bearer {TOKEN}");
        let headers = [("content-type", "application/json"), ("authorization", &*authorization)];
        http::post(&self.address, "/v1/events", &headers, event.as_ref())
    }

    /// Signs with Standard Webhooks under [`SECRET`], `ago` before now, and sends.
    pub(crate) fn signed(&self, path: &str, id: &str, ago: Duration, body: &[u8]) -> http::Answer {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let timestamp = now.checked_sub(ago).unwrap().as_secs();
        let key = SigningKey::parse("secret", SECRET).unwrap();
        let headers = [
            ("webhook-id", id),
            ("webhook-timestamp", &timestamp.to_string()),
            ("webhook-signature", &key.sign(id, timestamp.try_into().unwrap(), body)),
            ("content-type", "application/json"),
        ];
        http::post(&self.address, path, &headers, body)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
