//! `docs/CLI.md` is what the commands say of themselves. `make reference` writes it anew.

#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

use std::fmt::Write as _;
use std::process::Command;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/CLI.md");

const HEAD: &str = "# The command line\n\n\
    What `waybill` says of itself with `--help`: written by `make reference`, and held by a test. The README tells\n\
    when to use what; [`RUNBOOK.md`](RUNBOOK.md) the same at 2 a.m.\n";

fn help(command: &[String]) -> String {
    let mut waybill = Command::new(env!("CARGO_BIN_EXE_waybill"));
    let ran = waybill.args(command).arg("--help").env_remove("WAYBILL_OPERATOR").output().unwrap();
    assert!(ran.status.success(), "waybill {command:?} --help");
    String::from_utf8(ran.stdout).unwrap()
}

/// The names below a command, as its help lists them.
fn below(help: &str) -> Vec<String> {
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

fn write(command: &[String], into: &mut String) {
    let help = help(command);
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let name = command.iter().fold("waybill".to_owned(), |name, part| format!("{name} {part}"));
    write!(into, "\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n")).unwrap();
    for name in below(&help) {
        let mut command = command.to_vec();
        command.push(name);
        write(&command, into);
    }
}

#[test]
fn the_reference_says_what_the_commands_say() {
    let mut said = HEAD.to_owned();
    write(&[], &mut said);
    if std::env::var_os("WAYBILL_WRITE_REFERENCE").is_some() {
        std::fs::write(FILE, &said).unwrap();
    }
    let written = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(written == said, "docs/CLI.md is not what the commands say: `make reference` writes it anew");
}
