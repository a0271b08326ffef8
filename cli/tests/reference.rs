//! `docs/CLI.md` is what the commands say of themselves, `docs/CONFIGURATION.md` what the configuration's reader
//! says of the keys that it takes. `make reference` writes both anew.

#![allow(clippy::unwrap_used, reason = "only tests are built with this")]

use std::fmt::Write as _;
use std::process::Command;

use waybill_domain::identity::NAME_RULE;
use waybill_domain::time::DURATION_RULE;
use waybill_service::config_file::reference::{Key, Kind, Table, Unwritten, reference};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

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

/// Holds a page of `docs` to what is said, or writes it.
fn hold(page: &str, said: &str) {
    let file = format!("{DOCS}/{page}");
    if std::env::var_os("WAYBILL_WRITE_REFERENCE").is_some() {
        std::fs::write(&file, said).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(written == said, "docs/{page} is not what is said: `make reference` writes it anew");
}

#[test]
fn the_reference_says_what_the_commands_say() {
    let mut said = HEAD.to_owned();
    write(&[], &mut said);
    hold("CLI.md", &said);
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    let is_mark = |c: char| matches!(c, '*' | '_' | '|' | '<' | '[' | ']');
    text.chars().flat_map(|c| is_mark(c).then_some('\\').into_iter().chain([c])).collect()
}

fn kind(key: &Key) -> &'static str {
    match key.kind {
        Kind::Text => "text",
        Kind::Duration => "duration",
        Kind::Truth => "true or false",
        Kind::Whole => "whole number",
        Kind::Number => "number",
        Kind::List => "list of texts",
        Kind::Table => "table",
        Kind::Any => "any value",
    }
}

fn row(key: &Key) -> String {
    let unwritten = match key.unwritten {
        Unwritten::Nothing => String::new(),
        Unwritten::Default(value) => format!("`{value}`"),
        Unwritten::Refused => "**must be written**".to_owned(),
    };
    let (rule, says) = (cell(key.rule.unwrap_or_default()), cell(key.says));
    format!("| `{}` | {} | {unwritten} | {rule} | {says} |\n", key.name, kind(key))
}

fn section(table: &Table) -> String {
    let title = if table.path.is_empty() { "The file".to_owned() } else { format!("`[{}]`", table.path) };
    let later = match table.later {
        [] => String::new(),
        later => {
            format!(
                "\nKnown, but not built in this version, and refused by name: `{}`.\n",
                later.join("`, `")
            )
        }
    };
    format!(
        "\n## {title}\n\n{}\n\n| key | is | by default | allowed | what it says |\n|---|---|---|---|---|\n{}{later}",
        cell(table.says),
        table.keys.iter().map(row).collect::<String>(),
    )
}

#[test]
fn the_reference_says_what_the_reader_of_the_configuration_takes() {
    let tables: String = reference().into_iter().map(section).collect();
    hold(
        "CONFIGURATION.md",
        &format!(
            "# The configuration\n\n\
             Every key that `waybill.toml` takes, from what reads it: written by `make reference`, and held by a test.\n\
             [`waybill.example.toml`](../waybill.example.toml) shows each of them at work, line by line. `waybill config\n\
             check` names every fault of a file with its line; a key that is not listed here is one.\n\n\
             - A NAME is the writer's own: {NAME_RULE}.\n\
             - A duration is {DURATION_RULE}.\n\
             - A secret never stands here, but where it is: `env:NAME`, on AWS also `ssm:NAME` and `secretsmanager:NAME`.\n\
             - Without a default, a key that is not written is nothing.\n{tables}"
        ),
    );
}
