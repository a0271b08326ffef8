//! The reference says what the reader does: defaults, what must be written, rules, bounds, kinds. Each row
//! of it is tried on the smallest file that has its table.

use waybill_domain::address::Locality;
use waybill_domain::time::DurationMs;
use waybill_service::config_file::reference::{Key, Kind, Table, Unwritten, reference};
use waybill_service::config_file::{ConfigFault, parse};

use super::{DESTINATION, read};

/// The smallest file with a table of this kind: its own lines stand last.
fn smallest(table: &Table) -> String {
    let lines = match table.path {
        "" => {
            return "destinations = { d = { tenants = [\"acme\"], url = \"https://hooks.example.com/\", \
                    secrets = [\"env:S\"] } }\n"
                .to_owned();
        }
        "destinations.NAME" => "",
        "policies.NAME" => "[policies.p]\n",
        "producers.NAME" => "[producers.p]\ntenants = [\"acme\"]\ntokens = [\"env:T\"]\n",
        "sources.NAME" => concat!(
            "[sources.s]\ntenant = \"acme\"\nscheme = \"hmac\"\nsecrets = [\"env:S\"]\nevent_id = \"/id\"\n",
            "event_type = \"/type\"\nsignature = { header = \"h\", encoding = \"hex\", input = \"{body}\" }\n",
        ),
        "sources.NAME.signature" => concat!(
            "[sources.s]\ntenant = \"acme\"\nscheme = \"hmac\"\nsecrets = [\"env:S\"]\nevent_id = \"/id\"\n",
            "event_type = \"/type\"\n[sources.s.signature]\nheader = \"h\"\nencoding = \"hex\"\n",
            "input = \"{timestamp}.{body}\"\ntimestamp = \"t\"\n",
        ),
        "event_types.\"PATTERN\"" => "[event_types.\"lease.*\"]\n",
        "schedules.NAME" => concat!(
            "[schedules.s]\ncron = \"30 2 * * *\"\ntimezone = \"UTC\"\ntenants = [\"acme\"]\n",
            "destination = \"d\"\ntype = \"day.closed\"\npayload = {}\n",
        ),
        "operators.NAME" => "[operators.maria]\ntenants = [\"acme\"]\n",
        "system" => "[system]\n",
        other => panic!("no file has [{other}]: write the smallest one"),
    };
    format!("{DESTINATION}{lines}")
}

/// The smallest file without the key in its last table.
fn without(table: &Table, key: &str) -> String {
    let file = smallest(table);
    let begin = file.rfind("\n[").map_or(0, |at| at + 1);
    let (before, last) = file.split_at(begin);
    let others = last.lines().filter(|line| !line.starts_with(&format!("{key} = ")));
    before.to_owned() + &others.map(|line| format!("{line}\n")).collect::<String>()
}

fn with(table: &Table, key: &str, value: &str) -> String {
    format!("{}{key} = {value}\n", without(table, key))
}

fn faults(text: &str) -> Vec<ConfigFault> {
    parse(text, Locality::PublicOnly).err().unwrap_or_default()
}

fn rows() -> impl Iterator<Item = (&'static Table, &'static Key)> {
    reference().into_iter().flat_map(|table| table.keys.iter().map(move |key| (table, key)))
}

#[test]
fn what_is_said_to_count_where_nothing_is_written_does() {
    for (table, key) in rows() {
        let Unwritten::Default(value) = key.unwritten else { continue };
        let (bare, written) = (without(table, key.name), with(table, key.name, value));
        let (bare, mut written) = (read(&bare), read(&written));
        assert_ne!(written.revision, bare.revision, "{}.{}", table.path, key.name);
        written.revision = bare.revision.clone();
        assert_eq!(written, bare, "{}.{}", table.path, key.name);
    }
}

/// What may be left out, but not of the smallest file: another key there asks for it.
const NEEDED: &[(&str, &str)] =
    &[("producers.NAME", "tokens"), ("sources.NAME", "signature"), ("sources.NAME.signature", "timestamp")];

#[test]
fn what_is_said_to_be_refused_where_it_is_not_written_is_and_nothing_else() {
    for (table, key) in rows() {
        let found = faults(&without(table, key.name));
        let missing: Vec<_> =
            found.iter().filter(|fault| fault.fault == "is missing").map(|fault| &*fault.rule).collect();
        match key.unwritten {
            Unwritten::Refused => {
                assert_eq!((missing, found.len()), (vec![key.rule.unwrap()], 1), "{}: {found:?}", key.name);
            }
            _ if NEEDED.contains(&(table.path, key.name)) => {
                assert_eq!((missing.len(), found.len()), (1, 1), "{}: {found:?}", key.name);
            }
            _ => assert_eq!(found, [], "{}.{}", table.path, key.name),
        }
    }
}

/// What breaks the rule of a key: table, key, value.
const BROKEN: &[(&str, &str, &str)] = &[
    ("", "destinations", "{}"),
    ("destinations.NAME", "tenants", "[]"),
    ("destinations.NAME", "owner", "\"\""),
    ("destinations.NAME", "url", "\"https://10.0.0.8/\""),
    ("destinations.NAME", "secrets", "[]"),
    ("destinations.NAME", "event_types", "[\"b*c\"]"),
    ("destinations.NAME", "policy", "\"none\""),
    ("destinations.NAME", "timeout", "\"99ms\""),
    ("destinations.NAME", "concurrency", "0"),
    ("destinations.NAME", "rate", "\"20\""),
    ("destinations.NAME", "on_ambiguous", "\"ignore\""),
    ("destinations.NAME", "status_url", "\"https://x.example/status\""),
    ("destinations.NAME", "statuses", "{ 404 = \"maybe\" }"),
    ("destinations.NAME", "schema", "\"../outside.json\""),
    (
        "destinations.NAME",
        "headers",
        "{ a = \"env:S\", b = \"env:S\", c = \"env:S\", d = \"env:S\", e = \"env:S\", f = \"env:S\", \
         g = \"env:S\", h = \"env:S\", i = \"env:S\", j = \"env:S\", k = \"env:S\", l = \"env:S\", \
         m = \"env:S\", n = \"env:S\", o = \"env:S\", p = \"env:S\", q = \"env:S\" }",
    ),
    ("destinations.NAME", "gone", "\"ignore\""),
    ("destinations.NAME", "suspend_after", "0"),
    ("policies.NAME", "max_attempts", "0"),
    ("policies.NAME", "base_delay", "\"1h\""),
    ("policies.NAME", "factor", "0.5"),
    ("policies.NAME", "max_delay", "\"1ms\""),
    ("policies.NAME", "horizon", "\"2s\""),
    ("producers.NAME", "tenants", "[]"),
    ("producers.NAME", "tokens", "[]"),
    ("producers.NAME", "secrets", "[]"),
    ("sources.NAME", "scheme", "\"none\""),
    ("sources.NAME", "secrets", "[]"),
    ("sources.NAME", "destination", "\"elsewhere\""),
    ("sources.NAME", "event_type", "\"a b\""),
    ("sources.NAME", "deadline", "\"data.cutoff\""),
    ("sources.NAME", "scope", "\"data.player\""),
    ("sources.NAME.signature", "header", "\"a b\""),
    ("sources.NAME.signature", "encoding", "\"rot13\""),
    ("sources.NAME.signature", "prefix", "\"a b\""),
    ("sources.NAME.signature", "input", "\"constant\""),
    ("sources.NAME.signature", "timestamp", "\"a b\""),
    ("sources.NAME.signature", "tolerance", "\"2h\""),
    ("schedules.NAME", "cron", "\"30 2 * *\""),
    ("schedules.NAME", "timezone", "\"America/Gotham\""),
    ("schedules.NAME", "window", "\"week\""),
    ("schedules.NAME", "tenants", "[]"),
    ("schedules.NAME", "destination", "\"elsewhere\""),
    ("schedules.NAME", "event_id", "\"{tenant}\""),
    ("schedules.NAME", "catch_up", "\"90d\""),
    ("schedules.NAME", "policy", "\"none\""),
    ("operators.NAME", "tenants", "[]"),
    ("system", "stale_after", "\"0s\""),
    ("system", "rescue_window", "\"0s\""),
];

#[test]
fn every_rule_is_what_a_fault_says() {
    for (table, key) in rows() {
        let Some(rule) = key.rule else { continue };
        let broken = BROKEN.iter().find(|(path, name, _)| (*path, *name) == (table.path, key.name));
        let Some((.., value)) = broken else {
            assert_eq!(key.unwritten, Unwritten::Refused, "{}.{}: nothing breaks it", table.path, key.name);
            continue;
        };
        let found = faults(&with(table, key.name, value));
        assert!(
            found.iter().any(|fault| is_of(fault, key) && fault.rule.starts_with(rule)),
            "{rule}: {found:?}"
        );
    }
}

/// Whether the fault is the key's, or its items'.
fn is_of(fault: &ConfigFault, key: &Key) -> bool {
    fault.key.split(['.', '[']).any(|part| part == key.name)
}

#[test]
fn bounds_are_where_the_rules_say() {
    let mut seen = 0;
    for (table, key) in rows() {
        let Some(bounds) = key.rule.and_then(|rule| rule.strip_prefix("from ")) else { continue };
        let (least, most) = bounds.split(':').next().unwrap().split_once(" to ").unwrap();
        let number = |text: &str| match key.kind {
            Kind::Duration => DurationMs::parse(key.name, text).unwrap().as_ms(),
            _ => text.parse().unwrap(),
        };
        let refused = |number: u64| {
            let value =
                if key.kind == Kind::Duration { format!("\"{number}ms\"") } else { number.to_string() };
            !faults(&with(table, key.name, &value)).is_empty()
        };
        let (least, most) = (number(least), number(most));
        let found = [least - 1, least, most, most + 1].map(refused);
        assert_eq!(found, [true, false, false, true], "{}.{}", table.path, key.name);
        seen += 1;
    }
    assert!(seen >= 7, "{seen} keys with bounds");
}

#[test]
fn a_value_of_another_kind_is_refused_with_the_one_it_should_have_been() {
    for (table, key) in rows().filter(|(_, key)| key.kind != Kind::Any) {
        let found = faults(&with(table, key.name, "1979-05-27"));
        let is_told = |fault: &ConfigFault| {
            (&*fault.fault, &*fault.rule) == ("is a date or a time", key.kind.wanted()) && is_of(fault, key)
        };
        assert!(found.iter().any(is_told), "{}.{}: {found:?}", table.path, key.name);
    }
}

#[test]
fn what_a_later_version_will_take_is_refused_by_name() {
    for table in reference() {
        for key in table.later {
            let found = faults(&with(table, key, "1"));
            assert!(found.len() == 1 && found[0].fault.contains("not built in this version"), "{found:?}");
        }
    }
}

/// The example with what it only shows written: `# key = value` and `# [table]`.
fn example_with_everything() -> toml::Table {
    let shown = |line: &str| {
        let bare = line.strip_prefix("# ")?;
        let key = bare.split_once(" = ").map_or("", |(key, _)| key);
        let is_key = !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        (is_key || bare.starts_with('[')).then(|| format!("{bare}\n"))
    };
    let lines = include_str!("../../waybill.example.toml").lines();
    let text: String = lines.map(|line| shown(line).unwrap_or_else(|| format!("{line}\n"))).collect();
    toml::from_str(&text).unwrap()
}

#[test]
fn the_example_shows_every_key() {
    let example = example_with_everything();
    for (table, key) in rows() {
        // Nobody writes this one by hand.
        if (table.path, key.name) == ("", "files") {
            continue;
        }
        // All tables of a kind: a part in capitals stands for every name.
        let mut of_kind = vec![&example];
        for part in table.path.split('.').filter(|part| !part.is_empty()) {
            let is_name = part.contains(|c: char| c.is_ascii_uppercase());
            let named = |name: &str| is_name || name == part;
            of_kind = of_kind
                .into_iter()
                .flat_map(|table| table.iter().filter(|(name, _)| named(name)))
                .filter_map(|(_, value)| value.as_table())
                .collect();
        }
        let is_shown = of_kind.iter().any(|written| written.contains_key(key.name));
        assert!(is_shown, "{}.{} is not in waybill.example.toml", table.path, key.name);
    }
}
