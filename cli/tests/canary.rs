//! A canary payload and canary secrets go through the whole system, and stand nowhere but where they
//! belong: the payload at its own place in the ledger and with its recipient, the secrets nowhere.

#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::Connection;
use support::recipient::Recipient;
use support::{CODE_SECRET, Home, SECRET, SOURCES, Serving, TOKEN, http, text};

/// Part of every payload.
const PAYLOAD: &str = "CANARY-PAYLOAD-5c1e";

/// What must not be found: the payload's canary, and every secret with what is made of it.
fn canaries(recipient: &Recipient) -> BTreeSet<String> {
    let signatures = recipient.requests();
    let signatures = signatures.iter().map(|got| got.header("webhook-signature")[3..].to_owned());
    let known = [PAYLOAD, SECRET, &SECRET[6..], TOKEN, CODE_SECRET].map(str::to_owned);
    known.into_iter().chain(signatures).collect()
}

/// Where a text begins in bytes, as it is or encoded in base64.
fn found(bytes: &[u8], canary: &str) -> bool {
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    // Of three bytes that may come before it, and without the digits that its neighbours share.
    let encoded = (0..3).map(|before| {
        let digits = STANDARD.encode([&vec![b' '; before], canary.as_bytes()].concat());
        let end = digits.trim_end_matches('=').len() - 1;
        digits[before + usize::from(before > 0)..end].to_owned()
    });
    has(canary.as_bytes()) || encoded.into_iter().any(|digits| has(digits.as_bytes()))
}

fn event(id: &str, more: &str) -> String {
    format!(
        r#"{{"event_id":"{id}","tenant":"acme","type":"lease.signed",{more}"payload":{{"iban":"{PAYLOAD}","n":1}}}}"#
    )
}

/// Everything that was written where somebody reads it.
#[derive(Default)]
struct Written(Vec<(String, Vec<u8>)>);

impl Written {
    fn run(&mut self, home: &Home, line: &[&str], code: i32) -> String {
        self.feed(home, line, "", code)
    }

    /// Every command as a table and as JSON: neither may say more than the other.
    fn feed(&mut self, home: &Home, line: &[&str], input: &str, code: i32) -> String {
        let line = [line, &["--operator", "maria"]].concat();
        let table = home.run_with(&line, input.as_bytes());
        assert_eq!(table.code, code, "{line:?}: {}{}", table.out, table.err);
        let json = home.run_with(&[&line[..], &["--output", "json"]].concat(), input.as_bytes());
        for (how, ran) in [("table", &table), ("json", &json)] {
            self.0.push((format!("{line:?} as {how}"), format!("{}{}", ran.out, ran.err).into_bytes()));
        }
        json.out
    }

    fn answer(&mut self, what: &str, answer: &http::Answer) {
        self.0.push((what.to_owned(), format!("{}\n{}", answer.head, answer.body).into_bytes()));
    }

    /// The commands that were run.
    fn commands(&self) -> BTreeSet<String> {
        let lines = self.0.iter().filter_map(|(what, _)| what.strip_prefix("[\"")?.split('"').next());
        lines.map(str::to_owned).collect()
    }
}

/// What comes in at the doors, good and bad.
fn knock(serving: &Serving, written: &mut Written) {
    for id in ["fine", "busy-503", "refused-400", "locked-401", "gone-410", "moved-302", "odd-418"] {
        let answer = serving.publish(event(id, ""));
        assert_eq!(answer.status, 202);
        written.answer(id, &answer);
    }
    written.answer(
        "the same again, with another payload",
        &serving.publish(event("fine", "").replace(":1}", ":2}")),
    );
    written.answer("cut off", &serving.publish(&event("cut", "")[..90]));
    written.answer("an unknown field", &serving.publish(event("odd", "\"colour\":1,")));
    written.answer("a wrong field", &serving.publish(event("odd", "\"deadline\":\"soon\",")));
    let json = [("content-type", "application/json"), ("authorization", "Bearer nobody-s-token")];
    written
        .answer("no token", &http::post(&serving.address, "/v1/events", &json, event("odd", "").as_bytes()));
    let marked = [("x-hub-signature-256", PAYLOAD), ("x-github-delivery", "d-1")];
    let code = http::post(&serving.address, "/v1/sources/code", &marked, PAYLOAD.as_bytes());
    written.answer("not signed", &code);
    let path = format!("/v1/{PAYLOAD}?{PAYLOAD}");
    written.answer("no such path", &http::post(&serving.address, &path, &[], PAYLOAD.as_bytes()));
    let body = format!("{{\"type\":\"lease.imported\",\"data\":\"{PAYLOAD}\"}}");
    let answer = serving.signed("/v1/sources/game", "game-1-503", Duration::ZERO, body.as_bytes());
    assert_eq!(answer.status, 202, "{}", answer.body);
    written.answer("a signed webhook", &answer);
}

const MORE: &str = r#"headers = { x-api-key = "env:BILLING_TOKEN", authorization = "env:CODE_SECRET" }
keep_result = true
suspend_after = 50
concurrency = 2
metrics = true
"#;

#[test]
fn c117_canaries_stand_nowhere_but_where_they_belong() {
    let recipient = Recipient::mirroring(&["x-api-key", "webhook-signature"]);
    let home = Home::with(&recipient.url, &format!("{MORE}{SOURCES}"));
    let serving = home.serve(&["--allow-local", "--operator", "maria"]);
    let mut written = Written::default();
    knock(&serving, &mut written);
    let lines = [event("by-line", ""), event("by-line-2", "")[..80].to_owned(), event("x", "\"colour\":1,")];
    written.feed(&home, &["publish"], &lines.join("\n"), 2);
    home.wait_until_all_ended(9);

    let listed = written.run(&home, &["deliveries", "list"], 0);
    let ids: Vec<String> = listed
        .lines()
        .map(|line| text(&serde_json::from_str(line).unwrap(), "delivery_id").to_owned())
        .collect();
    assert_eq!(ids.len(), 9);
    let shown: Vec<String> =
        ids.iter().map(|id| written.run(&home, &["deliveries", "show", id], 0)).collect();
    assert!(
        shown.iter().all(|one| one.contains("[redacted]")),
        "an echo is evidence, or a result: {shown:?}"
    );
    operate(&home, &mut written);

    let scrape = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    written.0.push(("/metrics".to_owned(), http::text(&serving.address, scrape.as_bytes()).into_bytes()));
    assert_eq!(serving.stop(), 0);
    written.0.push(("the log".to_owned(), home.log().into_bytes()));
    let help = home.run(&["--help"]).out;
    let commands = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let commands: BTreeSet<String> =
        commands.map_while(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    // `serve` is what is looked at, and `rehearse` has a story of its own, without these canaries.
    let run = written.commands();
    let left: Vec<&String> = commands.difference(&run).collect();
    assert_eq!(left, ["help", "rehearse", "serve"]);

    for (name, bytes) in of_ledger(&home) {
        written.0.push((name, bytes));
    }
    let canaries = canaries(&recipient);
    assert!(canaries.len() >= 5 + 9, "each delivery has a signature of its own");
    for (place, bytes) in &written.0 {
        for canary in &canaries {
            assert!(!found(bytes, canary), "{canary} is in {place}:\n{}", String::from_utf8_lossy(bytes));
        }
    }
}

/// Whatever an operator may do.
fn operate(home: &Home, written: &mut Written) {
    let json = |out: &str| serde_json::from_str::<serde_json::Value>(out.lines().next().unwrap()).unwrap();
    written.run(home, &["dead-letters", "summary"], 0);
    let dead = written.run(home, &["dead-letters", "list"], 0);
    let dead: Vec<String> = dead
        .lines()
        .map(|line| text(&serde_json::from_str(line).unwrap(), "delivery_id").to_owned())
        .collect();
    assert!(dead.len() >= 6, "{dead:?}");
    written.run(home, &["dead-letters", "close", &dead[0], "--why", "sent by hand"], 0);
    let resolve =
        ["dead-letters", "resolve", "--applied", "--against-evidence", &dead[1], "--why", "it stands"];
    written.run(home, &resolve, 0);
    written.run(home, &["destinations", "list"], 0);
    written.run(home, &["schedules", "list"], 0);
    written.run(home, &["doctor", "--allow-local"], 0);
    written.run(home, &["destinations", "show", "d"], 0);
    written.run(home, &["hold", "add", "--destination", "d", "--why", "let them work"], 0);
    let hold = json(&written.run(home, &["hold", "list"], 0));
    written.run(home, &["redrive", "plan", "--permanent-reviewed", "mended", "--save", "plan.json"], 0);
    let start = ["redrive", "start", "plan.json", "--rate", "10/s", "--why", "mended"];
    let run = json(&written.run(home, &start, 0));
    let run = text(&run, "run");
    written.run(home, &["redrive", "status", run], 0);
    written.run(home, &["redrive", "stop", run, "--why", "a moment"], 0);
    written.run(home, &["redrive", "resume", run, "--why", "go on"], 0);
    let hold = text(&hold, "hold");
    written.run(home, &["hold", "lift", hold, "--concurrency", "1", "--why", "one at a time"], 0);
    written.run(home, &["hold", "lift", hold, "--why", "they are done"], 0);
    written.run(home, &["probe", "d", "--allow-local"], 1);
    written.run(
        home,
        &[
            "capacity",
            "--arrivals-per-s",
            "1",
            "--outage",
            "1h",
            "--service-time",
            "1s",
            "--concurrency",
            "4",
            "--deadline",
            "30m",
        ],
        0,
    );
    written.run(home, &["capacity", "--from-ledger", "--destination", "d"], 1);
    written.run(home, &["config", "check", "--allow-local"], 0);
    written.run(home, &["config", "show"], 0);
    written.run(home, &["config", "history"], 0);
    written.run(home, &["audit", "list"], 0);
    written.run(home, &["audit", "verify"], 0);
    for (line, code) in [
        (["deliveries", "show", "whd_00000000000000000000000000"], 1),
        (["destinations", "show", "nobody"], 2),
        (["redrive", "status", "rdr_00000000000000000000000000"], 1),
    ] {
        written.run(home, &line, code);
    }
}

/// The data file without the place of the payloads; it is compacted, so that nothing that was deleted
/// is left in it.
fn of_ledger(home: &Home) -> Vec<(String, Vec<u8>)> {
    let data = home.path("waybill.db");
    let store = Connection::open(&data).unwrap();
    let payloads: i64 = store
        .query_row("SELECT count(*) FROM payload WHERE instr(bytes, ?) > 0", [PAYLOAD.as_bytes()], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(payloads, 9, "the payload stands at its own place");
    store.execute("DELETE FROM payload", []).unwrap();
    store.execute("VACUUM", []).unwrap();
    store.pragma_update(None, "journal_mode", "DELETE").unwrap();
    drop(store);
    let files = fs::read_dir(home.dir.path()).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.display().to_string(), fs::read(path).unwrap())).collect()
}
