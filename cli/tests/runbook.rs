//! Every command of `docs/RUNBOOK.md`, run as it is printed, with the exit code that is printed beside it.
//!
//! Each section finds a data file as an operator would: dead letters of several reasons and two tenants,
//! and a configuration with a history. Words in capitals are what the operator looks up.

#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

mod support;

use std::fs;
use std::path::Path;

use support::office::{BOSS, Office};
use support::{Home, Ran, text};

const RUNBOOK: &str = include_str!("../../docs/RUNBOOK.md");

/// A command as it is printed, and how it is to end.
struct Printed {
    section: String,
    line: String,
    code: i32,
}

fn printed() -> Vec<Printed> {
    let (mut section, mut is_inside, mut all) = (String::new(), false, Vec::new());
    for line in RUNBOOK.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.to_owned();
        } else if line.starts_with("```") {
            is_inside = line == "```console";
        } else if is_inside {
            let (command, code) =
                line.split_once("# exit ").unwrap_or_else(|| panic!("no exit code: {line}"));
            let code = code.split(' ').next().and_then(|code| code.parse().ok());
            let code = code.unwrap_or_else(|| panic!("no exit code: {line}"));
            all.push(Printed { section: section.clone(), line: command.trim().to_owned(), code });
        }
    }
    all
}

/// The words of a line, as a shell reads them.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (nth, part) in line.split('"').enumerate() {
        match nth % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// One operator at one data file.
struct Desk {
    home: Home,
}

impl Desk {
    /// Begins where `office` is.
    fn like(office: &Office) -> Self {
        let home = Home { dir: tempfile::tempdir().unwrap() };
        for entry in fs::read_dir(office.home.dir.path()).unwrap() {
            let from = entry.unwrap().path();
            fs::copy(&from, home.path(Path::new(&from).file_name().unwrap().to_str().unwrap())).unwrap();
        }
        Self { home }
    }

    fn run(&self, words: &[&str]) -> Ran {
        let who = if words.contains(&"--operator") { [].as_slice() } else { &["--operator", BOSS] };
        self.home.run(&[who, words].concat())
    }

    /// What a listing says first of `key`.
    fn first(&self, listing: &[&str], key: &str) -> Option<String> {
        let ran = self.run(&[listing, &["--output", "json"]].concat());
        assert_eq!(ran.code, 0, "{listing:?}: {}", ran.err);
        ran.json().first().map(|facts| text(facts, key).to_owned())
    }

    /// What an operator would write for a word in capitals.
    fn meant(&self, word: &str) -> String {
        match word {
            "DELIVERY" => self.first(&["dead-letters", "list"], "delivery_id").expect("a dead letter"),
            "HOLD" => self.first(&["hold", "list"], "hold").unwrap_or_else(|| {
                assert_eq!(self.run(&["hold", "add", "--all", "--why", "to be lifted"]).code, 0);
                self.meant(word)
            }),
            "RUN" => self.first(&["redrive", "status"], "run").unwrap_or_else(|| {
                let plan = ["redrive", "plan", "--tenant", "acme", "--save", "of-test.json"];
                assert_eq!(self.run(&plan).code, 0);
                let start = ["redrive", "start", "of-test.json", "--rate", "1/s", "--why", "to be stopped"];
                assert_eq!(self.run(&start).code, 0);
                self.meant(word)
            }),
            "FILE" => "corrected.toml".to_owned(),
            word => word.to_owned(),
        }
    }
}

#[test]
fn every_command_of_the_runbook_ends_as_it_says() {
    let office =
        Office::with(&["acme/down-1", "acme/down-2", "acme/refused-1", "acme/locked-1", "other/down-3"]);
    let toml = fs::read_to_string(office.home.path("waybill.toml")).unwrap();
    office.home.write("waybill.toml", toml.replacen("max_attempts = 3", "max_attempts = 4", 1));
    let second = office.by(BOSS, &["config", "apply", "--allow-local", "--why", "one attempt more"]);
    assert_eq!(second.code, 0, "{}", second.err);
    let both = toml.replacen("[\"env:D_SECRET\"]", "[\"env:SIGNING_SECRET\", \"env:D_SECRET\"]", 1);
    office.home.write("corrected.toml", both);

    let mut at: Option<(String, Desk)> = None;
    let all = printed();
    assert!(all.len() > 40, "the runbook has its commands in blocks marked console: {}", all.len());
    for Printed { section, line, code } in all {
        let desk = match at.take() {
            Some((title, desk)) if title == section => desk,
            _ => Desk::like(&office),
        };
        let words: Vec<String> = words(&line).iter().map(|word| desk.meant(word)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(words[0], "waybill", "{section}: {line}");
        let ran = desk.run(&words[1..]);
        assert_eq!(ran.code, code, "{section}: {line}\n{}{}", ran.out, ran.err);
        at = Some((section, desk));
    }
}

#[test]
fn the_metrics_that_the_runbook_names_are_there() {
    let known: Vec<&str> = waybill_service::instruments::ALL.iter().map(|one| one.name).collect();
    let titles = RUNBOOK.lines().filter(|line| line.starts_with("## ") && line.contains('`'));
    let named: Vec<&str> = titles.flat_map(|title| title.split('`').skip(1).step_by(2)).collect();
    assert!(named.len() >= 8, "{named:?}");
    assert!(named.iter().all(|name| known.contains(name)), "{named:?} are not all among {known:?}");
}
